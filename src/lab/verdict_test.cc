#include "lab/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace weft::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result<Computed> no_account(const std::string& name) {
  if (name == "bdp") return Computed{120, "kB", "bytes in flight"};
  return fail("there is no quantity '" + name + "'");
}

Band side(const char* text, double low, double high) { return {text, low, high, false, false}; }

// Two variants, one metric, an axis of three points unless `points` is 1.
Experiment experiment(std::size_t points) {
  Experiment e;
  e.metrics = {{"m", "m", "m", "us"}};
  e.variants = {{"a", "", {}}, {"b", "", {}}};
  if (points > 1) {
    e.axes = {{"load", {}}};
    for (std::size_t p = 0; p < points; ++p) e.axes[0].points.push_back({std::to_string(p), {}});
  }
  return e;
}

Measure ratio(const Experiment& e) {
  Measure m;
  m.of = 0;
  m.over = 1;
  m.as = As::kRatio;
  for (const Axis& a : e.axes) {
    auto& all = m.points.emplace_back();
    for (std::size_t i = 0; i < a.points.size(); ++i) all.push_back(i);
  }
  return m;
}

Judgement judge_one(Experiment& e, Measure m, const Samples& samples) {
  e.claims = {{"c", "s", "p", "", "", {std::move(m)}}};
  return judge(e, samples, no_account).at(0);
}

// a is `a[seed]`, b is `b[seed]`, at one point.
Judgement of_pairs(const std::vector<double>& a, const std::vector<double>& b, std::optional<Band> reproduced,
                   std::optional<Band> trend, As as = As::kRatio) {
  Experiment e = experiment(1);
  Samples s(e, static_cast<std::uint32_t>(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    s.set(0, 0, 0, i + 1, a[i]);
    s.set(0, 1, 0, i + 1, b[i]);
  }
  Measure m = ratio(e);
  m.as = as;
  m.reproduced = std::move(reproduced);
  m.trend = std::move(trend);
  return judge_one(e, m, s);
}

const Band kTwoToThree = side("2 to 3", 2, 3);
const Band kAboveOne{"> 1", 1, 1e300, true, false};

TEST(Verdict, ReproducedIfTheIntervalMeetsTheBand) {
  const Judgement j = of_pairs({25, 26, 24}, {10, 10, 10}, kTwoToThree, kAboveOne);
  EXPECT_EQ(j.verdict, Verdict::kReproduced);
  EXPECT_DOUBLE_EQ(j.findings[0].ours.mean, 2.5);
  EXPECT_EQ(j.findings[0].unit, "x");
  EXPECT_EQ(j.because, "");
}

TEST(Verdict, TrendIfOnlyTheSideHolds) {
  const Judgement j = of_pairs({15, 15.1, 14.9}, {10, 10, 10}, kTwoToThree, kAboveOne);
  EXPECT_EQ(j.verdict, Verdict::kTrend);
  EXPECT_THAT(j.because, HasSubstr("the rule 2 to 3"));
}

// The mean is on the claim's side, the interval is not: that is no evidence.
TEST(Verdict, UndecidedIfTheIntervalReachesAcross) {
  EXPECT_EQ(of_pairs({11, 9, 14}, {10, 10, 10}, kTwoToThree, kAboveOne).verdict, Verdict::kOpen);
  // Nor does an interval count that meets the band because it meets everything.
  EXPECT_EQ(of_pairs({5, 60, 10}, {10, 10, 10}, kTwoToThree, kAboveOne).verdict, Verdict::kOpen);
  // Without a trend the band alone decides.
  EXPECT_EQ(of_pairs({5, 60, 10}, {10, 10, 10}, kTwoToThree, std::nullopt).verdict, Verdict::kReproduced);
}

TEST(Verdict, AClaimWithATrendOnlyIsNeverMoreThanThat) {
  EXPECT_EQ(of_pairs({25, 26, 24}, {10, 10, 10}, std::nullopt, kAboveOne).verdict, Verdict::kTrend);
  EXPECT_EQ(of_pairs({5, 5, 5}, {10, 10, 10}, std::nullopt, kAboveOne).verdict, Verdict::kNot);
}

// One measure that is clearly outside is enough, whatever the others leave open.
TEST(Verdict, NotReproducedIfOneIntervalIsOutside) {
  Experiment e = experiment(2);
  Samples s(e, 2);
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    s.set(0, 0, 0, seed, 5);
    s.set(0, 0, 1, seed, seed == 1 ? 5 : 20);
    for (std::size_t p = 0; p < 2; ++p) s.set(0, 1, p, seed, 10);
  }
  Measure m = ratio(e);
  m.trend = kAboveOne;
  const Judgement j = judge_one(e, m, s);
  EXPECT_EQ(j.verdict, Verdict::kNot);
  EXPECT_TRUE(j.findings[1].open);
  EXPECT_THAT(j.because, HasSubstr("at load=0"));
  EXPECT_THAT(j.because, Not(HasSubstr("at load=1")));
}

// What was cut off may be any amount larger: it is on one side of a rule, but never within two limits.
TEST(Verdict, ALowerBoundMeetsOnlyWhatIsOpenAbove) {
  const auto of = [](double a, bool a_bound, bool b_bound, As as, std::optional<Band> reproduced) {
    Experiment e = experiment(1);
    Samples s(e, 1);
    s.set(0, 0, 0, 1, a, a_bound);
    s.set(0, 1, 0, 1, 10, b_bound);
    Measure m = ratio(e);
    m.as = as;
    m.reproduced = std::move(reproduced);
    m.trend = Band{"> 1", 1, std::numeric_limits<double>::infinity(), true, false};
    return judge_one(e, m, s);
  };
  const Judgement far = of(250, true, false, As::kRatio, kTwoToThree);
  EXPECT_EQ(far.verdict, Verdict::kTrend);
  EXPECT_TRUE(far.findings[0].ours.at_least);
  EXPECT_THAT(far.because, HasSubstr("at least 25.0x"));
  EXPECT_EQ(of(25, true, false, As::kRatio, kTwoToThree).verdict, Verdict::kTrend);
  EXPECT_EQ(of(25, false, false, As::kRatio, kTwoToThree).verdict, Verdict::kReproduced);
  // 0.5 or more: perhaps above one.
  EXPECT_EQ(of(5, true, false, As::kRatio, kTwoToThree).verdict, Verdict::kOpen);
  const Band above_two{">= 2", 2, std::numeric_limits<double>::infinity(), false, false};
  EXPECT_EQ(of(25, true, false, As::kRatio, above_two).verdict, Verdict::kReproduced);
  // Divided by a lower bound, or taken from one, it bounds nothing.
  EXPECT_EQ(of(250, false, true, As::kRatio, kTwoToThree).verdict, Verdict::kIncomplete);
  EXPECT_EQ(of(5, true, false, As::kPercentLess, kTwoToThree).verdict, Verdict::kIncomplete);
}

// Both variants double with the second seed; their ratio does not move at all.
TEST(Verdict, RatiosArePairedBySeed) {
  const Judgement j = of_pairs({20, 40, 80}, {10, 20, 40}, kTwoToThree, kAboveOne);
  EXPECT_EQ(j.findings[0].ours.low, 2);
  EXPECT_EQ(j.findings[0].ours.high, 2);
  EXPECT_EQ(j.verdict, Verdict::kReproduced);
}

TEST(Verdict, PercentagesHaveTheirSigns) {
  EXPECT_DOUBLE_EQ(of_pairs({5}, {10}, kTwoToThree, {}, As::kPercentLess).findings[0].ours.mean, 50);
  EXPECT_DOUBLE_EQ(of_pairs({5}, {10}, kTwoToThree, {}, As::kPercentMore).findings[0].ours.mean, -50);
}

TEST(Verdict, OneSeedIsAPoint) {
  EXPECT_EQ(of_pairs({25}, {10}, kTwoToThree, kAboveOne).verdict, Verdict::kReproduced);
  EXPECT_EQ(of_pairs({31}, {10}, kTwoToThree, kAboveOne).verdict, Verdict::kTrend);
}

TEST(Verdict, DividingByZeroIsIncompleteAndSaysSo) {
  const Judgement j = of_pairs({1, 1}, {1, 0}, kTwoToThree, kAboveOne);
  EXPECT_EQ(j.verdict, Verdict::kIncomplete);
  EXPECT_THAT(j.because, HasSubstr("is 0 with seed 2"));
}

TEST(Verdict, MissingRunsAreIncomplete) {
  Experiment e = experiment(1);
  Samples s(e, 2);
  s.set(0, 0, 0, 1, 5);
  s.set(0, 1, 0, 1, 5);
  Measure m = ratio(e);
  m.trend = kAboveOne;
  EXPECT_EQ(judge_one(e, m, s).verdict, Verdict::kIncomplete);
  s.set(0, 0, 0, 2, 5);
  s.set_missing(0, 1, 0, 2, "3 flows failed");
  const Judgement j = judge_one(e, m, s);
  EXPECT_EQ(j.verdict, Verdict::kIncomplete);
  EXPECT_THAT(j.because, HasSubstr("3 flows failed"));
}

// a/b is 1, 2 and 4 at the three points, with both seeds.
class OverPoints : public ::testing::Test {
 protected:
  OverPoints() {
    for (std::size_t p = 0; p < 3; ++p) {
      for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        samples_.set(0, 0, p, seed, 10.0 * static_cast<double>(1U << p));
        samples_.set(0, 1, p, seed, 10);
      }
    }
  }
  Judgement with(Reduce reduce, const std::optional<Band>& reproduced) {
    Measure m = ratio(e_);
    m.reduce = reduce;
    m.reproduced = reproduced;
    return judge_one(e_, m, samples_);
  }
  Experiment e_ = experiment(3);
  Samples samples_{e_, 2};
};

TEST_F(OverPoints, EachIsAMeasureOfItsOwn) {
  const Judgement j = with(Reduce::kEach, side(">= 2", 2, 1e300));
  ASSERT_EQ(j.findings.size(), 3U);
  EXPECT_THAT(j.findings[1].what, HasSubstr("at load=1"));
  EXPECT_EQ(j.verdict, Verdict::kNot);
  EXPECT_THAT(j.because, HasSubstr("load=0"));
  EXPECT_EQ(with(Reduce::kEach, side(">= 1", 1, 1e300)).verdict, Verdict::kReproduced);
}

TEST_F(OverPoints, ExtremesAndMeans) {
  EXPECT_DOUBLE_EQ(with(Reduce::kMax, kTwoToThree).findings.at(0).ours.mean, 4);
  EXPECT_DOUBLE_EQ(with(Reduce::kMin, kTwoToThree).findings.at(0).ours.mean, 1);
  EXPECT_DOUBLE_EQ(with(Reduce::kMean, kTwoToThree).findings.at(0).ours.mean, 7.0 / 3);
  EXPECT_EQ(with(Reduce::kMean, kTwoToThree).verdict, Verdict::kReproduced);
}

TEST_F(OverPoints, OrderAlongAnAxis) {
  EXPECT_DOUBLE_EQ(with(Reduce::kIncreasing, kTwoToThree).findings.at(0).ours.mean, 1);
  EXPECT_DOUBLE_EQ(with(Reduce::kDecreasing, kTwoToThree).findings.at(0).ours.mean, -1);
  samples_.set(0, 0, 2, 2, 15);  // with the second seed the last step goes down: one pair of three
  EXPECT_NEAR(with(Reduce::kIncreasing, kTwoToThree).findings.at(0).ours.mean, (1 + 1.0 / 3) / 2, 1e-12);
}

// a at the last point is four times a at the first; b does not matter.
TEST_F(OverPoints, OverMayBeMeasuredElsewhere) {
  Measure m = ratio(e_);
  m.over = 0;
  m.points = {{2}};
  m.over_points = {0};
  m.reproduced = side("4", 4, 4);
  const Judgement j = judge_one(e_, m, samples_);
  EXPECT_EQ(j.verdict, Verdict::kReproduced);
  EXPECT_THAT(j.findings[0].what, HasSubstr("a over a at load=0, at load=2"));
}

TEST_F(OverPoints, OnlyChosenPointsCount) {
  Measure m = ratio(e_);
  m.points = {{0, 2}};
  m.reduce = Reduce::kMean;
  m.reproduced = side("2.5", 2.5, 2.5);
  EXPECT_EQ(judge_one(e_, m, samples_).verdict, Verdict::kReproduced);
}

// With a second axis an order is looked at for each of its points.
TEST(Verdict, OrderIsJudgedForEveryPointOfTheOtherAxes) {
  Experiment e = experiment(2);
  e.axes.push_back({"cc", {{"none", {}}, {"dcqcn", {}}}});
  Samples s(e, 1);
  for (std::size_t p = 0; p < 4; ++p) {
    const auto at = point_of(e, p);
    s.set(0, 0, p, 1, at[1] == 0 ? 1.0 + static_cast<double>(at[0]) : 2.0 - static_cast<double>(at[0]));
    s.set(0, 1, p, 1, 1);
  }
  Measure m = ratio(e);
  m.reduce = Reduce::kIncreasing;
  m.along = 0;
  m.trend = Band{"> 0", 0, 1e300, true, false};
  const Judgement j = judge_one(e, m, s);
  ASSERT_EQ(j.findings.size(), 2U);
  EXPECT_TRUE(j.findings[0].in_trend);
  EXPECT_FALSE(j.findings[1].in_trend);
  EXPECT_THAT(j.findings[1].what, HasSubstr("cc=dcqcn"));
}

TEST(Verdict, QuantitiesAreLookedUp) {
  Experiment e;
  Measure m;
  m.account = "bdp";
  m.reproduced = side("115 to 125", 115, 125);
  const Judgement j = judge_one(e, m, Samples(e, 0));
  EXPECT_EQ(j.verdict, Verdict::kReproduced);
  EXPECT_EQ(j.findings[0].what, "bytes in flight");
  m.account = "other";
  EXPECT_THAT(judge_one(e, m, Samples(e, 0)).because, HasSubstr("no quantity 'other'"));
}

}  // namespace
}  // namespace weft::lab
