// How far sequence numbers may reach (docs/protocol/reliable.md#sequence-numbers): with 2^23 or more
// outstanding, one that is behind looks as if it were ahead, and a request that is sent again is taken for
// one from the future.
#include <gtest/gtest.h>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

TEST(Numbers, AReadWhoseAnswerWouldReachTooFarWaits) {
  Hand w(wire::Mode::kRoce);  // MTU 256: the answer to the second READ is 2^23 - 1 packets
  const Key everything = w.a.device.register_mr(w.a.pd, 0, 1ULL << 32U, kLocalWrite)->lkey;
  const Sge to{0, (1U << 31U) - 256, everything};
  w.post(w.request(WrOpcode::kRead, 0, 8, 0));
  SendWr long_read = w.request(WrOpcode::kRead, 0, 8, 0);
  long_read.sges = {&to, 1};
  w.post(long_read);
  const Frames first = w.from(w.a);
  ASSERT_EQ(first.size(), 1U);
  w.to(w.b, first);
  w.to(w.a, w.from(w.b));
  EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
  const Frames second = w.from(w.a);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].packet.header.dma_len, to.length);
}

}  // namespace
}  // namespace weft
