// What an interval says of a paper's band and trend, without runs.
#include "lab/grade.h"

#include <gtest/gtest.h>

#include <limits>

namespace weft::lab {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
const Scale kFactors{As::kRatio, true};

// An overlap is not enough: 28.8 [18.2, 39.4] for a band of 16 to 26 is not reproduced.
TEST(Grade, AnIntervalAsWideAsTheBandIsNotReproduced) {
  Estimate e{28.8, 18.2, 39.4, 3, false};
  const Band band{"16 to 26", 16, 26, false, false};
  EXPECT_EQ(grade_of(band, Band{"> 0", 0, 1e300, true, false}, kFactors, e), Grade::kCompatible);
  // One that reaches beyond both ends says nothing of the band.
  e = {20, 10, 40, 3, false};
  EXPECT_EQ(grade_of(band, Band{"> 0", 0, 1e300, true, false}, kFactors, e), Grade::kTrend);
  EXPECT_EQ(grade_of(band, std::nullopt, kFactors, e), Grade::kOpen);
}

// "0 to 75 % worse" is met by an effect of nothing at all, which no number of seeds tells from -0.001 %.
TEST(Grade, ReproducedInTheBandThoughTheTrendEndsWhereTheBandDoes) {
  const Band band{"0 to 75", 0, 75, false, false};
  const Band above{"> 0", 0, 1e300, true, false};
  EXPECT_EQ(grade_of(band, above, kFactors, {0.003, -0.886, 0.9, 3}), Grade::kReproduced);
  EXPECT_EQ(grade_of(band, above, kFactors, {0.003, -40, 40, 3}), Grade::kOpen);
}

// The paper's number is refuted by then, even if more seeds would tell the direction.
TEST(Grade, NotReproducedOutsideOfTheBandUnlessTheDirectionIsSure) {
  const Band band{"1.2 to 1.5", 1.2, 1.5, false, false};
  const Band above{"> 1", 1, 1e300, true, false};
  EXPECT_EQ(grade_of(band, above, kFactors, {1.01, 0.99, 1.02, 3}), Grade::kRefuted);
  EXPECT_EQ(grade_of(band, above, kFactors, {1.02, 1.01, 1.03, 3}), Grade::kTrend);
  EXPECT_EQ(grade_of(band, above, kFactors, {1.1, 0.99, 1.22, 3}), Grade::kOpen);
}

// "Better than" is met by a hair, which no number of seeds tells from nothing. Within a twentieth it is
// nothing.
TEST(Grade, NotReproducedIfADifferenceThatIsWorthTheNameIsRuledOut) {
  const Band above{"> 1", 1, kInfinite, true, false};
  EXPECT_EQ(grade_of(above, above, kFactors, {1.005, 0.989, 1.02, 3}), Grade::kRefuted);
  EXPECT_EQ(grade_of(std::nullopt, above, kFactors, {0.995, 0.96, 1.03, 3}), Grade::kRefuted);
  // It reaches a twentieth; it lies above for sure; nothing is known.
  EXPECT_EQ(grade_of(above, above, kFactors, {1.005, 0.96, 1.051, 3}), Grade::kOpen);
  EXPECT_EQ(grade_of(above, above, kFactors, {1.005, 0.951, 1.06, 3}), Grade::kOpen);
  EXPECT_EQ(grade_of(above, above, kFactors, {1.01, 1.005, 1.015, 3}), Grade::kReproduced);
  EXPECT_EQ(grade_of(above, above, kFactors, {1.005, 0.99, 1.02, 2}), Grade::kOpen);
  EXPECT_EQ(grade_of(above, above, kFactors, {1.005, 0.99, 1.02, 3, true}), Grade::kOpen);
  // "At least as good" is met by nothing; tau and quantities have no twentieth.
  const Band as_good{">= 1", 1, kInfinite, false, false};
  EXPECT_EQ(grade_of(as_good, as_good, kFactors, {1.005, 0.99, 1.02, 3}), Grade::kOpen);
  EXPECT_EQ(grade_of(above, above, Scale{As::kRatio, false}, {1.005, 0.99, 1.02, 3}), Grade::kOpen);
}

TEST(Grade, NotReproducedIfPercentRuleOutADifferenceThatThePaperWouldShow) {
  const Scale less{As::kPercentLess, true};
  const Band fewer{"< 0", -kInfinite, 0, false, true};
  EXPECT_EQ(grade_of(std::nullopt, fewer, Scale{As::kPercentMore, true}, {-1, -3, 2, 3}), Grade::kRefuted);
  const Band paper{"2 to 30", 2, 30, false, false};
  const Band more{"> 0", 0, kInfinite, true, false};
  EXPECT_EQ(grade_of(paper, more, less, {0.5, -1, 1.9, 3}), Grade::kRefuted);
  EXPECT_EQ(grade_of(paper, more, less, {1.5, -1, 4, 3}), Grade::kOpen);
  const Band reduced{"-30 to -2", -30, -2, false, false};
  const Scale change{As::kPercentMore, true};
  EXPECT_EQ(grade_of(reduced, fewer, change, {-0.5, -1.9, 1, 3}), Grade::kRefuted);
  EXPECT_EQ(grade_of(reduced, fewer, change, {-1.5, -4, 1, 3}), Grade::kOpen);
}

}  // namespace
}  // namespace weft::lab
