// PCIe and stages by arithmetic.
#include "sim/nic/pcie.h"

#include <gtest/gtest.h>

#include "sim/nic/stage.h"

namespace weft::sim {
namespace {

Time at(std::int64_t ns) { return Time{} + nanoseconds(ns); }

// 8 bytes a nanosecond, so that bytes are easy to count.
PcieDesign simple() {
  PcieDesign d;
  d.rate = gigabits(64);
  d.round_trip = nanoseconds(1000);
  d.payload = 256;
  d.overhead = 8;
  d.reads = 2;
  d.request = 256;
  return d;
}

// A request of 8 bytes, the round trip, 256 + 8 bytes back.
TEST(Pcie, AReadTakesARoundTripAndItsBytes) {
  Pcie p(simple());
  EXPECT_EQ(p.read(at(0), Dma::kPayloadRead, 256), at(1 + 1000 + 33));
  EXPECT_EQ(p.read_latency(256), nanoseconds(1034));
  EXPECT_EQ(p.counters().of(Dma::kPayloadRead), 256U);
  EXPECT_EQ(p.counters().overhead_up, 8U);
  EXPECT_EQ(p.counters().overhead_down, 8U);
}

// Two requests may be under way: the third begins when the first has been answered.
TEST(Pcie, BoundsTheReadsUnderWay) {
  Pcie p(simple());
  EXPECT_EQ(p.read(at(0), Dma::kPayloadRead, 256), at(1034));
  EXPECT_EQ(p.read(at(0), Dma::kPayloadRead, 256), at(1067));
  EXPECT_EQ(p.read(at(0), Dma::kPayloadRead, 256), at(1034 + 1000 + 33));
  EXPECT_EQ(p.counters().read_waited, nanoseconds(1034));
}

TEST(Pcie, SmallReadsDoNotWaitBehindPayload) {
  PcieDesign d = simple();
  d.reads = 64;
  Pcie p(d);
  Time payload{};
  for (int i = 0; i < 16; ++i) payload = p.read(at(0), Dma::kPayloadRead, 256);
  EXPECT_LT(p.read(at(0), Dma::kSendWqe, 64), payload);
}

TEST(Pcie, WritesAreThereOneWayLaterAndInOrder) {
  Pcie p(simple());
  EXPECT_EQ(p.write(at(0), Dma::kPayloadWrite, 512), at(66 + 500));
  EXPECT_EQ(p.write(at(0), Dma::kCompletion, 64), at(66 + 9 + 500));
  EXPECT_EQ(p.counters().extra(), 64U);
}

TEST(Stage, TakesAnItemEveryIntervalAndKeepsItForItsDepth) {
  Stage s(nanoseconds(2), nanoseconds(10));
  EXPECT_EQ(s.pass(at(0)), at(10));
  EXPECT_EQ(s.pass(at(0)), at(12));
  EXPECT_EQ(s.pass(at(100)), at(110));
  EXPECT_EQ(s.pass(at(100), nanoseconds(8)), at(118));  // wider than a step
  EXPECT_EQ(s.waited(), nanoseconds(4));
  EXPECT_EQ(s.busy(), nanoseconds(14));
}

// Little's law holds when everybody has left, and not if somebody left at another time than was said.
TEST(Gauge, BalancesWhenEveryItemLeavesAsItCame) {
  Gauge good;
  good.enter(at(0));
  good.enter(at(5));
  good.leave(at(0), at(20));
  EXPECT_FALSE(good.balanced());
  good.leave(at(5), at(30));
  EXPECT_TRUE(good.balanced());
  EXPECT_EQ(good.area(), 45'000U);
  Gauge wrong;
  wrong.enter(at(0));
  wrong.leave(at(1), at(20));
  EXPECT_FALSE(wrong.balanced());
}

}  // namespace
}  // namespace weft::sim
