// Requests that come again from a requester that is not ours (docs/protocol/reliable.md#repeated-requests):
// which part of a READ it asks for again is its own choice, as long as it lies inside what it asked for
// first.
#include <gtest/gtest.h>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

// A READ of 1024 bytes, four packets, answered once; then asked for again as `change` says.
template <class Change>
Frames asked_again(Hand& w, Change change) {
  w.post(w.request(WrOpcode::kRead, 0, 1024, 0));
  Frames request = w.from(w.a);
  w.to(w.b, request);
  EXPECT_EQ(w.from(w.b).size(), 4U);
  change(request[0].packet.header);
  w.to(w.b, request);
  return w.from(w.b);
}
void skip_packets(wire::Header& h, std::uint32_t n) {
  h.psn.v = (h.psn.v + n) & kPsnMask;
  h.va += n * 256;
  h.dma_len -= n * 256;
}

TEST(Duplicates, OfAReadAnyPartIsAnsweredInItsOwnLength) {
  for (const std::uint32_t bytes : {0U, 1U, 256U, 300U, 512U, 768U}) {
    SCOPED_TRACE(bytes);
    Hand w(wire::Mode::kRoce);
    const Frames again = asked_again(w, [&](wire::Header& h) {
      skip_packets(h, 1);
      h.dma_len = bytes;
    });
    ASSERT_EQ(again.size(), std::max(1U, (bytes + 255) / 256));
    std::uint32_t sum = 0;
    for (const Side::Frame& f : again) sum += f.packet.payload;
    EXPECT_EQ(sum, bytes);
    const std::uint8_t last = again.size() == 1 ? wire::kReadResponseOnly : wire::kReadResponseLast;
    EXPECT_EQ(again.back().packet.header.opcode, last);
  }
}

TEST(Duplicates, OfAReadBeyondItsRangeAreDropped) {
  for (const std::uint32_t bytes : {769U, 1024U, 0xFFFF'FFFFU}) {
    Hand w(wire::Mode::kRoce);
    const Frames again = asked_again(w, [&](wire::Header& h) {
      skip_packets(h, 1);
      h.dma_len = bytes;
    });
    EXPECT_TRUE(again.empty());
    EXPECT_EQ(w.b.device.counters().get(Counter::drop_duplicate_read), 1U);
  }
}

}  // namespace
}  // namespace weft
