// The order of pops is that of a sorted list, whatever the bucket width.
#include "sim/engine/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/base/prng.h"

namespace weft::sim {
namespace {

TEST(EventQueue, SimultaneousEventsLeaveInTheOrderTheyCame) {
  EventQueue q;
  for (std::uint32_t i = 0; i < 100; ++i) q.push(Time{5'000'000}, i);
  WakeUp e;
  for (std::uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(q.pop(kNever, e));
    EXPECT_EQ(e.actor(), i);
  }
  EXPECT_FALSE(q.pop(kNever, e));
}

TEST(EventQueue, WhatIsPushedAsLastComesAfterEverythingElseOfItsTime) {
  EventQueue q;
  q.push(Time{5'000'000}, 1, true);
  q.push(Time{5'000'001}, 9);
  q.push(Time{5'000'000}, 2, true);
  q.push(Time{5'000'000}, 3);
  WakeUp e;
  for (const std::uint32_t actor : {3U, 1U}) {
    ASSERT_TRUE(q.pop(kNever, e));
    EXPECT_EQ(e.actor(), actor);
  }
  q.push(Time{5'000'000}, 4);  // a consequence of the first
  for (const std::uint32_t actor : {4U, 2U, 9U}) {
    ASSERT_TRUE(q.pop(kNever, e));
    EXPECT_EQ(e.actor(), actor);
  }
}

TEST(EventQueue, NothingLaterThanTheLimitLeaves) {
  EventQueue q;
  q.push(Time{10}, 1);             // same bucket as the start: in the heap
  q.push(Time{1'000'000}, 2);      // in the wheel
  q.push(Time{seconds(1).ps}, 3);  // beyond the horizon
  WakeUp e;
  EXPECT_FALSE(q.pop(Time{9}, e));
  EXPECT_TRUE(q.pop(Time{10}, e));
  EXPECT_FALSE(q.pop(Time{999'999}, e));
  EXPECT_TRUE(q.pop(Time{1'000'000}, e));
  EXPECT_FALSE(q.pop(Time{seconds(1).ps - 1}, e));
  EXPECT_TRUE(q.pop(Time{seconds(1).ps}, e));
  EXPECT_EQ(e.actor(), 3U);
  EXPECT_TRUE(q.empty());
}

// A peek that fails may open a bucket ahead of time; a push before it must still come first.
TEST(EventQueue, APushBeforeAnOpenedBucketComesFirst) {
  EventQueue q;
  q.push(Time{1'000'500}, 1);
  WakeUp e;
  EXPECT_FALSE(q.pop(Time{1'000'499}, e));
  q.push(Time{1'000'499}, 2);
  q.push(Time{3'000}, 3);
  std::vector<std::uint32_t> order;
  while (q.pop(kNever, e)) order.push_back(e.actor());
  EXPECT_EQ(order, (std::vector<std::uint32_t>{3, 2, 1}));
}

// Random pushes and pops over every scale of delay, enough of them to pass several retunings: the
// queue pops exactly what an ordered set would.
TEST(EventQueue, PopsWhatAnOrderedSetPops) {
  for (const std::int64_t scale : {1LL, 1'000LL, 1'000'000LL, 3'000'000'000LL}) {
    Prng prng(static_cast<std::uint64_t>(scale));
    EventQueue q;
    std::set<std::pair<std::int64_t, std::uint64_t>> model;
    std::int64_t now = 0;
    std::uint64_t serial = 0;
    for (int i = 0; i < 150'000; ++i) {
      if (model.size() < 20 || prng.chance(model.size() < 3000 ? 520'000 : 400'000)) {
        // Mostly near, sometimes at once, sometimes very far.
        const std::uint64_t kind = prng.below(10);
        std::int64_t delay =
            kind == 0 ? 0 : static_cast<std::int64_t>(prng.below(static_cast<std::uint64_t>(scale) * 8));
        if (kind == 9) delay *= 1000;
        q.push(Time{now + delay}, static_cast<std::uint32_t>(serial & 0xFFFF));
        model.emplace(now + delay, serial++);
      } else {
        WakeUp e;
        ASSERT_TRUE(q.pop(kNever, e));
        const auto first = *model.begin();
        model.erase(model.begin());
        ASSERT_EQ(e.at_ps, first.first);
        ASSERT_EQ(e.actor(), first.second & 0xFFFF);
        now = e.at_ps;
      }
      if (i % 10'000 == 0) q.check_invariants();
      ASSERT_EQ(q.size(), model.size());
    }
  }
}

// A horizon of 1 us is too short for delays of 10 us, so the width must grow, and shrink again.
TEST(EventQueue, TheBucketWidthFollowsTheLoad) {
  EventQueue q;
  Prng prng(7);
  const auto hold = [&](std::int64_t delay, int rounds) {
    WakeUp e;
    for (int i = 0; i < rounds; ++i) {
      ASSERT_TRUE(q.pop(kNever, e));
      q.push(Time{e.at_ps + static_cast<std::int64_t>(prng.below(static_cast<std::uint64_t>(delay)))}, 1);
    }
  };
  for (int i = 0; i < 4000; ++i) q.push(Time{i}, 0);
  const unsigned before = q.shift();
  hold(milliseconds(10).ps, 1'000'000);
  const unsigned wide = q.shift();
  EXPECT_GT(wide, before);
  hold(nanoseconds(100).ps, 2'000'000);
  EXPECT_LT(q.shift(), wide);
  q.check_invariants();
}

}  // namespace
}  // namespace weft::sim
