// One scenario, two worlds, one log: what the simulator says is what the soft NIC does. At each
// host every packet sent and every completion must be the same, in the same order, at the same picosecond;
// over a thousand seeds with and without loss, in every mode. It does not cover threads or sockets: the live
// tests and the thread sanitizer do.
#include <gtest/gtest.h>

#include "tests/differential/worlds.h"

namespace weft::differential {
namespace {

constexpr std::uint64_t kSeeds = 1000;

// The first difference, or nothing.
std::string difference(const Script& simulated, const Script& live) {
  for (std::size_t h = 0; h < 2; ++h) {
    const auto& s = simulated.logged(h);
    const auto& l = live.logged(h);
    for (std::size_t i = 0; i < std::max(s.size(), l.size()); ++i) {
      const std::string a = i < s.size() ? s[i] : "(nothing more)";
      const std::string b = i < l.size() ? l[i] : "(nothing more)";
      if (a != b)
        return "host " + std::to_string(h) + ", line " + std::to_string(i) + "\n  simulated: " + a +
               "\n  live:      " + b;
    }
  }
  return {};
}

class DifferentialTest : public ::testing::TestWithParam<wire::Mode> {};

TEST_P(DifferentialTest, BothWorldsSendTheSamePacketsAtTheSameTimes) {
  std::size_t lines = 0;
  std::uint32_t finished = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Plan plan = make_plan(seed, GetParam());
    Script simulated(plan);
    Script live(plan);
    run_simulated(plan, seed, simulated);
    run_live(plan, seed, live);
    ASSERT_EQ(difference(simulated, live), "");
    lines += simulated.logged(0).size() + simulated.logged(1).size();
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
  run_simulated(plan, 1, simulated);
  run_live(plan, 1, live, 3);
  EXPECT_NE(difference(simulated, live), "");
}

INSTANTIATE_TEST_SUITE_P(Modes, DifferentialTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft::differential
