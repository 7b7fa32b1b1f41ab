#include "live/engine/patience.h"

#include <gtest/gtest.h>

namespace weft::live {
namespace {

constexpr Time kStart = Time{} + seconds(1);

void make_eager(Patience& p, Time at) {
  for (std::uint32_t i = 1; i < Patience::kLate; ++i) EXPECT_FALSE(p.was_late(at));
  EXPECT_TRUE(p.was_late(at));
}

TEST(Patience, EndsWhenSomethingWaitedAgainAndAgain) {
  Patience p;
  EXPECT_EQ(p.now(), Patience::kUsual);
  make_eager(p, kStart);
  EXPECT_EQ(p.now(), Patience::kEager);
  EXPECT_FALSE(p.was_late(kStart)) << "that is no news";
}

TEST(Patience, OutlastsWhatHappensNowAndThen) {
  Patience p;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(p.was_late(kStart + milliseconds(15) * i));
  EXPECT_EQ(p.now(), Patience::kUsual);
}

TEST(Patience, ComesBackWhenTheProgramIsAlwaysThere) {
  Patience p;
  EXPECT_FALSE(p.saw_program());
  make_eager(p, kStart);
  for (std::uint32_t i = 1; i < Patience::kThere; ++i) EXPECT_FALSE(p.saw_program());
  EXPECT_TRUE(p.saw_program());
  EXPECT_EQ(p.now(), Patience::kUsual);
  EXPECT_FALSE(p.saw_program()) << "that is no news";
  make_eager(p, kStart);
}

TEST(Patience, StaysShortForAProgramThatPollsAndThenWatchesItsMemory) {
  Patience p;
  make_eager(p, kStart);
  for (int message = 0; message < 1000; ++message) {
    for (std::uint32_t i = 1; i < Patience::kThere; ++i) EXPECT_FALSE(p.saw_program());
    EXPECT_FALSE(p.was_late(kStart));
    EXPECT_EQ(p.now(), Patience::kEager);
  }
}

}  // namespace
}  // namespace weft::live
