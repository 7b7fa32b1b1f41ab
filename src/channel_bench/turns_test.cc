// Medians and ratios of turns.
#include "channel_bench/turns.h"

#include <gtest/gtest.h>

namespace weft::bench {
namespace {

TEST(MedianOfTurns, IsTheMiddleOne) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(values_of({1, std::nullopt, 3}), (std::vector<double>{1, 3}));
}

// A program answered nothing in the second turn, in which the machine was slow.
TEST(RatioOfTurns, IsOfOneTurn) {
  EXPECT_EQ(ratio_of({2, 200, 6}, {1, 100, 2}), 2);
  EXPECT_EQ(ratio_of({2, std::nullopt, 6}, {1, 100, 2}), 2.5);
  EXPECT_EQ(ratio_of({2, 200, 6}, {1, std::nullopt, 2}), 2.5);
  EXPECT_EQ(ratio_of({std::nullopt, 200}, {1, std::nullopt}), 0) << "no turn has both";
  EXPECT_EQ(ratio_of({}, {1}), 0);
}

}  // namespace
}  // namespace weft::bench
