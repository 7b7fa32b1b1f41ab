// What SQD may change (wire-reference §2.5, "SQD->SQD"), and what still hangs on the old value then.
#include <gtest/gtest.h>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

class DrainedTest : public ::testing::TestWithParam<wire::Mode> {};

// The ring of READs to answer is replaced only when nothing in it is owed any more, sent or not.
TEST_P(DrainedTest, ReadsThatAreOwedAnAnswerKeepTheirRing) {
  Hand w(GetParam());
  w.post(w.request(WrOpcode::kRead, 0, 600, 0));
  w.to(w.b, w.from(w.a));
  ASSERT_TRUE(w.b.step(w.qb, {}, QpState::kSqd, 0));
  QpAttr t;
  t.max_dest_rd_atomic = 8;
  EXPECT_FALSE(w.b.step(w.qb, t, QpState::kSqd, kAttrMaxDestRdAtomic));
  w.play();
  EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
  EXPECT_TRUE(w.b.step(w.qb, t, QpState::kSqd, kAttrMaxDestRdAtomic));
}

INSTANTIATE_TEST_SUITE_P(Modes, DrainedTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
