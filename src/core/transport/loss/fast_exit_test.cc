// SRNIC's race on leaving recovery (SRNIC §4.4.2, Figure 8): hardware receives, software fills the bitmap
// some packets later and hands back the expected number it computed. A receiver that waits for the number
// that equals what has arrived may wait for ever while packets keep coming; one with the run of the latest
// packets leaves as soon as the number reaches that run.
#include "core/transport/loss/fast_exit.h"

#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <vector>

namespace weft {
namespace {

struct Lagging {
  explicit Lagging(std::size_t lag_packets) : lag(lag_packets) {}

  // Hardware sees packet `s`; software works off one that is `lag` packets old and answers.
  void arrive(std::uint64_t s) {
    if (!recovering) {
      if (Seq{s} == expected) {
        ++expected;
        return;
      }
      recovering = true;
      software = expected;
    }
    if (Seq{s} > expected) run.observe(Seq{s}, false);
    newest = std::max(newest, Seq{s});
    queue.push_back(s);
    if (queue.size() <= lag) return;
    bitmap.insert(queue.front());
    queue.pop_front();
    while (bitmap.count(software.v) != 0) ++software;
    naive_left = naive_left || software == newest + 1;
    if (!run.open(software)) return;
    expected = run.right + 1;  // what lies in the queue is part of the run
    recovering = false;
    fast_left = true;
  }

  std::size_t lag;
  Seq expected{};
  Seq software{};
  Seq newest{};
  FastExit run;
  bool recovering = false;
  bool fast_left = false;
  bool naive_left = false;
  std::deque<std::uint64_t> queue;
  std::set<std::uint64_t> bitmap;
};

TEST(FastExitTest, LeavesWhilePacketsKeepComingAndTheNaiveRuleDoesNot) {
  Lagging r(5);
  for (std::uint64_t s : {0U, 1U, 3U, 4U, 5U, 2U}) r.arrive(s);  // 2 was lost and comes again
  for (std::uint64_t s = 6; s < 40; ++s) r.arrive(s);
  EXPECT_TRUE(r.fast_left);
  EXPECT_FALSE(r.naive_left);
  EXPECT_FALSE(r.recovering);
  EXPECT_EQ(r.expected, Seq{40});
}

TEST(FastExitTest, StaysWhileSomethingBeforeTheRunIsMissing) {
  Lagging r(3);
  for (std::uint64_t s : {1U, 2U, 4U, 5U, 6U, 7U, 8U, 9U}) r.arrive(s);  // 0 and 3 are missing
  EXPECT_TRUE(r.recovering);
  r.arrive(0);
  for (std::uint64_t s = 10; s < 20; ++s) r.arrive(s);
  EXPECT_TRUE(r.recovering);
  EXPECT_EQ(r.run.left, Seq{4});
  r.arrive(3);
  for (std::uint64_t s = 20; s < 30; ++s) r.arrive(s);
  EXPECT_FALSE(r.recovering);
  EXPECT_EQ(r.expected, Seq{30});
}

TEST(FastExitTest, CountsTheMessagesOfTheRunOnly) {
  FastExit run;
  run.observe(Seq{5}, true);
  run.observe(Seq{7}, true);
  run.observe(Seq{8}, false);
  run.observe(Seq{9}, true);
  run.observe(Seq{6}, true);  // before the run
  EXPECT_EQ(run.left, Seq{7});
  EXPECT_EQ(run.right, Seq{9});
  EXPECT_EQ(run.messages, 2U);
  EXPECT_FALSE(run.open(Seq{6}));
  EXPECT_TRUE(run.open(Seq{7}));
  EXPECT_TRUE(run.open(Seq{10}));
  EXPECT_FALSE(run.open(Seq{11}));
}

}  // namespace
}  // namespace weft
