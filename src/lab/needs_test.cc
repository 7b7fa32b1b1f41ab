// What an undecided claim says of itself: how many seeds would decide it, or that none would.
#include "lab/needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weft::lab {
namespace {

using ::testing::HasSubstr;

const Band kAboveOne{"> 1", 1, std::numeric_limits<double>::infinity(), true, false};
const Band kTwoToThree{"2 to 3", 2, 3, false, false};

class Needs : public testing::Test {
 protected:
  // Of one variant over another, at points whose paired ratios have these logarithms, seed by seed.
  Judgement of_logs(const std::vector<std::vector<double>>& points, const Band& rule,
                    const std::optional<Band>& trend, bool at_least = false) {
    e = {};
    e.metrics = {{"m", "m", "m", "us"}};
    e.variants = {{"a", "", {}}, {"b", "", {}}};
    e.axes = {{"load", {}}};
    Measure m;
    m.of = 0;
    m.over = 1;
    m.as = As::kRatio;
    m.points.emplace_back();
    for (std::size_t p = 0; p < points.size(); ++p) {
      e.axes[0].points.push_back({std::to_string(p), {}});
      m.points[0].push_back(p);
    }
    Samples s(e, static_cast<std::uint32_t>(points[0].size()));
    for (std::size_t p = 0; p < points.size(); ++p) {
      for (std::size_t i = 0; i < points[p].size(); ++i) {
        s.set(0, 0, p, i + 1, std::exp(points[p][i]), at_least);
        s.set(0, 1, p, i + 1, 1);
      }
    }
    m.reproduced = rule;
    m.trend = trend;
    e.claims = {{"c", "s", "p", "", "", {std::move(m)}}};
    return judge(e, s, [](const std::string&) -> Result<Computed> { return fail("none"); }).at(0);
  }

 private:
  Experiment e;  // what judgements point into
};

// Mean 0.05, deviation 0.05: 2.5706 x 0.05 / sqrt(6) = 0.0525 with six seeds, 2.4469 x 0.05 / sqrt(7) =
// 0.0462 with seven.
TEST_F(Needs, AreTheSeedsWhoseIntervalNoLongerReachesAcross) {
  const Judgement j = of_logs({{0, 0.05, 0.1}}, kAboveOne, kAboveOne);
  ASSERT_EQ(j.verdict, Verdict::kOpen);
  EXPECT_EQ(seeds_that_decide(j), 7U);
  EXPECT_EQ(j.needs, "7 seeds would decide it, if more of them differ as these 3 do.");
}

// Below 1 by as much, and a second cell that is sure: Holm asks 0.025 / 2 of it. Student's t is sqrt(n): at
// seven seeds 2.646 of 2.969, at eight 2.828 of 2.841, at nine 3.0 of 2.752.
TEST_F(Needs, CountTheCellsThatHolmCorrectsFor) {
  const Judgement one = of_logs({{0, -0.05, -0.1}}, kAboveOne, kAboveOne);
  EXPECT_EQ(seeds_that_decide(one), 7U);
  const Judgement two = of_logs({{0, -0.05, -0.1}, {1.0, 1.01, 1.02}}, kAboveOne, kAboveOne);
  ASSERT_EQ(two.verdict, Verdict::kOpen);
  EXPECT_EQ(seeds_that_decide(two), 9U);
}

TEST_F(Needs, NoNumberOfSeedsDecidesWhatLiesAtTheEdge) {
  const Band above_two{"> 2", 2, std::numeric_limits<double>::infinity(), true, false};
  const double two = std::log(2);
  const Judgement j = of_logs({{two - 0.05, two, two + 0.05}}, above_two, above_two);
  ASSERT_EQ(j.verdict, Verdict::kOpen);
  EXPECT_EQ(seeds_that_decide(j), 0U);
  EXPECT_EQ(j.needs, "30 seeds would not decide it: m, a over b lies at the edge of > 2.");
}

// 0.0462 with seven seeds, as above, is less than the logarithm of a twentieth more, 0.0488.
TEST_F(Needs, AreTheSeedsThatRuleOutADifferenceWhereThereIsNone) {
  const Judgement j = of_logs({{-0.05, 0, 0.05}}, kAboveOne, kAboveOne);
  ASSERT_EQ(j.verdict, Verdict::kOpen);
  EXPECT_EQ(seeds_that_decide(j), 7U);
}

TEST_F(Needs, ALowerBoundBelowTheRuleNeedsLongerRuns) {
  const Judgement j = of_logs({{-0.3, -0.31, -0.32}}, kAboveOne, kAboveOne, true);
  ASSERT_EQ(j.verdict, Verdict::kOpen);
  EXPECT_THAT(j.needs, HasSubstr("is a lower bound, because runs were cut off; longer runs would."));
}

TEST_F(Needs, OneSeedHasNoDeviation) {
  EXPECT_EQ(of_logs({{0.05}}, kAboveOne, kAboveOne).needs,
            "3 seeds are the fewest that can decide it, and it has one.");
  EXPECT_EQ(seeds_that_decide(of_logs({{1, 1.01}}, kAboveOne, kAboveOne)), 3U);
}

// Means and deviations over a grid: an undecided claim always carries its reason, and no other claim does.
TEST_F(Needs, AreSaidOfEveryUndecidedClaimAndOfNoOther) {
  std::size_t open = 0;
  std::size_t closed = 0;
  for (double mean = -0.5; mean < 1.6; mean += 0.0625) {
    for (const double away : {0.001, 0.05, 0.3, 1.0}) {
      for (const bool at_least : {false, true}) {
        const std::vector<double> all{mean - away, mean, mean + away};
        for (const auto& logs : {all, std::vector<double>{all[0], all[1]}, std::vector<double>{all[0]}}) {
          const Judgement j =
              of_logs({logs, all.size() == logs.size() ? all : logs}, kTwoToThree, kAboveOne, at_least);
          EXPECT_EQ(j.needs.empty(), j.verdict != Verdict::kOpen) << mean << " " << away;
          ++(j.verdict == Verdict::kOpen ? open : closed);
        }
      }
    }
  }
  EXPECT_GT(open, 100U);
  EXPECT_GT(closed, 50U);
}

}  // namespace
}  // namespace weft::lab
