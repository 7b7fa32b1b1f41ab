// Times, sizes and rates: exact where they promise it, rounded in the stated direction where not, never
// wrapped.
#include "core/base/units.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace weft {
namespace {

// The reason for picoseconds: a byte takes a whole number of them at every common link speed.
TEST(Units, AByteTakesAWholeNumberOfPicosecondsAtCommonSpeeds) {
  EXPECT_EQ(gigabits(400).time_for(Bytes{1}), picoseconds(20));
  EXPECT_EQ(gigabits(200).time_for(Bytes{1}), picoseconds(40));
  EXPECT_EQ(gigabits(100).time_for(Bytes{1}), picoseconds(80));
  EXPECT_EQ(gigabits(40).time_for(Bytes{1}), picoseconds(200));
  EXPECT_EQ(gigabits(25).time_for(Bytes{1}), picoseconds(320));
  EXPECT_EQ(gigabits(10).time_for(Bytes{1500}), nanoseconds(1200));
  EXPECT_EQ(megabits(1).time_for(Bytes{125}), milliseconds(1));
}

// Rounding down would let a link send faster than its rate.
TEST(Units, ATimeThatIsNoWholePicosecondIsRoundedUp) {
  EXPECT_EQ(gigabits(3).time_for(Bytes{1}), picoseconds(2667));  // 2666.67
  EXPECT_EQ(gigabits(3).time_for(Bytes{3}), picoseconds(8000));
  EXPECT_EQ(Rate{7}.time_for(Bytes{1}).ps, 1'142'857'142'858);  // 8/7 s
  EXPECT_EQ(gigabits(100).time_for(Bytes{0}), Duration{});
}

TEST(Units, ARateOfZeroIsUnlimited) { EXPECT_EQ(Rate{}.time_for(Bytes{1'000'000'000}), Duration{}); }

TEST(Units, ATimeBeyondAllRunsIsForEverInsteadOfNegative) {
  EXPECT_EQ(Rate{1}.time_for(Bytes{4'000'000}), kForever);
  EXPECT_EQ(Rate{1}.time_for(Bytes{UINT64_MAX}), kForever);
  EXPECT_EQ(Rate{8}.time_for(Bytes{9'000'000}), seconds(9'000'000));
}

TEST(Units, ADeadlineNeverWrapsIntoThePast) {
  EXPECT_EQ(Time{5}.after(picoseconds(7)), Time{12});
  EXPECT_EQ(Time{5}.after(kForever), kNever);
  EXPECT_EQ(kNever.after(picoseconds(1)), kNever);
  EXPECT_EQ(Time{INT64_MAX - 1}.after(picoseconds(1)), kNever);
  EXPECT_EQ(Time{INT64_MAX - 2}.after(picoseconds(1)), Time{INT64_MAX - 1});
  // Times before the start of the world, too, and in both directions: a constant expression that overflows
  // does not compile.
  static_assert(Time{-5}.after(picoseconds(7)) == Time{2});
  static_assert(Time{-5}.after(kForever) == Time{INT64_MAX - 5});
  static_assert(Time{-5}.after(picoseconds(-7)) == Time{-12});
  static_assert(Time{INT64_MIN}.after(picoseconds(-1)) == Time{INT64_MIN});
  static_assert(Time{INT64_MIN}.after(kForever) == Time{-1});
}

TEST(Units, ConversionsToCoarserUnitsCutOff) {
  EXPECT_EQ(picoseconds(1999).ns(), 1);
  EXPECT_EQ(nanoseconds(1999).us(), 1);
  EXPECT_EQ(picoseconds(-1999).ns(), -1);
  EXPECT_EQ(seconds(1), milliseconds(1000));
  EXPECT_EQ(milliseconds(1), microseconds(1000));
  EXPECT_EQ(microseconds(1), nanoseconds(1000));
}

// Times and durations mix only where it means something.
template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
static_assert(Addable<Time, Duration> && Addable<Duration, Duration> && !Addable<Time, Time>);
static_assert(std::is_same_v<decltype(Time{} - Time{}), Duration>);
static_assert(!std::is_convertible_v<std::int64_t, Time> && !std::is_convertible_v<Time, Duration>);
static_assert(!Addable<Duration, Bytes> && !Addable<Bytes, int>);

}  // namespace
}  // namespace weft
