// Connections in both worlds: programs that meet by the connection manager or find each other's mode by
// discovery, over networks that lose, repeat, reorder and corrupt (docs/ARCHITECTURE.md#one-run-both-worlds).
#include <gtest/gtest.h>

#include "tests/differential/compare.h"

namespace weft::differential {
namespace {

// Seeds 1 to `seeds`: everything that a connection can come to happens often, or little was compared.
void expect_the_same(Against against, std::uint64_t seeds) {
  Party::Counts all;
  std::uint64_t tied = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Compared c = compare_calls(seed, against);
    ASSERT_EQ(c.difference, "");
    tied += c.tied ? 1 : 0;
    all += c.counts;
  }
  EXPECT_LE(tied, seeds / 100);
  all.each([&](const char* name, std::uint64_t n) { EXPECT_GT(n, seeds / 20) << name; });
}

TEST(Calls, AreTheSameInTheSimulatorAndInTheEngine) { expect_the_same(Against::kShards, 600); }

TEST(Calls, AreTheSameInTheSimulatorAndInWholeSoftNics) { expect_the_same(Against::kNics, 250); }

// The comparison can fail: a message that only one world loses is noticed, whichever it is.
void expect_to_notice(Against against) {
  std::uint64_t noticed = 0;
  constexpr std::uint64_t kTries = 60;
  for (std::uint64_t seed = 1; seed <= kTries; ++seed) {
    const Sabotage sabotage{.forget = 1 + seed % 3, .lane = Lane::kServices};
    noticed += compare_calls(seed, against, sabotage).difference.empty() ? 0 : 1;
  }
  // Some plans have no third message, and some networks would have lost it.
  EXPECT_GT(noticed, kTries / 3);
}

TEST(Calls, DifferIfTheEngineLosesAMessage) { expect_to_notice(Against::kShards); }

TEST(Calls, DifferIfASoftNicLosesAMessage) { expect_to_notice(Against::kNics); }

}  // namespace
}  // namespace weft::differential
