// The receiver's step when the expected packet arrives: past it, and past everything kept behind it. The
// common case, with nothing kept, is the first three lines.
#pragma once
#include "core/transport/loss/scheme.h"

namespace weft {

struct Advance {
  std::uint32_t packets = 0;   // how far `expected` moved
  std::uint32_t messages = 0;  // of those, last packets of a message
};

// The expected packet arrived and was placed: move past it and past everything kept behind it.
inline Advance receive_in_order(LossPool& pool, RecvStream& stream, bool message_end) {
  Advance a{1, message_end ? 1U : 0U};
  ++stream.expected;
  if (stream.block == kNoBlock) return a;
  while (stream.held > 0 && pool.arrived(stream.block, stream.expected)) {
    const FastExit& run = pool.run(stream.block);
    if (run.any && stream.expected == run.left) {
      // What came last came in one piece: nothing is missing any more.
      a.packets += stream.held;
      a.messages += run.messages;
      CHECK_OP(run.right + 1 - run.left, ==, stream.held);
      stream.expected = run.right + 1;
      stream.held = 0;
      break;
    }
    a.messages += pool.message_end(stream.block, stream.expected) ? 1U : 0U;
    pool.clear(stream.block, stream.expected);
    ++stream.expected;
    ++a.packets;
    --stream.held;
  }
  if (stream.held == 0) release_block(pool, stream.block);
  return a;
}

}  // namespace weft
