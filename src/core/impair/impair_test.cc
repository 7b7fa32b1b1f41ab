// Decisions about packets: frequencies near what was asked, scripts to the letter, same seed same
// fate.
#include "core/impair/impair.h"

#include <gtest/gtest.h>

namespace weft::impair {
namespace {

TEST(Impair, ACleanLinkPassesEverythingAfterItsDelay) {
  ImpairConfig c;
  c.delay = microseconds(5);
  Impairment link(c, Prng(1));
  for (int i = 0; i < 1000; ++i) {
    const Fate v = link.decide();
    EXPECT_EQ(v.copies, 1);
    EXPECT_EQ(v.delay, microseconds(5));
    EXPECT_FALSE(v.corrupt);
  }
  EXPECT_EQ(link.packets(), 1000U);
}

// 100 000 packets: each observed frequency within six standard deviations of its probability.
TEST(Impair, EachEffectHappensAboutAsOftenAsAsked) {
  ImpairConfig c;
  c.loss = 100'000;      // 10 %
  c.duplicate = 50'000;  // 5 %, of those not lost
  c.reorder = 20'000;    // 2 %
  c.corrupt = 10'000;    // 1 %
  c.reorder_by = microseconds(7);
  Impairment link(c, Prng(42));
  int lost = 0, twice = 0, held = 0, corrupt = 0;
  for (int i = 0; i < 100'000; ++i) {
    const Fate v = link.decide();
    lost += v.copies == 0;
    twice += v.copies == 2;
    held += v.delay == microseconds(7);
    corrupt += v.corrupt;
  }
  EXPECT_NEAR(lost, 10'000, 570);
  EXPECT_NEAR(twice, 4'500, 400);
  EXPECT_NEAR(held, 2'000, 270);
  EXPECT_NEAR(corrupt, 1'000, 190);
}

TEST(Impair, CertainLossDropsEverything) {
  ImpairConfig c;
  c.loss = kMillion;
  Impairment link(c, Prng(3));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(link.decide().copies, 0);
}

TEST(Impair, JitterStaysWithinItsBoundAndVaries) {
  ImpairConfig c;
  c.delay = microseconds(1);
  c.jitter = microseconds(2);
  Impairment link(c, Prng(4));
  Duration lowest = kForever, highest{};
  for (int i = 0; i < 1000; ++i) {
    const Duration d = link.decide().delay;
    lowest = std::min(lowest, d);
    highest = std::max(highest, d);
  }
  EXPECT_GE(lowest, microseconds(1));
  EXPECT_LE(highest, microseconds(3));
  EXPECT_GT(highest - lowest, microseconds(1));
}

TEST(Impair, TheSameSeedDecidesTheSame) {
  ImpairConfig c;
  c.loss = c.duplicate = c.reorder = c.corrupt = 300'000;
  c.reorder_by = nanoseconds(9);
  c.jitter = nanoseconds(100);
  Impairment one(c, Prng(5)), two(c, Prng(5)), other(c, Prng(6));
  int differs = 0;
  for (int i = 0; i < 1000; ++i) {
    const Fate v = one.decide();
    EXPECT_EQ(v, two.decide());
    differs += !(v == other.decide());
  }
  EXPECT_GT(differs, 500);
}

TEST(Impair, AScriptHitsExactlyThePacketsItNames) {
  Impairment link({}, Prng(1),
                  {{1, Action::kDrop, {}},
                   {3, Action::kDuplicate, microseconds(2)},
                   {3, Action::kDelay, microseconds(1)},
                   {4, Action::kCorrupt, {}}});
  EXPECT_EQ(link.decide().copies, 1);
  EXPECT_EQ(link.decide().copies, 0);
  EXPECT_EQ(link.decide(), Fate{});
  const Fate third = link.decide();
  EXPECT_EQ(third.copies, 2);
  EXPECT_EQ(third.delay, microseconds(1));
  EXPECT_EQ(third.duplicate_delay, microseconds(2));
  EXPECT_TRUE(link.decide().corrupt);
  EXPECT_EQ(link.decide(), Fate{});
}

TEST(Impair, NonsenseIsRefusedWithItsField) {
  ImpairConfig c;
  c.loss = kMillion + 1;
  ASSERT_FALSE(c.validate());
  EXPECT_NE(c.validate().error().message.find("loss"), std::string::npos);
  c = {};
  c.delay = picoseconds(-1);
  EXPECT_FALSE(c.validate());
  c = {};
  c.reorder = 1;
  EXPECT_FALSE(c.validate());
  c.reorder_by = picoseconds(1);
  EXPECT_TRUE(c.validate());
}

TEST(RateLimit, PacketsQueueBehindEachOtherAndTheQueueIsBounded) {
  RateLimit link(gigabits(8), microseconds(2));  // 1 byte per ns
  EXPECT_EQ(link.depart(Time{}, Bytes{1000}), Time{} + microseconds(1));
  EXPECT_EQ(link.depart(Time{}, Bytes{1000}), Time{} + microseconds(2));
  EXPECT_EQ(link.depart(Time{}, Bytes{1000}), Time{} + microseconds(3));
  EXPECT_EQ(link.depart(Time{}, Bytes{1000}), kNever);  // would wait 3 us
  EXPECT_EQ(link.depart(Time{} + microseconds(10), Bytes{500}), Time{} + nanoseconds(10'500));
}

}  // namespace
}  // namespace weft::impair
