// One scenario, two worlds, one log: what the simulator says is what the soft NIC does. At each
// host every packet sent and every completion must be the same, in the same order, at the same picosecond;
// over a thousand seeds with and without loss, in every mode. It does not cover threads or sockets: the live
// tests and the thread sanitizer do.
#include <gtest/gtest.h>

#include "tests/differential/script.h"

namespace weft::differential {
namespace {

constexpr std::uint64_t kSeeds = 1000;

class DifferentialTest : public ::testing::TestWithParam<wire::Mode> {};

TEST_P(DifferentialTest, BothWorldsSendTheSamePacketsAtTheSameTimes) {
  std::size_t lines = 0;
  std::uint32_t finished = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Plan plan = make_plan(seed, GetParam());
    Script simulated(plan);
    Script live(plan);
    run_simulated(plan.world, simulated);
    run_live(plan.world, live);
    ASSERT_EQ(Programs::difference(simulated, live), "");
    ASSERT_TRUE(simulated.same_memory(live));
    lines += simulated.logged(0, Lane::kDevice).size() + simulated.logged(1, Lane::kDevice).size();
    finished += simulated.finished() ? 1 : 0;
  }
  EXPECT_GT(lines, 5000U);
  EXPECT_GT(finished, kSeeds * 9 / 10) << "a run that fails early compares little";
}

// The comparison can fail: a packet that only one world loses is noticed.
TEST_P(DifferentialTest, OneLostPacketMakesADifference) {
  const Plan plan = make_plan(1, GetParam());
  Script simulated(plan);
  Script live(plan);
  run_simulated(plan.world, simulated);
  run_live(plan.world, live, {.forget = 3});
  EXPECT_NE(Programs::difference(simulated, live), "");
}

INSTANTIATE_TEST_SUITE_P(Modes, DifferentialTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft::differential
