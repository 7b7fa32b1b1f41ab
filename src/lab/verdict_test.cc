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
constexpr double kInfinite = std::numeric_limits<double>::infinity();
const Band kAbove{"> 1", 1, kInfinite, true, false};

TEST(Verdict, ReproducedIfTheIntervalLiesInTheBand) {
  const Judgement j = of_pairs({25, 25.5, 24.5}, {10, 10, 10}, kTwoToThree, kAboveOne);
  EXPECT_EQ(j.verdict, Verdict::kReproduced);
  EXPECT_NEAR(j.findings[0].ours.mean, 2.5, 0.01);
  EXPECT_EQ(j.findings[0].unit, "x");
  EXPECT_EQ(j.because, "");
}

// Logs of 2.7, 2.9, 3.1 give 2.90 [2.45, 3.42]: the middle is inside and the interval narrower than the band.
TEST(Verdict, ReproducedIfTheMiddleDoesAndTheIntervalIsNarrowerThanTheBand) {
  const Judgement j = of_pairs({27, 29, 31}, {10, 10, 10}, kTwoToThree, kAboveOne);
  EXPECT_NEAR(j.findings[0].ours.low, 2.446, 0.01);
  EXPECT_NEAR(j.findings[0].ours.high, 3.4375, 0.001);
  EXPECT_EQ(j.verdict, Verdict::kReproduced);
}

// A middle outside of the band, or a wider interval, overlaps it at most.
TEST(Verdict, CompatibleIfTheyMerelyOverlap) {
  const Judgement outside = of_pairs({31, 32, 33}, {10, 10, 10}, kTwoToThree, kAboveOne);
  EXPECT_LT(outside.findings[0].ours.low, 3);
  EXPECT_EQ(outside.verdict, Verdict::kCompatible);
  EXPECT_THAT(outside.because, HasSubstr("the rule 2 to 3"));
  EXPECT_EQ(of_pairs({24, 29, 29.5}, {10, 10, 10}, kTwoToThree, kAboveOne).verdict, Verdict::kCompatible);
}

// What the other points have more of is not missing there, and counts at them.
TEST(Verdict, APointWithFewerSeedsIsJudgedByThose) {
  Experiment e = experiment(2);
  e.axes[0].points[1].seeds = 3;
  Samples s(e, 5);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (std::size_t point = 0; point < 2; ++point) {
      if (seed > e.seeds_at(point, 5)) continue;
      s.set(0, 0, point, seed, point == 0 ? 25 : 24 + 0.1 * static_cast<double>(seed));
      s.set(0, 1, point, seed, 10);
    }
  }
  Measure m = ratio(e);
  m.reproduced = kTwoToThree;
  const Judgement each = judge_one(e, m, s);
  ASSERT_EQ(each.findings.size(), 2U);
  ASSERT_EQ(each.findings[0].missing + each.findings[1].missing, "");
  EXPECT_EQ(each.findings[0].cells[0].values.size(), 5U);
  EXPECT_EQ(each.findings[1].cells[0].values.size(), 3U);
  EXPECT_NEAR(each.findings[1].ours.mean, 2.42, 0.001);
  EXPECT_EQ(each.verdict, Verdict::kReproduced);
  m.reduce = Reduce::kAlways;
  EXPECT_EQ(judge_one(e, m, s).verdict, Verdict::kReproduced);
  EXPECT_EQ(summary(e, s, 0, 0, 1).missing, "");
  // What compares the two points has the seeds of both.
  m.reduce = Reduce::kEach;
  m.points = {{0}};
  m.over_points = {1};
  EXPECT_EQ(judge_one(e, m, s).findings[0].cells[0].values.size(), 3U);
}

TEST(Verdict, TrendIfOnlyTheSideHolds) {
  const Judgement j = of_pairs({15, 15.1, 14.9}, {10, 10, 10}, kTwoToThree, kAboveOne);
  EXPECT_EQ(j.verdict, Verdict::kTrend);
  EXPECT_THAT(j.because, HasSubstr("the rule 2 to 3"));
}

// The mean is on the claim's side, the interval is not: that is no evidence.
TEST(Verdict, UndecidedIfTheIntervalReachesAcross) {
  EXPECT_EQ(of_pairs({11, 9, 24}, {10, 10, 10}, kTwoToThree, kAboveOne).verdict, Verdict::kOpen);
  EXPECT_EQ(of_pairs({5, 60, 10}, {10, 10, 10}, kTwoToThree, kAboveOne).verdict, Verdict::kOpen);
  EXPECT_EQ(of_pairs({5, 60, 10}, {10, 10, 10}, kTwoToThree, std::nullopt).verdict, Verdict::kOpen);
}

TEST(Verdict, ATieIsSaidToBeOneUnlessManyCellsLeaveItOpen) {
  const Judgement j = of_pairs({10.1, 10.05, 9.98}, {10, 10, 10}, kAbove, kAbove);
  EXPECT_EQ(j.verdict, Verdict::kNot);
  EXPECT_THAT(j.because, HasSubstr("the rule > 1: no difference that is worth the name"));
  // One seed in three lies further off, so the interval is wide.
  EXPECT_EQ(of_pairs({10.1, 10.05, 9.4}, {10, 10, 10}, kAbove, kAbove).verdict, Verdict::kOpen);
}

// What compares is a factor: its interval never reaches zero, however few and far apart the seeds are.
TEST(Verdict, IntervalsOfFactorsAreNeverNegative) {
  const Judgement j = of_pairs({5, 60, 10}, {10, 10, 10}, kTwoToThree, kAboveOne);
  EXPECT_GT(j.findings[0].ours.low, 0);
  const Judgement more = of_pairs({5, 60, 10}, {10, 10, 10}, kTwoToThree, kAboveOne, As::kPercentMore);
  EXPECT_GT(more.findings[0].ours.low, -100);
  EXPECT_NEAR(more.findings[0].ours.low, 100 * (j.findings[0].ours.low - 1), 1e-9);
  const Judgement less = of_pairs({5, 60, 10}, {10, 10, 10}, kTwoToThree, kAboveOne, As::kPercentLess);
  EXPECT_LT(less.findings[0].ours.high, 100);
  EXPECT_NEAR(less.findings[0].ours.high, 100 * (1 - j.findings[0].ours.low), 1e-9);
  EXPECT_NEAR(less.findings[0].ours.low, 100 * (1 - j.findings[0].ours.high), 1e-9);
}

// One seed is no evidence, nor are two, wherever they lie.
TEST(Verdict, FewerThanThreeSeedsNeverDecide) {
  for (const double a : {2.5, 0.5, 31.0}) {
    const Judgement one = of_pairs({10 * a}, {10}, kTwoToThree, kAboveOne);
    EXPECT_EQ(one.verdict, Verdict::kOpen);
    EXPECT_EQ(one.because, "one seed decides nothing");
    EXPECT_EQ(of_pairs({10 * a, 10 * a}, {10, 10}, kTwoToThree, kAboveOne).verdict, Verdict::kOpen);
    EXPECT_NE(of_pairs({10 * a, 10 * a, 10 * a}, {10, 10, 10}, kTwoToThree, kAboveOne).verdict,
              Verdict::kOpen);
  }
}

TEST(Verdict, AClaimWithATrendOnlyIsNeverMoreThanThat) {
  EXPECT_EQ(of_pairs({25, 26, 24}, {10, 10, 10}, std::nullopt, kAboveOne).verdict, Verdict::kTrend);
  EXPECT_EQ(of_pairs({5, 5, 5}, {10, 10, 10}, std::nullopt, kAboveOne).verdict, Verdict::kNot);
}

// One measure that is clearly outside is enough, whatever the others leave open.
TEST(Verdict, NotReproducedIfOneIntervalIsOutside) {
  Experiment e = experiment(2);
  Samples s(e, 3);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    s.set(0, 0, 0, seed, 5);
    s.set(0, 0, 1, seed, seed == 1 ? 5 : 20);
    for (std::size_t p = 0; p < 2; ++p) s.set(0, 1, p, seed, 10);
  }
  Measure m = ratio(e);
  m.trend = kAboveOne;
  const Judgement j = judge_one(e, m, s);
  EXPECT_EQ(j.verdict, Verdict::kNot);
  EXPECT_EQ(j.findings[1].grade, Grade::kOpen);
  EXPECT_THAT(j.because, HasSubstr("at load=0"));
  EXPECT_THAT(j.because, Not(HasSubstr("at load=1")));
}

// What was cut off may be any amount larger: it is on one side of a rule, but never within two limits.
TEST(Verdict, ALowerBoundMeetsOnlyWhatIsOpenAbove) {
  const auto of = [](double a, bool a_bound, bool b_bound, As as, std::optional<Band> reproduced) {
    Experiment e = experiment(1);
    Samples s(e, 3);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      s.set(0, 0, 0, seed, a, a_bound);
      s.set(0, 1, 0, seed, 10, b_bound);
    }
    Measure m = ratio(e);
    m.as = as;
    m.reproduced = std::move(reproduced);
    m.trend = Band{"> 1", 1, std::numeric_limits<double>::infinity(), true, false};
    return judge_one(e, m, s);
  };
  const Judgement far = of(250, true, false, As::kRatio, kTwoToThree);
  EXPECT_EQ(far.verdict, Verdict::kTrend);
  EXPECT_TRUE(far.findings[0].ours.at_least);
  EXPECT_THAT(far.because, HasSubstr("at least 25.0"));
  EXPECT_EQ(of(25, true, false, As::kRatio, kTwoToThree).verdict, Verdict::kCompatible);
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
  EXPECT_DOUBLE_EQ(j.findings[0].ours.low, 2);
  EXPECT_DOUBLE_EQ(j.findings[0].ours.high, 2);
  EXPECT_EQ(j.verdict, Verdict::kReproduced);
}

TEST(Verdict, PercentagesHaveTheirSigns) {
  EXPECT_DOUBLE_EQ(of_pairs({5}, {10}, kTwoToThree, {}, As::kPercentLess).findings[0].ours.mean, 50);
  EXPECT_DOUBLE_EQ(of_pairs({5}, {10}, kTwoToThree, {}, As::kPercentMore).findings[0].ours.mean, -50);
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

// a/b is 1, 2 and 4 at the three points, with all seeds.
class OverPoints : public ::testing::Test {
 protected:
  OverPoints() {
    for (std::size_t p = 0; p < 3; ++p) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
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
  Samples samples_{e_, 3};
};

TEST_F(OverPoints, EachIsAMeasureOfItsOwn) {
  const Judgement j = with(Reduce::kEach, side(">= 2", 2, 1e300));
  ASSERT_EQ(j.findings.size(), 3U);
  EXPECT_THAT(j.findings[1].what, HasSubstr("at load=1"));
  EXPECT_EQ(j.verdict, Verdict::kNot);
  EXPECT_THAT(j.because, HasSubstr("load=0"));
  EXPECT_EQ(with(Reduce::kEach, side(">= 1", 1, 1e300)).verdict, Verdict::kReproduced);
}

// The mean of factors is the geometric one.
TEST_F(OverPoints, Means) {
  EXPECT_NEAR(with(Reduce::kMean, kTwoToThree).findings.at(0).ours.mean, 2, 1e-12);
  EXPECT_EQ(with(Reduce::kMean, side("1.9 to 2.1", 1.9, 2.1)).verdict, Verdict::kReproduced);
}

// "Always" is one finding: the worst cell, and how many do what.
TEST_F(OverPoints, AlwaysHoldsForEveryCell) {
  EXPECT_EQ(with(Reduce::kAlways, side(">= 1", 1, 1e300)).verdict, Verdict::kReproduced);
  const Judgement j = with(Reduce::kAlways, side(">= 2", 2, 1e300));
  ASSERT_EQ(j.findings.size(), 1U);
  EXPECT_EQ(j.verdict, Verdict::kNot);
  EXPECT_NEAR(j.findings[0].ours.mean, 1, 1e-12);
  EXPECT_EQ(j.findings[0].note, "load=0; of 3 cells 2 yes, 1 no");
}

// "Up to 4": the largest is in the band, whatever the others are; not if it exceeds it, nor if none reaches
// it.
TEST_F(OverPoints, UpToIsReachedAndNotExceeded) {
  const auto up_to = [&](double low, double high) {
    Measure m = ratio(e_);
    m.reduce = Reduce::kUpTo;
    m.reproduced = side("band", low, high);
    m.trend = kAboveOne;
    return judge_one(e_, m, samples_);
  };
  EXPECT_EQ(up_to(3, 5).verdict, Verdict::kReproduced);
  EXPECT_NEAR(up_to(3, 5).findings.at(0).ours.mean, 4, 1e-12);
  EXPECT_EQ(up_to(2.5, 3.5).verdict, Verdict::kTrend);
  EXPECT_EQ(up_to(5, 7).verdict, Verdict::kTrend);
}

TEST_F(OverPoints, OrderAlongAnAxis) {
  EXPECT_DOUBLE_EQ(with(Reduce::kIncreasing, kTwoToThree).findings.at(0).ours.mean, 1);
  EXPECT_DOUBLE_EQ(with(Reduce::kDecreasing, kTwoToThree).findings.at(0).ours.mean, -1);
  samples_.set(0, 0, 2, 2, 15);  // with the second seed the last step goes down: one pair of three
  const Finding f = with(Reduce::kIncreasing, kTwoToThree).findings.at(0);
  EXPECT_NEAR(f.ours.mean, (2 + 1.0 / 3) / 3, 1e-12);
  EXPECT_EQ(f.ours.high, 1);  // tau knows no more
}

// "buffer 60 KB, default, buffer 480 KB" is the order that is meant, wherever the axis has its points.
TEST_F(OverPoints, AnOrderIsThatInWhichThePointsAreNamed) {
  Measure m = ratio(e_);
  m.reduce = Reduce::kIncreasing;
  m.trend = Band{"> 0", 0, 1e300, true, false};
  m.points = {{1, 0, 2}};  // the measure is 2, 1, 4 there
  EXPECT_NEAR(judge_one(e_, m, samples_).findings.at(0).ours.mean, 1.0 / 3, 1e-12);
  m.points = {{2, 1, 0}};
  EXPECT_DOUBLE_EQ(judge_one(e_, m, samples_).findings.at(0).ours.mean, -1);
}

// a at the last point is four times a at the first; b does not matter.
TEST_F(OverPoints, OverMayBeMeasuredElsewhere) {
  Measure m = ratio(e_);
  m.over = 0;
  m.points = {{2}};
  m.over_points = {0};
  m.reproduced = side("4", 3.99, 4.01);
  const Judgement j = judge_one(e_, m, samples_);
  EXPECT_EQ(j.verdict, Verdict::kReproduced);
  EXPECT_THAT(j.findings[0].what, HasSubstr("a over a at load=0, at load=2"));
}

TEST_F(OverPoints, OnlyChosenPointsCount) {
  Measure m = ratio(e_);
  m.points = {{0, 2}};
  m.reduce = Reduce::kMean;
  m.reproduced = side("2", 1.99, 2.01);
  EXPECT_EQ(judge_one(e_, m, samples_).verdict, Verdict::kReproduced);
}

// With a second axis an order is looked at for each of its points.
TEST(Verdict, OrderIsJudgedForEveryPointOfTheOtherAxes) {
  Experiment e = experiment(2);
  e.axes.push_back({"cc", {{"none", {}}, {"dcqcn", {}}}});
  Samples s(e, 3);
  for (std::size_t p = 0; p < 4; ++p) {
    const auto at = point_of(e, p);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      s.set(0, 0, p, seed, at[1] == 0 ? 1.0 + static_cast<double>(at[0]) : 2.0 - static_cast<double>(at[0]));
      s.set(0, 1, p, seed, 1);
    }
  }
  Measure m = ratio(e);
  m.reduce = Reduce::kIncreasing;
  m.along = 0;
  m.trend = Band{"> 0", 0, 1e300, true, false};
  const Judgement j = judge_one(e, m, s);
  ASSERT_EQ(j.findings.size(), 2U);
  EXPECT_EQ(j.findings[0].grade, Grade::kTrend);
  EXPECT_EQ(j.findings[1].grade, Grade::kRefuted);
  EXPECT_THAT(j.findings[1].what, HasSubstr("cc=dcqcn"));
}

// Twenty cells that are truly 1 and noisy: by its own interval one of them lies below, and "always >= 1"
// would be refuted by chance. By Holm's correction it is not; a cell that is far below is found all the same.
TEST(Verdict, AlwaysIsRefutedOnlyByWhatHolmsCorrectionLeaves) {
  Experiment e = experiment(20);
  Samples s(e, 6);
  for (std::size_t p = 0; p < 20; ++p) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const double noise = seed % 2 == 0 ? 0.02 : -0.02;
      s.set(0, 0, p, seed, 10 * (1 + noise) * (p == 7 ? 0.977 : 1.05));
      s.set(0, 1, p, seed, 10);
    }
  }
  Measure m = ratio(e);
  m.reduce = Reduce::kAlways;
  m.trend = kAboveOne;
  const Judgement by_chance = judge_one(e, m, s);
  EXPECT_LT(by_chance.findings[0].ours.high, 1);
  EXPECT_EQ(by_chance.verdict, Verdict::kOpen);
  EXPECT_THAT(by_chance.because, HasSubstr("load=7"));
  EXPECT_THAT(by_chance.because, HasSubstr("Holm"));
  for (std::uint64_t seed = 1; seed <= 6; ++seed) s.set(0, 0, 7, seed, seed % 2 == 0 ? 8.2 : 7.8);
  EXPECT_EQ(judge_one(e, m, s).verdict, Verdict::kNot);
}

// What stands beside the paper's measures is shown and decides nothing.
TEST(Verdict, AMeasureBesideIsNoPartOfTheVerdict) {
  Experiment e = experiment(1);
  Samples s(e, 3);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    s.set(0, 0, 0, seed, 25);
    s.set(0, 1, 0, seed, 10);
  }
  Measure m = ratio(e);
  m.reproduced = kTwoToThree;
  Measure other = ratio(e);
  other.reproduced = side("9 to 10", 9, 10);
  other.aside = true;
  e.claims = {{"c", "s", "p", "", "", {m, other}}};
  const Judgement j = judge(e, s, no_account).at(0);
  EXPECT_EQ(j.verdict, Verdict::kReproduced);
  EXPECT_EQ(j.findings.at(1).grade, Grade::kRefuted);
}

TEST(Verdict, QuantitiesAreLookedUp) {
  Experiment e;
  Measure m;
  m.account = "bdp";
  m.reproduced = side("115 to 125", 115, 125);
  const Judgement j = judge_one(e, m, Samples(e, 0));
  EXPECT_EQ(j.verdict, Verdict::kReproduced);
  EXPECT_EQ(j.findings[0].what, "bytes in flight");
  EXPECT_STREQ(verdict_text(j), "consistent");
  m.account = "other";
  EXPECT_THAT(judge_one(e, m, Samples(e, 0)).because, HasSubstr("no quantity 'other'"));
}

}  // namespace
}  // namespace weft::lab
