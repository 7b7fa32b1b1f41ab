// One direction of a TCP connection, the end that sends: a state machine of bytes, acknowledgments and time.
// It decides what leaves next; when it leaves is the host's business (host.h).
//
//   open       slow start below ssthresh, congestion avoidance above (RFC 5681 §3.1); limited transmit
//   recovery   after DupThresh duplicate acknowledgments or a loss seen by SACK: window halved, losses
//              repaired as `pipe` allows, in the order of RFC 6675's NextSeg, until all that was under way
//              when it began is acknowledged
//   loss       after a time-out: a window of one segment, slow start, everything not acknowledged is sent
//              again; no recovery before it is over (RFC 6675 §5.1)
//
// Without SACK each duplicate acknowledgment says that some segment arrived, and takes one from `pipe`: what
// RFC 6582 does by inflating the window.
//
// The window grows only while it is what limits the sender (RFC 7661 §4.4's criterion): a NIC that takes
// a segment only when its link is free never has more of them under way than the way holds.
#pragma once
#include <cstdint>
#include <deque>

#include "sim/fabric/segment.h"
#include "sim/tcp/config.h"
#include "sim/tcp/rto.h"
#include "sim/tcp/scoreboard.h"

namespace weft::sim::tcp {

// Why a segment leaves.
enum class Cause : std::uint8_t { kNew, kRecovery, kRescue, kTimeout };

struct Piece {
  std::uint64_t seq = 0;
  std::uint32_t length = 0;
  Cause cause = Cause::kNew;
};

struct SenderCounters {
  std::uint64_t segments = 0;
  std::uint64_t again_recovery = 0;  // segments sent again, by cause
  std::uint64_t again_rescue = 0;
  std::uint64_t again_timeout = 0;
  std::uint64_t recoveries = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t duplicate_acks = 0;
  SenderCounters& operator+=(const SenderCounters& o);
};

class Sender {
 public:
  enum class State : std::uint8_t { kOpen, kRecovery, kLoss };

  explicit Sender(const Config& config);

  // A message joins the stream. Segments never reach over its end.
  void write(std::uint64_t bytes, Time now);
  // Something may leave now, and next() is what.
  bool ready() { return pick().length != 0; }
  Piece next(Time now);
  void on_ack(const Segment& ack, Time now);
  Time deadline() const { return due_; }
  void on_timer(Time now);  // not before deadline()

  bool done() const { return una_ == written_; }
  std::uint64_t acknowledged() const { return una_; }
  std::uint64_t sent() const { return nxt_; }
  std::uint64_t in_flight() const;  // as presumed: RFC 6675's pipe
  std::uint64_t window() const { return cwnd_; }
  std::uint64_t threshold() const { return ssthresh_; }
  State state() const { return state_; }
  const Rto& rto() const { return rto_; }
  const SenderCounters& counters() const { return counters_; }
  void check_invariants() const;

 private:
  struct Pick {
    std::uint32_t length = 0;  // 0: nothing
    Cause cause = Cause::kNew;
    const Scoreboard::Sent* again = nullptr;
  };
  Pick pick();
  void advance(std::uint64_t ack, Time now);
  void grow(std::uint64_t acknowledged, std::uint64_t flight);
  void enter_recovery();
  void leave_recovery();
  std::uint64_t half_of_flight() const;

  Config config_;
  Scoreboard board_;
  Rto rto_;
  State state_ = State::kOpen;
  bool retransmit_now_ = false;  // fast retransmit: the first segment leaves whatever the window
  bool rescued_ = false;         // one rescue for each recovery
  bool guarded_ = false;         // recover_ means something
  std::uint32_t duplicates_ = 0;
  std::uint32_t arrived_ = 0;  // without SACK: segments that duplicate acknowledgments stand for
  std::uint64_t una_ = 0;      // the first byte not acknowledged
  std::uint64_t nxt_ = 0;      // the first never sent
  std::uint64_t written_ = 0;
  std::uint64_t recover_ = 0;  // what was sent when recovery or loss began: RecoveryPoint
  std::uint64_t lost_at_ = 0;  // una_ when the timer struck last
  std::uint64_t cwnd_;
  std::uint64_t ssthresh_ = UINT64_MAX;
  std::uint64_t avoided_ = 0;  // bytes acknowledged since the window last grew in avoidance
  Time due_ = kNever;
  Time last_sent_{};
  std::deque<std::uint64_t> ends_;  // of messages that are not sent whole
  SenderCounters counters_;
};

}  // namespace weft::sim::tcp
