// The order of pops is that of a sorted list where there is one node; where there are several it is that of
// each node, window by window.
#include "sim/engine/window_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "core/base/prng.h"

namespace weft::sim {
namespace {

WakeUp usual(std::int64_t at, std::uint32_t actor) { return WakeUp::of(Time{at}, Rank::kUsual, actor); }

std::vector<std::uint32_t> popped(WindowQueue& q, Time limit = kNever) {
  std::vector<std::uint32_t> actors;
  for (WakeUp e; q.pop(limit, e);) actors.push_back(e.actor());
  return actors;
}

TEST(Windows, EveryTimeLiesInTheWindowThatDivisionSays) {
  Prng random(7);
  for (const std::int64_t width :
       {std::int64_t{2}, std::int64_t{3}, std::int64_t{999'983}, std::int64_t{1} << 20U,
        (std::int64_t{1} << 20U) + 1, std::int64_t{1'999'999}, std::int64_t{2'000'000}}) {
    const Windows windows{Duration{width}};
    for (int i = 0; i < 20'000; ++i) {
      const auto any = static_cast<std::int64_t>(random.next() >> (1U + random.below(62)));
      for (const std::int64_t at : {any, any / width * width, any / width * width + width - 1}) {
        if (at < 0) continue;  // beyond the last window
        ASSERT_EQ(windows.of(Time{at}), at / width) << width;
      }
    }
    EXPECT_EQ(windows.start(5), Time{5 * width});
  }
}

TEST(WindowQueue, RankDecidesBetweenEventsOfOneTime) {
  WindowQueue q;
  for (int i = 0; i < 4; ++i) q.add_actor(1);
  q.push(WakeUp::of(Time{5'000'000}, Rank::kTimeout, 0));
  q.push(WakeUp::of(Time{5'000'001}, Rank::kArrival, 1));
  q.push(WakeUp::of(Time{5'000'000}, Rank::kUsual, 2));
  q.push(WakeUp::of(Time{5'000'000}, Rank::kArrival, 3));
  EXPECT_EQ(popped(q), (std::vector<std::uint32_t>{3, 2, 0, 1}));
}

// Neither who asked first nor who has the lower number is favoured.
TEST(WindowQueue, EventsOfOneTimeAndRankAreDrawnByLot) {
  int low_first = 0;
  constexpr int kTimes = 2000;
  for (int i = 0; i < kTimes; ++i) {
    std::vector<std::uint32_t> orders[2];
    for (int asked = 0; asked < 2; ++asked) {
      WindowQueue q;
      for (int k = 0; k < 2; ++k) q.add_actor(1);
      q.push(usual(i * 80'000, asked == 0 ? 0U : 1U));
      q.push(usual(i * 80'000, asked == 0 ? 1U : 0U));
      orders[asked] = popped(q);
    }
    ASSERT_EQ(orders[0], orders[1]);
    low_first += orders[0][0] == 0 ? 1 : 0;
  }
  EXPECT_NEAR(low_first, kTimes / 2, 150);
}

TEST(WindowQueue, NothingLaterThanTheLimitLeaves) {
  WindowQueue q;
  for (int i = 0; i < 3; ++i) q.add_actor(1);
  q.push(usual(10, 0));
  q.push(usual(1'000'000, 1));      // in the wheel
  q.push(usual(seconds(1).ps, 2));  // beyond it
  WakeUp e;
  EXPECT_FALSE(q.pop(Time{9}, e));
  EXPECT_TRUE(q.pop(Time{10}, e));
  EXPECT_FALSE(q.pop(Time{999'999}, e));
  EXPECT_TRUE(q.pop(Time{1'000'000}, e));
  EXPECT_FALSE(q.pop(Time{seconds(1).ps - 1}, e));
  EXPECT_TRUE(q.pop(Time{seconds(1).ps}, e));
  EXPECT_EQ(e.actor(), 2U);
  EXPECT_TRUE(q.empty());
}

// A pop that finds everything too late must not have gone past what is pushed afterwards.
TEST(WindowQueue, APushBeforeTheLimitOfAFailedPopComesFirst) {
  WindowQueue q;
  for (int i = 0; i < 3; ++i) q.add_actor(1);
  q.push(usual(1'000'500, 0));
  WakeUp e;
  EXPECT_FALSE(q.pop(Time{1'000'499}, e));
  q.push(usual(1'000'499, 1));
  q.push(usual(3'000, 2));
  EXPECT_EQ(popped(q), (std::vector<std::uint32_t>{2, 1, 0}));
}

TEST(WindowQueue, InAWindowOneNodeRunsAfterTheOther) {
  WindowQueue q;
  q.set_width(Duration{1000});
  for (const std::uint32_t node : {1U, 2U}) q.add_actor(node);
  for (const std::int64_t at : {100, 300, 1100}) q.push(usual(at, 0));
  for (const std::int64_t at : {200, 400, 1050}) q.push(usual(at, 1));
  const auto order = popped(q);
  EXPECT_TRUE(order == (std::vector<std::uint32_t>{0, 0, 1, 1, 0, 1}) ||
              order == (std::vector<std::uint32_t>{1, 1, 0, 0, 0, 1}) ||
              order == (std::vector<std::uint32_t>{0, 0, 1, 1, 1, 0}) ||
              order == (std::vector<std::uint32_t>{1, 1, 0, 0, 1, 0}));
}

TEST(WindowQueue, AWorldEventWaitsUntilAllNodesHaveReachedItsTime) {
  WindowQueue q;
  q.set_width(Duration{1000});
  for (const std::uint32_t node : {1U, 2U, WindowQueue::kWorld}) q.add_actor(node);
  for (const std::int64_t at : {100, 300, 500}) q.push(usual(at, 0));
  for (const std::int64_t at : {200, 299, 301}) q.push(usual(at, 1));
  q.push(usual(300, 2));
  const auto order = popped(q);
  ASSERT_EQ(order.size(), 7U);
  EXPECT_EQ(order[3], 2U);  // after 100, 200 and 299, before 300
  EXPECT_EQ(std::count(order.begin(), order.begin() + 3, 1U), 2);
}

// The window that a world event sees is the one that it begins.
TEST(WindowQueue, AWorldEventAtTheEndOfAWindowBelongsToTheNext) {
  WindowQueue q;
  q.set_width(Duration{500});
  q.add_actor(1);
  q.add_actor(WindowQueue::kWorld);
  q.push(usual(100, 0));
  q.push(usual(500, 1));
  WakeUp e;
  ASSERT_TRUE(q.pop(kNever, e));
  EXPECT_EQ(q.window_end(), Time{500});
  ASSERT_TRUE(q.pop(kNever, e));
  EXPECT_EQ(e.actor(), 1U);
  EXPECT_EQ(q.window_end(), Time{1000});
}

// Random events over every scale of delay: one node alone, and the world alone, pop what an ordered set
// would.
TEST(WindowQueue, OneNodePopsWhatAnOrderedSetPops) {
  for (const std::uint32_t node : {WindowQueue::kWorld, 1U}) {
    for (const std::int64_t scale : {1LL, 1'000LL, 1'000'000LL, 3'000'000'000LL}) {
      Prng prng(static_cast<std::uint64_t>(scale));
      WindowQueue q;
      constexpr std::uint32_t kActors = 1000;
      for (std::uint32_t i = 0; i < kActors; ++i) q.add_actor(node);
      std::multiset<std::pair<std::int64_t, std::uint64_t>> model;
      std::int64_t now = 0;
      for (int i = 0; i < 60'000; ++i) {
        if (model.size() < 20 || prng.chance(model.size() < 3000 ? 520'000 : 400'000)) {
          // Mostly near, sometimes at once, sometimes very far.
          const std::uint64_t kind = prng.below(10);
          std::int64_t delay =
              kind == 0 ? 0 : static_cast<std::int64_t>(prng.below(static_cast<std::uint64_t>(scale) * 8));
          if (kind == 9) delay *= 1000;
          const WakeUp e = usual(now + delay, static_cast<std::uint32_t>(prng.below(kActors)));
          q.push(e);
          model.emplace(e.at_ps, e.order);
        } else {
          WakeUp e;
          ASSERT_TRUE(q.pop(kNever, e));
          ASSERT_EQ(std::make_pair(e.at_ps, e.order), *model.begin());
          model.erase(model.begin());
          now = e.at_ps;
        }
        if (i % 10'000 == 0) q.check_invariants();
        ASSERT_EQ(q.size(), model.size());
      }
    }
  }
}

// A random world of nodes that wake themselves at any time and each other no sooner than a window later. Each
// node's log is the same whether nodes run apart or all as one.
TEST(WindowQueue, ANodeSeesTheSameEventsApartAsInOrderOfTime) {
  constexpr std::uint32_t kNodes = 20;
  constexpr std::int64_t kWindow = 4096;
  using Log = std::vector<std::pair<std::int64_t, std::uint64_t>>;
  std::vector<Log> logs[2];
  for (const bool apart : {false, true}) {
    WindowQueue q;
    q.set_width(Duration{kWindow});
    std::vector<Prng> random;
    for (std::uint32_t i = 0; i < kNodes; ++i) {
      q.add_actor(apart ? 1U + i : 1U);
      random.emplace_back(i + 1U);
      q.push(usual(0, i));
    }
    auto& log = logs[apart ? 1 : 0];
    log.resize(kNodes);
    std::size_t events = 0;
    for (WakeUp e; q.pop(Time{40 * kWindow}, e);) {
      if (++events % 4096 == 0) q.check_invariants();
      const std::uint32_t self = e.actor();
      log[self].emplace_back(e.at_ps, e.order);
      Prng& r = random[self];
      if (r.chance(900'000)) q.push(usual(e.at_ps + static_cast<std::int64_t>(r.below(700)), self));
      if (r.chance(150'000))
        q.push(usual(e.at_ps + kWindow + static_cast<std::int64_t>(r.below(5000)),
                     static_cast<std::uint32_t>(r.below(kNodes))));
    }
  }
  std::size_t events = 0;
  for (std::uint32_t i = 0; i < kNodes; ++i) {
    EXPECT_EQ(logs[0][i], logs[1][i]) << "node " << i;
    events += logs[0][i].size();
  }
  EXPECT_GT(events, 2000U);
}

}  // namespace
}  // namespace weft::sim
