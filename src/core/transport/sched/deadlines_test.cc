// The heap of time-outs against a list that is searched: same order, ties by index, entries only get earlier,
// and what was forgotten stays forgotten until it is armed again.
#include "core/transport/sched/deadlines.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/prng.h"

namespace weft {
namespace {

TEST(Deadlines, LeaveInTheOrderOfTimeThenOfIndex) {
  constexpr std::uint32_t kCount = 500;
  Deadlines heap(kCount);
  std::map<std::uint32_t, Time> list;
  Prng random(3);
  for (int step = 0; step < 20'000; ++step) {
    const auto index = static_cast<std::uint32_t>(random.below(kCount));
    switch (random.below(4)) {
      case 0:
      case 1: {
        const Time at = Time{}.after(nanoseconds(static_cast<std::int64_t>(random.below(300))));
        heap.at_latest(index, at);
        const auto known = list.find(index);
        if (known == list.end() || at < known->second) list[index] = at;
        break;
      }
      case 2:
        heap.remove(index);
        list.erase(index);
        break;
      default:
        if (!list.empty()) {
          auto first = list.begin();
          for (auto i = list.begin(); i != list.end(); ++i) {
            if (i->second < first->second) first = i;
          }
          ASSERT_EQ(heap.next(), first->second);
          ASSERT_EQ(heap.top(), first->first);
          heap.remove(heap.top());
          list.erase(first);
        }
    }
    ASSERT_EQ(heap.empty(), list.empty());
    ASSERT_EQ(heap.contains(index), list.count(index) == 1);
  }
}

// As a device's timers run: time goes on, everything is armed ahead of it by one of three time-outs, many at
// the same instant, and most is forgotten before it fires. Of those that fire together the forgotten ones may
// leave in any order.
TEST(Deadlines, TimersOfFewLengthsLeaveInOrderToo) {
  constexpr std::uint32_t kCount = 100;
  Deadlines heap(kCount);
  struct Known {
    Time at;
    bool forgotten = false;
  };
  std::map<std::uint32_t, Known> list;
  Prng random(5);
  Time now;
  std::uint64_t live = 0;
  for (int step = 0; step < 20'000; ++step) {
    const auto index = static_cast<std::uint32_t>(random.below(kCount));
    if (random.below(8) == 0) now = now.after(nanoseconds(static_cast<std::int64_t>(random.below(20))));
    if (random.below(3) == 0) {
      heap.forget(index);
      if (list.count(index) == 1) list[index].forgotten = true;
    } else {
      const Time at = now.after(nanoseconds(random.below(16) == 0 ? 70 : random.below(2) == 0 ? 100 : 320));
      heap.at_latest(index, at);
      const auto known = list.find(index);
      if (known == list.end() || at < known->second.at) list[index].at = at;
      list[index].forgotten = false;
    }
    for (;;) {
      Time due = kNever;
      for (const auto& [i, k] : list) due = std::min(due, k.at);
      ASSERT_EQ(heap.next(), due);
      if (due > now) break;
      const std::uint32_t top = heap.top();
      ASSERT_EQ(list.count(top), 1U);
      ASSERT_EQ(list[top].at, due);
      ASSERT_EQ(heap.forgotten(top), list[top].forgotten);
      if (!list[top].forgotten) {
        ++live;
        for (const auto& [i, k] : list) {
          if (k.at == due && !k.forgotten) {
            ASSERT_EQ(top, i);
            break;
          }
        }
      }
      heap.remove(top);
      list.erase(top);
    }
  }
  EXPECT_GT(live, 1000U);
}

TEST(Deadlines, WhatIsForgottenComesBackWithTheNextArming) {
  Deadlines heap(4);
  heap.at_latest(2, Time{}.after(microseconds(5)));
  heap.forget(2);
  EXPECT_TRUE(heap.forgotten(2));
  EXPECT_EQ(heap.top(), 2U);
  heap.at_latest(2, Time{}.after(microseconds(9)));
  EXPECT_FALSE(heap.forgotten(2));
  EXPECT_EQ(heap.next(), Time{}.after(microseconds(5)));  // early is allowed, late is not
  heap.forget(2);
  heap.remove(2);
  EXPECT_FALSE(heap.forgotten(2));
}

}  // namespace
}  // namespace weft
