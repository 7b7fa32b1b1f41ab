// What a box knows of half-connections: those that its site's endpoints send on (Taking), and those that they
// answer on and the partner has taken over (Giving).
//
//                 quiet, strange, farewell                  Taking
//   watching --> asking --> owned --> releasing --+
//      ^                      |                   |         watching   a wire; learns who the requester is
//      +----------------------|-------------------+         asking     the partner is asked; what is new
//      waits outside ^                      v                             owned      taken, kept,
//      acknowledged, sent over the line
//      +------------------- failed                          releasing  all delivered; the partner is told
//                                                           failed     the next packet is refused for good
//
// Numbers below `from` are the wire's, in both directions, at both boxes: only what was never sent before it
// was agreed upon is the pair's.
#pragma once
#include <array>
#include <cstdint>

#include "core/transport/dialect.h"
#include "core/transport/receiver.h"
#include "core/transport/sender.h"
#include "wan/logic/frame.h"
#include "wan/logic/message.h"

namespace weft::wan {

inline constexpr std::uint32_t kNobody = UINT32_MAX;

enum class Phase : std::uint8_t { kFree, kWatching, kAsking, kOwned, kReleasing, kFailed };

// What is known of a stream that passes.
struct Watch {
  struct Mark {
    Seq seq{};               // of a packet that asked for an acknowledgement
    Time at{};               // when it passed
    std::uint32_t ends = 0;  // messages that had ended with it
  };
  // Marks reach back as far as acknowledgements may still come. On a long line many more packets ask
  // meanwhile than there is room for, so only every `stride`-th of them is kept.
  static constexpr std::size_t kMarks = 32;

  bool seen = false;  // `next` is known, and everything since came in order
  bool asks = false;  // the newest packet asks for an acknowledgement
  std::uint8_t agreed = 0;
  std::uint32_t calm = 0;  // WRITEs and SENDs in order since the last READ
  Time since{};            // when `seen` began
  Seq next{};
  std::uint32_t ends = 0;    // messages that ended before it
  std::uint32_t offset = 0;  // MSN - ends, as acknowledgements say
  Qpn candidate = kNoQpn;
  Seq confirmed{};  // the newest mark that was acknowledged
  Seq acked{};      // everything before was
  Seq first{};      // `next` when `seen` began
  std::array<Mark, kMarks> marks{};
  std::uint32_t oldest_mark = 0;
  std::uint32_t mark_count = 0;
  std::uint32_t stride = 1;
  std::uint32_t passed_over = 0;  // since the newest mark

  const Mark* find(Seq seq) const;
  // An acknowledgement of this packet may be the stream's, as far as is known.
  bool may_have_asked(Seq seq) const {
    return seen && (stride == 1 ? find(seq) != nullptr : seq >= first && seq < next);
  }
  // What was marked before `horizon` is not acknowledged any more.
  void mark(Seq seq, Time now, Time horizon);
  void forget_marks() {
    mark_count = passed_over = 0;
    stride = 1;
  }

 private:
  Mark& at(std::uint32_t i) { return marks[(oldest_mark + i) % kMarks]; }
};

// A packet that its endpoint hears of by itself, in dialects that say what caused an acknowledgement.
struct Trigger {
  Seq seq{};
  Echo echo;
  Hole hole;            // srnic: what it names
  bool kept = false;    // ahead of a gap
  bool marked = false;  // by congestion
};
inline constexpr std::size_t kMostTriggers = 32;  // of a half that wait to be told

// What only a dialect needs that keeps what is ahead of a gap.
struct Ahead {
  // Packets as an acknowledgement echoes them: the last before `expected`, sender.una, `delivered`; and the
  // newest copy of one that was taken before.
  Echo last;
  Echo stored_last;
  Echo delivered_last;
  Echo copy;
  Trigger dropped;          // the highest of what was held back
  Seq refused_read{};       // failed: a READ that was asked for again
  std::uint64_t bytes = 0;  // in the store, ahead of `expected`
  Time gap_since{};         // `expected` is missing since then, and something behind it is here
  std::array<Trigger, kMostTriggers> triggers{};
};

// As the receiver of its site's packets it is core's RecvStream: `expected`, what is kept ahead of that, and
// the messages that ended before.
struct Taking : RecvStream {
  HalfName name;
  wire::Mode mode = wire::Mode::kRoce;  // its row in core's table of dialects says what follows
  Phase phase = Phase::kFree;
  bool learned = false;    // requester_qpn, and the watch's offset
  bool confirmed = false;  // the partner agreed to `lease`
  bool draining = false;
  bool forget = false;          // what was learned does not fit any more
  bool over = false;            // its requester is gone, or another connection: its packets are dropped
  bool reading = false;         // answers of READs are awaited, and what is behind them waits
  bool awaits_answers = false;  // the last request is a READ or an atomic whose answers pass
  bool leaving = false;         // `farewell` waits until everything is delivered
  bool held_back = false;       // packets at or behind `expected` were dropped: they must be asked for again
  bool full = false;            // for want of room
  bool nak_sent = false;        // for the gap at `expected`
  bool ack_due = false;
  bool nak_due = false;
  bool copy_due = false;  // of `ahead.copy`
  std::uint8_t trigger_count = 0;
  std::uint16_t marks = 0;   // by congestion, not echoed yet
  bool release_due = false;  // to be said (again)
  bool own_due = false;
  bool talking = false;       // queued: has something to say to the partner
  bool answering = false;     // queued: has something to say to its endpoint
  bool ready = false;         // queued: has packets for the line
  std::uint8_t syndrome = 0;  // failed
  std::uint8_t strange = 0;   // how often the same gap came again
  std::uint8_t asked = 0;     // OWN or RELEASE, in a row
  Qpn requester_qpn = kNoQpn;
  // Between the same two addresses, those whose requester is not known.
  std::uint32_t next_unlearned = kNobody;
  std::uint32_t last_unlearned = kNobody;
  bool among_unlearned = false;
  std::uint64_t lease = 0;
  std::uint32_t mtu = 0;  // 0: not known
  Time not_before{};      // it is asked for again: the partner had no place for it
  Seq forwarded{};        // the highest number that passed
  Time forwarded_at{};
  Time passed_at{};  // the last packet, also one that was sent again

  Seq from{};
  Seq wanted{};     // everything before was asked to be acknowledged
  Seq told{};       // everything before was
  Seq delivered{};  // everything before is with the far endpoint: kept until then
  Seq read_end{};   // of READs that passed and whose answers have not
  Seq gap{};
  std::uint32_t reads = 0;       // READs between `expected` and `read_end`
  std::uint32_t told_msn = 0;    // before `told`
  std::uint32_t stored_msn = 0;  // before sender.una
  std::uint32_t delivered_msn = 0;
  std::uint64_t bytes = 0;  // in the store
  Time heard{};             // the last packet of the site
  Time owing{};  // when delivery last made progress, or began to be owed; failed: when it is forgotten
  Time say_again = kNever;
  Sender sender;  // una: the partner has everything before
  SenderAccount account;
  SenderSilence silence;

  // What the packets of an owned half do not touch, or not in every dialect.
  Ahead ahead;
  Watch watch;
  Frame farewell;
};

struct Giving {
  HalfName name;
  wire::Mode mode = wire::Mode::kRoce;
  Qpn requester_qpn = kNoQpn;
  bool used = false;
  bool orphan = false;  // without a partner: what is here in order is delivered, nothing more
  bool owned_due = false;
  bool report_due = false;
  bool talking = false;
  bool ready = false;
  std::uint8_t syndrome = 0;
  std::uint8_t ahead_count = 0;
  std::uint8_t tries = 0;
  std::uint64_t lease = 0;
  std::uint64_t held = 0;
  Seq from{};
  Time refused_until{};  // the endpoint has no receive
  Time agreed{};         // to `lease`; orphan: since when
  Time told{};           // likewise, and told again while nothing comes of it
  RecvStream line;
  Sender sender;  // una: the endpoint has everything before
  SenderAccount account;
  SenderSilence silence;
  bool refused = false;  // packet `refused_at` could not be kept
  Seq refused_at{};
  std::array<Seq, kMostAhead> ahead{};
};

// --- what an opcode is ---

constexpr bool fills_its_packet(std::uint8_t op) {
  return op == wire::kSendFirst || op == wire::kSendMiddle || op == wire::kWriteFirst ||
         op == wire::kWriteMiddle;
}

constexpr bool is_push(std::uint8_t op) {
  return op <= wire::kWriteOnlyImm || op == wire::kSendLastInvalidate || op == wire::kSendOnlyInvalidate;
}
constexpr bool is_fetch(std::uint8_t op) {
  return op == wire::kReadRequest || op == wire::kCompareSwap || op == wire::kFetchAdd;
}
constexpr bool ends_message(std::uint8_t op) {
  return op == wire::kSendLast || op == wire::kSendLastImm || op == wire::kSendOnly ||
         op == wire::kSendOnlyImm || op == wire::kWriteLast || op == wire::kWriteLastImm ||
         op == wire::kWriteOnly || op == wire::kWriteOnlyImm || op == wire::kSendLastInvalidate ||
         op == wire::kSendOnlyInvalidate;
}
// What an endpoint counts as a message when the packet is taken.
constexpr bool ends_request(std::uint8_t op) { return ends_message(op) || is_fetch(op); }
constexpr bool starts_message(std::uint8_t op) {
  return op == wire::kSendFirst || op == wire::kSendOnly || op == wire::kSendOnlyImm ||
         op == wire::kWriteFirst || op == wire::kWriteOnly || op == wire::kWriteOnlyImm ||
         op == wire::kSendOnlyInvalidate;
}

// READs and atomics take one number, like any packet: their answers have numbers of their own.
constexpr bool numbers_answers_apart(wire::Mode m) { return dialect(m).response_stream; }
// What is ahead of a gap is kept, because each packet says where it belongs.
constexpr bool keeps_ahead(wire::Mode m) { return dialect(m).places_itself; }

// How many numbers a READ or an atomic takes: one for each packet of the answer, where answers have none of
// their own. 0: that cannot be said.
constexpr std::uint32_t numbers_of(const wire::Header& h, std::uint32_t mtu) {
  constexpr std::uint32_t kLeastMtu = 256;
  if (numbers_answers_apart(h.mode)) return 1;
  if (h.opcode != wire::kReadRequest || h.dma_len <= kLeastMtu) return 1;
  constexpr std::uint32_t kMost = 1U << 22U;  // half of what can be told apart
  if (mtu == 0) return 0;
  const std::uint32_t n = h.dma_len / mtu + (h.dma_len % mtu != 0 ? 1 : 0);
  return n <= kMost ? n : 0;
}

}  // namespace weft::wan
