// A queue pair's lives: what the end of one leaves to the next (wire-reference §2.5, "RESET"). A number that
// is used again has a new peer, new sequence numbers and perhaps another mode; nothing of the old ones may
// reach them.
#include <gtest/gtest.h>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

class ReuseTest : public ::testing::TestWithParam<wire::Mode> {};

TEST(Reuse, AQueuePairMayEndBeforeThereIsAnyPath) {
  for (const QpState end : {QpState::kErr, QpState::kReset}) {
    Side s(1, DeviceConfig{});
    const Qpn q = s.create();
    ASSERT_TRUE(s.step(q, {}, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccess));
    ASSERT_TRUE(s.device.post_recv(q, {1, {}}));
    EXPECT_TRUE(s.step(q, {}, end, 0));
    EXPECT_EQ(s.statuses(), end == QpState::kErr ? Statuses{WcStatus::kFlushed} : Statuses{});
    EXPECT_TRUE(s.step(q, {}, QpState::kReset, 0));
    EXPECT_TRUE(s.device.destroy_qp(q));
  }
}

}  // namespace
}  // namespace weft
