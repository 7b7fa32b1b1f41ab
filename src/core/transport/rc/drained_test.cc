// What SQD may change (docs/protocol/verbs.md#attributes), and what still hangs on the old value then.
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

// Who stands in a path's line, or was called from it, leaves it with the path.
TEST_P(DrainedTest, ANewPathGivesUpThePlaceInTheOldOnesLine) {
  DeviceConfig narrow;
  narrow.path_credit = Bytes{2500};
  Hand w(GetParam(), narrow);
  w.post(w.request(WrOpcode::kWrite, 0, 40'000, 0));
  const Frames sent = w.from(w.a);  // as much as the credit admits
  const Qpn moves = w.a.create();
  const Qpn stays = w.a.create();
  w.connect(moves, w.b.create());
  w.connect(stays, w.b.create());
  ASSERT_TRUE(w.a.device.post_send(moves, w.request(WrOpcode::kWrite, 0, 40'000, 0)));
  EXPECT_TRUE(w.from(w.a).empty());  // it stands in the line now
  ASSERT_TRUE(w.a.step(moves, {}, QpState::kSqd, 0));
  QpAttr t;
  t.path = *w.a.device.open_path({wire::Address::v4(10, 0, 0, 9)});
  ASSERT_TRUE(w.a.step(moves, t, QpState::kSqd, kAttrPath));
  ASSERT_TRUE(w.a.step(moves, {}, QpState::kRts, 0));
  EXPECT_FALSE(w.from(w.a).empty());  // the new path has credit
  ASSERT_TRUE(w.a.device.post_send(stays, w.request(WrOpcode::kWrite, 0, 40'000, 0)));
  w.from(w.a);
  w.to(w.b, sent);
  w.play();
  EXPECT_EQ(std::ranges::count(statuses(w.a), WcStatus::kSuccess), 2);
}

INSTANTIATE_TEST_SUITE_P(Modes, DrainedTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
