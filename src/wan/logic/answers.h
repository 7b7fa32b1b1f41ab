// Answers of READs and atomics on the line: what the box near their responder keeps (Keeping), and what the
// box near their requester holds until the ones before are there (Ordering). Their own numbers are the
// sequence. A stream of answers is known by what each of its packets says: from whom, to whom, to which queue
// pair. Nothing has to be learned for it, and no half has to be owned.
//
//   responder B        its box                                    the other box         requester A
//      | answers -->  Keeping: a copy is kept, sent on ===========> Ordering: in order --> answers
//      |               <============ which came, which are missing ===                 |
//
//   Keeping    una       sent        nxt           Ordering    given    in_order()      top
//   ------------|---------|-----------|---->       --------------|----------|---x--xx----|----->
//               | on the  | waits for                            | waits    | held, but for what is missing
//               | line    | the line                             | for poll |
//
// An answer is kept when it comes, and leaves from the store when the line has time for it. So the store, and
// not the queue of passing frames, takes up what a fast site sends to a slow line.
//
// A lease begins whenever the responder of roce goes back, because a READ was repeated: the new answers may
// tell of newer bytes than those that are held ahead of a gap. So nothing of a new lease leaves before the
// other box has said that it holds nothing of an older one (`waiting`). Where answers have numbers of their
// own they may come in any order, and nothing is held.
#pragma once
#include <cstdint>

#include "wan/logic/halves.h"
#include "wan/logic/spans.h"

namespace weft::wan {

constexpr bool is_answer(std::uint8_t op) {
  return (op >= wire::kReadResponseFirst && op <= wire::kReadResponseOnly) || op == wire::kAtomicAcknowledge;
}
constexpr bool ends_answer(std::uint8_t op) {
  return is_answer(op) && op != wire::kReadResponseFirst && op != wire::kReadResponseMiddle;
}

// A stream of answers is named as acknowledgements are: requester, responder, the requester's queue pair.
inline HalfName answers_name(const Frame& f) { return {f.destination, f.source, f.header.dest_qp}; }

// An ACK or a NAK that must not overtake answers: the newest one is enough.
struct Behind {
  bool there = false;
  Seq seq{};  // it leaves when every answer before this has
  Frame frame;
};

struct Keeping {
  HalfName name;
  wire::Mode mode = wire::Mode::kRoce;
  bool used = false;
  bool confirmed = false;  // the partner has heard of `lease`
  bool waiting = false;    // nothing of `lease` has left, and nothing may: the partner may hold older answers
  bool alone = false;      // the partner has no place for it, or does not answer: answers pass
  bool may_hold = false;   // alone: and the partner may hold answers that were sent before
  bool say_due = false;
  bool talking = false;  // queued: has something to say to the partner
  bool ready = false;    // queued: has answers for the line
  std::uint8_t tries = 0;
  std::uint16_t unheard = 0;  // answers since `lease` was said last, unconfirmed
  std::uint64_t lease = 0;
  std::uint64_t bytes = 0;  // in the store
  Seq una{};                // what is before is kept no longer
  Seq sent{};               // what is before has left, once at least
  Seq nxt{};                // behind the newest that the responder sent
  Seq has{};                // the partner said that it has everything before; of this lease
  Seq seen{};               // the newest before this came to the partner
  Seq starts{};             // a partner that hears of `lease` now begins here
  Seq asked_upto{};         // what was sent before this, and is not there, is missing
  Seq repair{};             // of `missing`, these have been looked at
  Spans voids;              // numbers that no answer has, or none that is kept
  Spans missing;            // as the partner said last
  Spans repeated;           // what the responder sent again, and has left
  Time timer{};             // the last progress, or the first departure after silence
  Time heard{};             // the last answer of the responder
  Time alone_since{};
  Behind behind;
};

struct Ordering {
  HalfName name;
  wire::Mode mode = wire::Mode::kRoce;
  bool used = false;
  bool report_due = false;
  bool talking = false;
  bool ready = false;        // queued: has answers for the requester
  std::uint16_t unsaid = 0;  // answers since the last report
  std::uint64_t lease = 0;
  std::uint64_t bytes = 0;
  Seq given{};  // everything before was handed on
  Seq top{};    // behind the highest that came
  Spans missing;
  Spans voids;       // as the partner said last: no answer has these numbers
  Time gap_since{};  // the first of them is waited for
  Time heard{};
  Time report_at = kNever;  // of what was not said yet
  Behind behind;

  Seq in_order() const { return missing.empty() ? top : missing.front().from; }
};

}  // namespace weft::wan
