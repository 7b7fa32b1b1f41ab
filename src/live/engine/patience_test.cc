#include "live/engine/patience.h"

#include <gtest/gtest.h>

namespace weft::live {
namespace {

TEST(Patience, IsShortAtOnceWhenSomethingWaited) {
  Patience p;
  EXPECT_EQ(p.now(), Patience::kMost);
  EXPECT_TRUE(p.was_late());
  EXPECT_EQ(p.now(), Patience::kLeast);
  EXPECT_FALSE(p.was_late()) << "that is no news";
}

TEST(Patience, ComesBackToAProgramThatKeepsPolling) {
  Patience p;
  p.was_late();
  int polls = 1;
  while (!p.saw_poll()) ASSERT_LT(++polls, 1000);
  EXPECT_EQ(p.now(), Patience::kMost);
  EXPECT_EQ(polls, 4 * Patience::kTrusted) << "5 to 10, 20, 40 and 50";
  EXPECT_FALSE(p.saw_poll()) << "that is no news";
}

TEST(Patience, StaysShortForAProgramThatPollsAndThenWatchesItsMemory) {
  Patience p;
  for (int message = 0; message < 1000; ++message) {
    p.was_late();
    for (std::uint32_t polls = 1; polls < Patience::kTrusted; ++polls) EXPECT_FALSE(p.saw_poll());
    EXPECT_EQ(p.now(), Patience::kLeast);
  }
}

}  // namespace
}  // namespace weft::live
