// The benchmark's scenarios in small: what they claim about themselves holds.
#include "sim/world/bench.h"

#include <gtest/gtest.h>

#include "sim/world/simulation.h"

namespace weft::sim {
namespace {

TEST(Bench, EveryDataPacketIsSentOnceAndNothingIsDropped) {
  for (const bool incast : {true, false}) {
    const BenchRow row{"small", "", incast ? BenchKind::kIncast : BenchKind::kPermutation, 4, 1000, 1};
    Simulation run(bench_scenario(row));
    while (run.run(1'000'000)) {
    }
    const Totals t = run.totals();
    EXPECT_TRUE(run.complete());
    EXPECT_EQ(t.packets_sent - t.control, bench_data_packets(bench_scenario(row)));
    EXPECT_EQ(bench_data_packets(bench_scenario(row)), (incast ? 15U : 16U) * 2000U);
    EXPECT_EQ(t.control, t.packets_sent / 2) << "one ACK per packet";
    EXPECT_EQ(t.lost + t.queue_drops, 0U);
    EXPECT_EQ(run.packets_in_use(), 0U);
    if (incast) {
      EXPECT_GT(t.pauses, 0U);
    }
    // A hop costs at most its arrival and the end of one serialisation, and the hosts' own wake-ups.
    EXPECT_LT(t.events, t.link_hops * 5 / 2);
  }
}

// The receiver's link is the bottleneck and never idle. So n flows take n times the link's time for one flow,
// plus the way of the first packet to that link and the way of the last ACK back.
TEST(Bench, AnIncastTakesAsLongAsItsLastLinkNeeds) {
  const Scenario s = bench_scenario({"small", "", BenchKind::kIncast, 4, 1000, 1});
  Simulation run(s);
  while (run.run(1'000'000)) {
  }
  // 58 + 16 + 24 bytes around 1000; only a flow's first packet carries the 16.
  const std::int64_t link = gigabits(100).time_for({15ULL * (2000 * (1000 + 82) + 16)}).ps;
  EXPECT_GE(run.now().ps, link);
  EXPECT_LT(run.now().ps, link + 2 * s.derived.base_rtt.ps);
}

TEST(Bench, SrnicsSettingEndsWithEveryFlow) {
  Simulation run(bench_scenario({"small", "", BenchKind::kSrnic, 16, 1024, 1}));
  while (run.run(1'000'000)) {
  }
  EXPECT_TRUE(run.complete());
  EXPECT_GT(run.messages_done(), 5U);
  EXPECT_EQ(run.packets_in_use(), 0U);
}

}  // namespace
}  // namespace weft::sim
