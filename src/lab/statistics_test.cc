#include "lab/statistics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/base/prng.h"
#include "lab/number.h"

namespace weft::lab {
namespace {

// Ten values of mean 5.5 and standard deviation 3.0277: half an interval is 2.2622 * 3.0277 / sqrt(10).
TEST(Estimate, IsMeanAndStudentsInterval) {
  const std::array values{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0};
  const Estimate e = estimate(values);
  EXPECT_DOUBLE_EQ(e.mean, 5.5);
  EXPECT_NEAR(e.high - e.mean, 2.16586, 1e-4);
  EXPECT_NEAR(e.mean - e.low, 2.16586, 1e-4);
}

TEST(Estimate, OneValueHasNoIntervalAndNoneNoMean) {
  const std::array one{3.0};
  EXPECT_EQ(estimate(one).low, 3);
  EXPECT_EQ(estimate(one).high, 3);
  EXPECT_EQ(estimate({}).values, 0U);
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
}

}  // namespace
}  // namespace weft::lab
