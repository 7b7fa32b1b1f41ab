#include "live/engine/clock.h"

#include <gtest/gtest.h>

namespace weft::live {
namespace {

// A process may live for years. Times and deadlines then neither wrap nor lie before those of the days
// before.
TEST(Clock, NeverWraps) {
  Time before{};
  for (const std::int64_t days : {0, 1, 105, 106, 107, 213, 214, 320, 3650}) {
    const Clock clock(kDay.ns() * days);
    const Time now = clock.now();
    EXPECT_GE(now, before) << days;
    EXPECT_LE(now, Clock::kLast) << days;
    EXPECT_GT(now.after(milliseconds(1)), now) << days;
    EXPECT_LT(now.after(kDay / 2), kNever) << days;
    EXPECT_GE(clock.now(), now) << days;
    before = now;
  }
}

TEST(Clock, RunsForAHundredDays) {
  const Clock clock(kDay.ns() * 105);
  const Time begin = clock.now();
  while (clock.now() == begin) {
  }
  EXPECT_GT(clock.now() - Time{}, kDay * 105);
}

}  // namespace
}  // namespace weft::live
