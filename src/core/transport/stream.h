// The two ends of a sequence-number space: SendStream for whoever sends data, RecvStream for whoever
// receives it. A queue pair has two of each in irn and srnic (requests, and READ responses in their
// own space, IRN §5.4); in roce the responses borrow the requests' numbers.
//
//         una            nxt            max
//   ------|--------------|--------------|------------>  sequence numbers
//   acked |  in flight   | rewound,     | never sent
//         |              | send again   |
//
// una <= nxt <= max. Go-back-N moves nxt back to una; selective recovery leaves nxt alone and walks
// `rtx` from una towards `lost` instead, skipping what is selectively acknowledged.
//
// `rtx`, `lost` and `recovery` keep 32 bits; they always lie within 2^31 of una.
#pragma once
#include <cstdint>

#include "core/base/seq.h"

namespace weft {

inline constexpr std::uint16_t kNoBlock = 0xFFFF;

// What is sent again, and from where.
enum class Repair : std::uint8_t {
  kNone,
  kSelective,  // IRN §3.1: lost packets are retransmitted before new ones are sent
  kRewound,    // go-back-N is resending; further sequence NAKs at una are echoes of the same loss
};
// What the last repair began with.
enum class Cause : std::uint8_t {
  kNack,
  kTimeout,  // what is lost is not known, answers have to tell
  kAsked,    // the same, and packet `recovery`, the newest, goes again, to have a NACK
};
// roce: asking for an ACK with the oldest packet.
enum class Probe : std::uint8_t {
  kNone,
  kDue,    // it is about to go out once more
  kOut,    // it went: packet `rtx`, when nxt was `lost`
  kAlone,  // its ACK covered nothing more; another silence confirms that the rest is lost
};

inline constexpr std::uint8_t kMostProbes = 15;

struct SendStream {
  Seq una{};
  Seq nxt{};
  Seq max{};
  std::uint32_t rtx = 0;       // next candidate for retransmission
  std::uint32_t lost = 0;      // packets below this and not SACKed are lost
  std::uint32_t recovery = 0;  // recovery ends when una passes this
  std::uint16_t block = kNoBlock;
  Repair repair : 2 = Repair::kNone;
  Cause cause : 2 = Cause::kNack;
  Probe probe : 2 = Probe::kNone;
  std::uint8_t backoff : 4 = 0;  // doublings of the retransmission time-out; 10 at most
  std::uint8_t probes : 4 = 0;   // roce: since una moved; kMostProbes at most

  // Widen one of the 32-bit members.
  Seq widen(std::uint32_t low) const {
    const auto delta = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(una.v));
    return {una.v + static_cast<std::uint64_t>(static_cast<std::int64_t>(delta))};
  }
  static std::uint32_t low(Seq s) { return static_cast<std::uint32_t>(s.v); }
  // Recovery goes on behind this packet.
  void resent(Seq seq) { rtx = low(seq + 1); }
  bool recovering() const { return repair == Repair::kSelective; }
  bool rewound() const { return repair == Repair::kRewound; }
  bool after_timeout() const { return cause != Cause::kNack; }
  // In order, with nothing to repair and nothing known of what arrived: an ACK is a matter of `una` alone.
  bool plain() const {
    return block == kNoBlock && repair == Repair::kNone && cause == Cause::kNack && probe == Probe::kNone;
  }
  void end_repair() {
    repair = Repair::kNone;
    cause = Cause::kNack;
  }
  bool outstanding() const { return una < max; }
  std::uint64_t in_flight() const { return nxt - una; }
  void start(Seq first) { *this = SendStream{first, first, first}; }
};
static_assert(sizeof(SendStream) == 40);

struct RecvStream {
  Seq expected{};
  std::uint16_t block = kNoBlock;
  std::uint16_t held = 0;  // packets kept ahead of `expected`
  std::uint32_t msn = 0;   // messages that have ended before `expected`
};
static_assert(sizeof(RecvStream) == 16);

}  // namespace weft
