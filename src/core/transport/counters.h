// What a Device counts: one row per reason, so that "why was that dropped?" has an answer. The table
// of names below is what `weft stat`, the simulator's summary and the tests print.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace weft {

// X(name, sentence)
#define WEFT_COUNTERS(X)                                                                        \
  X(rx_packets, "packets given to the device")                                                  \
  X(rx_in_order, "request packets accepted at the expected sequence number")                    \
  X(rx_out_of_order, "packets kept ahead of the expected sequence number")                      \
  X(rx_duplicate, "packets at sequence numbers already received")                               \
  X(drop_no_qp, "dropped: no such queue pair")                                                  \
  X(drop_state, "dropped: queue pair not receiving")                                            \
  X(drop_source, "dropped: not from the connected address")                                     \
  X(drop_mode, "dropped: marked with another mode than the half-connection's")                  \
  X(drop_pkey, "dropped: partition key")                                                        \
  X(drop_opcode, "dropped: opcode not understood on this queue pair")                           \
  X(drop_malformed, "dropped: response that fits no outstanding request, or reserved syndrome") \
  X(drop_stale, "dropped: response outside the window")                                         \
  X(drop_out_of_order, "dropped: ahead of the expected sequence number, not kept")              \
  X(drop_no_block, "dropped: ahead of the expected sequence number, bitmap pool empty")         \
  X(drop_no_receive, "dropped: no receive for it")                                              \
  X(drop_message, "dropped: rest of a UC message that lost a packet")                           \
  X(drop_qkey, "dropped: datagram with another Q_Key")                                          \
  X(drop_too_long, "dropped: longer than its receive (UC, UD)")                                 \
  X(drop_refused, "dropped: not allowed, or not as it should be (UC, UD)")                      \
  X(drop_duplicate_read, "dropped: duplicate READ or atomic no longer recorded")                \
  X(drop_control_full, "dropped: control ring full")                                            \
  X(tx_packets, "data packets sent")                                                            \
  X(tx_retransmitted, "of those, sent before")                                                  \
  X(tx_after_timeout, "of those, in a recovery that a time-out began")                          \
  X(tx_probes, "of those, one packet sent early to ask for an ACK")                             \
  X(tx_control, "ACKs and NAKs sent")                                                           \
  X(nak_sequence, "sequence NAKs received")                                                     \
  X(nak_rnr, "receiver-not-ready NAKs received")                                                \
  X(nak_error, "error NAKs received")                                                           \
  X(implied_nak, "READ responses found missing by a later response or ACK")                     \
  X(recoveries, "times a half-connection entered loss recovery")                                \
  X(fallback_go_back_n, "recoveries without a bitmap block")                                    \
  X(timeout_low, "retransmission time-outs with few packets in flight")                         \
  X(timeout_high, "other retransmission time-outs")                                             \
  X(timeout_spurious, "of those, found needless: what was not resent arrived, too")             \
  X(timeout_read, "READ requests sent again after their responses stayed away")                 \
  X(stalls, "time-outs that started over, because we stood still ourselves")                    \
  X(retries_charged, "verbs time-outs without progress")                                        \
  X(rx_marked, "packets that the network marked for congestion")                                \
  X(rx_echo, "acknowledgements that echo a congestion mark")                                    \
  X(tx_cnp, "congestion notification packets sent")                                             \
  X(rx_cnp, "congestion notification packets received")                                         \
  X(paced, "turns put off by a controller's rate")                                              \
  X(path_blocked, "turns ended for lack of path credit")                                        \
  X(cq_overflow, "completions lost to a full completion queue")

enum class Counter : std::size_t {
#define WEFT_X(name, text) name,
  WEFT_COUNTERS(WEFT_X)
#undef WEFT_X
      kCount
};

inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::kCount);

struct CounterInfo {
  const char* name;
  const char* text;
};
inline constexpr std::array<CounterInfo, kCounterCount> kCounterInfo{{
#define WEFT_X(name, text) {#name, text},
    WEFT_COUNTERS(WEFT_X)
#undef WEFT_X
}};

class Counters {
 public:
  void add(Counter c, std::uint64_t n = 1) { values_[static_cast<std::size_t>(c)] += n; }
  std::uint64_t get(Counter c) const { return values_[static_cast<std::size_t>(c)]; }
  std::uint64_t get(std::size_t index) const { return values_[index]; }

 private:
  std::array<std::uint64_t, kCounterCount> values_{};
};

}  // namespace weft
