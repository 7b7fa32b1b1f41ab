#include "lab/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/prng.h"
#include "lab/number.h"

namespace weft::lab {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

// Ten values of mean 5.5 and standard deviation 3.0277: half an interval is 2.2622 * 3.0277 / sqrt(10).
TEST(Estimate, IsMeanAndStudentsInterval) {
  const std::array values{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0};
  const Estimate e = estimate(values);
  EXPECT_DOUBLE_EQ(e.mean, 5.5);
  EXPECT_NEAR(e.high - e.mean, 2.16586, 1e-4);
  EXPECT_NEAR(e.mean - e.low, 2.16586, 1e-4);
}

// One seed says nothing of how far another would be; two say little; three are the fewest that decide.
TEST(Estimate, FewerThanThreeValuesNeverDecide) {
  const std::array one{3.0};
  EXPECT_EQ(estimate(one).mean, 3);
  EXPECT_TRUE(std::isinf(estimate(one).low));
  EXPECT_TRUE(std::isinf(estimate(one).high));
  EXPECT_EQ(estimate_factor(one).low, 0);
  EXPECT_FALSE(estimate(one).decides());
  EXPECT_FALSE(estimate(std::array{3.0, 3.0}).decides());
  EXPECT_TRUE(estimate(std::array{3.0, 3.0, 3.0}).decides());
  EXPECT_EQ(estimate({}).values, 0U);
}

// Logs of 2, 4 and 8 are 1, 2 and 3 of log 2: the mean is 4, half an interval 4.3027 * log 2 / sqrt(3).
TEST(Estimate, FactorsHaveTheirIntervalOnLogarithms) {
  const Estimate e = estimate_factor(std::array{2.0, 4.0, 8.0});
  EXPECT_NEAR(e.mean, 4, 1e-12);
  const double by = std::exp(4.3027 * std::log(2.0) / std::sqrt(3.0));
  EXPECT_NEAR(e.low, 4 / by, 1e-9);
  EXPECT_NEAR(e.high, 4 * by, 1e-9);
  // What the arithmetic interval gives for the same values lies below zero.
  EXPECT_LT(estimate(std::array{2.0, 4.0, 8.0}).low, 0);
  EXPECT_GT(estimate_quantity(std::array{0.01, 5.0, 800.0}).low, 0);
  EXPECT_NEAR(estimate_quantity(std::array{0.0, 1.0, 2.0}).mean, 1, 1e-12);  // 0 has no logarithm
}

// Beyond the table an expansion takes over: it must agree with published values and with the table's end.
TEST(Student, MatchesPublishedTables) {
  EXPECT_NEAR(student_975(1), 12.706, 1e-3);
  EXPECT_NEAR(student_975(4), 2.776, 1e-3);
  EXPECT_NEAR(student_975(30), 2.0423, 1e-4);
  EXPECT_NEAR(student_975(31), 2.0395, 2e-4);
  EXPECT_NEAR(student_975(60), 2.0003, 2e-4);
  EXPECT_NEAR(student_975(120), 1.9799, 2e-4);
}

// Published quantiles, and for one degree of freedom the arctangent.
TEST(Student, ShareIsTheInverseOfTheTable) {
  for (const std::size_t n : {1U, 2U, 3U, 5U, 9U, 30U, 120U}) {
    EXPECT_NEAR(student_share(student_975(n), n), 0.975, 1e-5) << n;
    EXPECT_NEAR(student_share(-student_975(n), n), 0.025, 1e-5) << n;
    EXPECT_DOUBLE_EQ(student_share(0, n), 0.5) << n;
  }
  for (const double t : {-3.0, 0.5, 7.0})
    EXPECT_NEAR(student_share(t, 1), 0.5 + std::atan(t) / std::acos(-1.0), 1e-12);
  EXPECT_NEAR(student_share(2.920, 2), 0.95, 1e-4);
  EXPECT_NEAR(student_share(3.747, 4), 0.99, 1e-4);
}

// 1, 2, 3: mean 2, standard error 1/sqrt(3). From 1 that is sqrt(3) errors, and with two degrees of freedom
// 0.1127.
TEST(Doubt, IsTheTailOnOneSide) {
  const std::array values{1.0, 2.0, 3.0};
  EXPECT_NEAR(doubt_above(values, 1), 0.1127, 1e-4);
  EXPECT_NEAR(doubt_below(values, 1), 1 - 0.1127, 1e-4);
  EXPECT_NEAR(doubt_above(values, 2), 0.5, 1e-12);
  EXPECT_EQ(doubt_above(std::array{5.0}, 1), 1);
  EXPECT_EQ(doubt_above(std::array{5.0, 5.0, 5.0}, 1), 0);
  EXPECT_EQ(doubt_below(std::array{5.0, 5.0, 5.0}, 1), 1);
}

// The example that the procedure is usually shown with: 0.01, 0.04, 0.03, 0.005 at 0.05 rejects the first and
// last.
TEST(Holm, StepsDownUntilOneStands) {
  EXPECT_EQ(holm_rejects(std::array{0.01, 0.04, 0.03, 0.005}, 0.05), (std::vector{true, false, false, true}));
  EXPECT_EQ(holm_rejects(std::array{0.02, 0.02}, 0.05), (std::vector{true, true}));
  // 0.04 would stand beside another that is still to come.
  EXPECT_EQ(holm_rejects(std::array{0.02, 0.04}, 0.05), (std::vector{true, true}));
  // 0.02 alone would be rejected; behind a first that stands it is not even looked at.
  EXPECT_EQ(holm_rejects(std::array{0.02, 0.03, 0.04}, 0.05), (std::vector{false, false, false}));
  EXPECT_TRUE(holm_rejects({}, 0.05).empty());
}

// Of 2000 families of ten true hypotheses, no more than 5 % lose one, where one in three does uncorrected.
TEST(Holm, KeepsTheFamilysErrorRate) {
  Prng prng(2);
  int wrong = 0;
  int naive = 0;
  constexpr int kTrials = 2000;
  for (int t = 0; t < kTrials; ++t) {
    std::array<double, 10> p{};
    for (double& v : p) v = static_cast<double>(prng.below(1'000'000)) / 1e6;
    const auto rejected = holm_rejects(p, 0.05);
    wrong += std::count(rejected.begin(), rejected.end(), true) > 0 ? 1 : 0;
    naive += *std::min_element(p.begin(), p.end()) < 0.05 ? 1 : 0;
  }
  EXPECT_LT(wrong, 0.05 * kTrials + 4 * std::sqrt(0.05 * 0.95 * kTrials));
  EXPECT_GT(naive, 0.35 * kTrials);
}

// Of 4000 samples of five sums of uniform variates, 95 % of the intervals hold the true mean.
TEST(Estimate, CoversTheTruthAsOftenAsItSays) {
  Prng prng(1);
  int covered = 0;
  constexpr int kTrials = 4000;
  for (int t = 0; t < kTrials; ++t) {
    std::array<double, 5> values{};
    for (double& v : values) {
      for (int i = 0; i < 12; ++i) v += static_cast<double>(prng.below(1'000'000)) / 1e6 - 0.5;
    }
    const Estimate e = estimate(values);
    covered += e.low <= 0 && e.high >= 0 ? 1 : 0;
  }
  EXPECT_NEAR(covered, 0.95 * kTrials, 4 * std::sqrt(0.95 * 0.05 * kTrials));
}

TEST(Rising, IsKendallsTau) {
  EXPECT_EQ(rising(std::array{1.0, 2.0, 3.0}), 1);
  EXPECT_EQ(rising(std::array{3.0, 2.0, 1.0}), -1);
  EXPECT_EQ(rising(std::array{1.0, 1.0}), 0);
  EXPECT_DOUBLE_EQ(rising(std::array{1.0, 3.0, 2.0}), 1.0 / 3);
  EXPECT_EQ(rising(std::array{1.0}), 0);
}

TEST(Number, ShowsThreeDigits) {
  EXPECT_EQ(number_text(2.8349), "2.83");
  EXPECT_EQ(number_text(28.349), "28.3");
  EXPECT_EQ(number_text(1530.7), "1531");
  EXPECT_EQ(number_text(0.01234), "0.012");
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(-3.4), "-3.40");
  EXPECT_EQ(number_text(0.0001234), "1.23e-04");
  EXPECT_EQ(interval_text({2, 1, 3, 5}, "x"), "2.00 [1.00, 3.00]x");
  EXPECT_EQ(interval_text({2, 2, 2, 1}, "us"), "2.00 us");
  EXPECT_EQ(interval_text({2, 2, 2, 1, false, true}, "us"), "2.00 us");
}

// 1, 2, 3 have the mean 2 and the variance 1: four values lie sqrt(3 / 4) away, and so do the outer ones of
// five, 1.
TEST(Statistics, ProjectedValuesKeepMeanAndDeviation) {
  const std::vector<double> values{1, 2, 3};
  EXPECT_THAT(projected(values, 4),
              ElementsAre(DoubleEq(2 + std::sqrt(0.75)), DoubleEq(2 - std::sqrt(0.75)),
                          DoubleEq(2 + std::sqrt(0.75)), DoubleEq(2 - std::sqrt(0.75))));
  EXPECT_THAT(projected(values, 5),
              ElementsAre(DoubleEq(3), DoubleEq(1), DoubleEq(3), DoubleEq(1), DoubleEq(2)));
  EXPECT_THAT(projected(std::vector<double>{7}, 5), ElementsAre(7));
}

}  // namespace
}  // namespace weft::lab
