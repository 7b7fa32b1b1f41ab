// The paper's numbers, and the relations that hold for any question.
#include "wan/plan/plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "wan/plan/frame.h"

namespace weft::wan {
namespace {

Question at(std::uint64_t km) {
  Question q;
  q.distance = kilometres(km);
  return q;
}

// NTT §4.1, Table 1.
TEST(Frame, IsThePapersAndAWritesOwn) {
  EXPECT_EQ(frame_bytes(4096), 4178U);
  EXPECT_EQ(line_bytes(4096, 4096), 4194U);
  EXPECT_EQ(line_bytes(4097, 4096), 4096U + 4 + 2 * 82 + 16);
  EXPECT_EQ(packets_of(0, 1024), 1U);
}

TEST(Plan, HasThePapersRoundTripsAndDepths) {
  EXPECT_EQ(plan(at(10)).round_trip, microseconds(100));
  EXPECT_EQ(plan(at(100)).round_trip, milliseconds(1));
  EXPECT_EQ(plan(at(1000)).round_trip, milliseconds(10));
  EXPECT_EQ(plan(at(10)).paper_depth, 299U);
  EXPECT_EQ(plan(at(100)).paper_depth, 2991U);
  EXPECT_EQ(plan(at(1000)).paper_depth, 29918U);
  EXPECT_EQ(plan(at(100)).paper_depth_reth, 2980U);
  EXPECT_EQ(plan(at(1000)).bdp, 125'000'000U);
}

// The depth that fills the line does, and one less does not.
TEST(Plan, TheFullDepthIsTheSmallestThatFills) {
  for (const std::uint64_t km : {1U, 10U, 100U, 1000U}) {
    for (const std::uint64_t message : {64U, 512U, 4096U, 100'000U}) {
      Question q = at(km);
      q.message = message;
      q.nic_depth = 1U << 20U;
      const Plan p = plan(q);
      q.tx_depth = static_cast<std::uint32_t>(p.full_depth);
      EXPECT_EQ(plan(q).way(Way::kAtHand).limit, Limit::kLine) << km << " km, " << message;
      EXPECT_NEAR(plan(q).way(Way::kAtHand).goodput_bps, p.best_bps, p.best_bps * 1e-9);
      if (q.tx_depth == 1) continue;
      --q.tx_depth;
      EXPECT_EQ(plan(q).way(Way::kAtHand).limit, Limit::kTxDepth) << km << " km, " << message;
    }
  }
}

// NTT §4.2: 2048 requests are less than the 2991 that the paper itself asks for.
TEST(Plan, ThePapersTxDepthDoesNotFillItsLine) {
  Question q = at(100);
  q.tx_depth = 2048;
  EXPECT_NEAR(plan(q).way(Way::kAtHand).goodput_bps, 67.1e9, 0.1e9);
  q.message = 512;
  EXPECT_NEAR(plan(q).way(Way::kAtHand).goodput_bps, 8.4e9, 0.05e9);
  q.message = 8192;
  EXPECT_EQ(plan(q).way(Way::kAtHand).limit, Limit::kLine);
}

// NTT §2.2: throughput falls as the round trip grows once the depth is used up, and not before.
TEST(Plan, GoodputFallsWithTheRoundTrip) {
  const double ten = plan(at(100)).way(Way::kAtHand).goodput_bps;
  const double hundred = plan(at(1000)).way(Way::kAtHand).goodput_bps;
  EXPECT_NEAR(ten / hundred, 10, 0.01);
}

// NTT §4.1: 1000 km ask for more than the NIC's 16384.
TEST(Plan, TheNicsDepthBindsAtAThousandKilometres) {
  const Reach deep = plan(at(1000)).way(Way::kDeep);
  EXPECT_EQ(deep.depth, 16384U);
  EXPECT_EQ(deep.limit, Limit::kNicDepth);
  EXPECT_EQ(deep.nic_bytes, 1U << 20U);
  EXPECT_EQ(plan(at(100)).way(Way::kDeep).limit, Limit::kLine);
}

// NTT §5: with boxes the depth counts for the way to the box only.
TEST(Plan, BoxesAreFlatOverDistance) {
  for (const std::uint64_t km : {10U, 100U, 1000U})
    EXPECT_NEAR(plan(at(km)).way(Way::kBoxes).goodput_bps, plan(at(km)).best_bps, 1e6);
  Question q = at(100);
  q.message = 512;
  q.packet_rate = 4'500'000;
  EXPECT_EQ(plan(q).way(Way::kBoxes).limit, Limit::kPacketRate);
  EXPECT_NEAR(plan(q).way(Way::kBoxes).goodput_bps / plan(q).way(Way::kAtHand).goodput_bps, 35, 0.5);
}

TEST(Plan, AStoreThatIsTooSmallBinds) {
  Question q = at(1000);
  q.store = {62'500'000};
  const Reach r = plan(q).way(Way::kBoxes);
  EXPECT_EQ(r.limit, Limit::kStore);
  EXPECT_NEAR(r.goodput_bps, plan(q).best_bps / 2, 1e8);
  EXPECT_EQ(r.box_bytes, 125'000'000U);
}

TEST(Plan, PacketNumbersBindWhereManySmallPacketsAreOnTheirWay) {
  Question q = at(10'000);
  q.rate = gigabits(400);
  q.mtu = 256;
  q.message = 1U << 20U;
  q.tx_depth = q.nic_depth = 1U << 20U;
  EXPECT_EQ(plan(q).way(Way::kAtHand).limit, Limit::kNumbers);
}

// What fills the line with the depth at hand does, and a little less does not.
TEST(Plan, RemediesAreEnoughAndNoMore) {
  for (const std::uint64_t km : {10U, 100U, 1000U}) {
    const Plan before = plan(at(km));
    Question q = at(km);
    q.queue_pairs = static_cast<std::uint32_t>(before.queue_pairs);
    EXPECT_LE(plan(q).full_depth, q.tx_depth);
    --q.queue_pairs;
    EXPECT_GT(plan(q).full_depth, q.tx_depth);
    q = at(km);
    q.message = before.message;
    EXPECT_EQ(plan(q).way(Way::kAtHand).limit, Limit::kLine);
    q.message -= q.mtu;
    EXPECT_EQ(plan(q).way(Way::kAtHand).limit, Limit::kTxDepth);
  }
}

TEST(Plan, NoMessageFillsALineWithOneRequestAtATime) {
  Question q = at(1000);
  q.tx_depth = 1;
  EXPECT_EQ(plan(q).message, 0U);
}

// A loss costs go-back-N a window, selective repair less, boxes with room least; parity pays for messages,
// not for the line.
TEST(Plan, LossesOrderTheWays) {
  Question q = at(1000);
  q.nic_depth = 1U << 17U;
  q.loss = 1e-5;
  const Plan p = plan(q);
  EXPECT_LT(p.way(Way::kDeep).goodput_bps, p.way(Way::kSelective).goodput_bps);
  EXPECT_LT(p.way(Way::kSelective).goodput_bps, p.way(Way::kBoxes).goodput_bps);
  EXPECT_NEAR(p.way(Way::kBoxes).loss_leaves, 1, 1e-4);
  EXPECT_NEAR(p.way(Way::kBoxesParity).goodput_bps, p.best_bps * 16 / 18, p.best_bps * 1e-3);
  q.loss = 1e-3;
  q.message = 1U << 20U;
  const Plan lossy = plan(q);
  EXPECT_LT(lossy.parity.mean_us + 2000, lossy.repeat.mean_us);
  EXPECT_LT(lossy.parity.p99_us + 9000, lossy.repeat.p99_us);
  q.loss = 0;
  EXPECT_GT(plan(q).parity.mean_us, plan(q).repeat.mean_us);
}

TEST(Question, MistakesNameTheOption) {
  Question q;
  EXPECT_TRUE(q.validate());
  q.mtu = 1500;
  EXPECT_EQ(q.validate().error().message.substr(0, 11), "--mtu: 1500");
  q = {};
  q.loss = 1;
  EXPECT_FALSE(q.validate());
  q = {};
  q.loss = std::nan("");
  EXPECT_FALSE(q.validate());
  q = {};
  q.tx_depth = 0;
  EXPECT_FALSE(q.validate());
  q = {};
  q.rate = {};
  EXPECT_FALSE(q.validate());
}

}  // namespace
}  // namespace weft::wan
