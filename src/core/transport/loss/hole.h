// What an srnic receiver names in its NACKs, so that a requester may do without a bitmap (SRNIC §4.4.2: "keep
// bitmaps only in the responder and make the requester stateless. Then, the responder should notify the
// requester exactly which packets to be retransmitted"). The paper says no more; the rest is ours:
//
//      expected                                  trigger
//         x o o x x x x o o o o o o o o o o o o o   o        o = arrived   x = missing
//               |<----->|<--------------------->|
//                missing          since
//
// The packets missing just before the run of consecutive ones that ends with the trigger, if the trigger is
// the most advanced packet: a hole is named by every packet of the run behind it, so that no single NACK need
// arrive. One that is resent lands in an older hole, and names nothing. What does not fit two bytes is left
// to the time-out: of a longer hole the first packets, and the hole before a longer run.
#pragma once
#include "core/transport/loss/pool.h"

namespace weft {

struct Hole {
  std::uint8_t missing = 0;  // packets; none: nothing is named
  std::uint8_t since = 0;    // packets between them and the trigger
};

// `trigger` is held already.
inline Hole hole_before(LossPool& pool, const RecvStream& r, Seq trigger) {
  constexpr std::uint8_t kMost = 255;
  const FastExit& run = pool.run(r.block);
  if (!run.any || run.right != trigger || trigger - run.left > kMost) return {};
  Hole h;
  for (Seq s = run.left; s > r.expected && h.missing < kMost && !pool.arrived(r.block, s - 1); s = s - 1)
    ++h.missing;
  if (h.missing != 0) h.since = static_cast<std::uint8_t>(trigger - run.left);
  return h;
}

}  // namespace weft
