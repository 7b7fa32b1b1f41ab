#include "sim/engine/timeline.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/base/prng.h"

namespace weft::sim {
namespace {

struct Recorder {
  explicit Recorder(Timeline& t)
      : timeline(t), bell(t.add<&Recorder::on_bell>(*this)), tick(t.add<&Recorder::on_tick>(*this)) {}
  void on_bell(Time now) { log.emplace_back("bell", now.ps); }
  void on_tick(Time now) {
    log.emplace_back("tick", now.ps);
    if (ticks-- > 0) timeline.wake(tick, now + nanoseconds(7));
  }
  Timeline& timeline;
  ActorId bell;
  ActorId tick;
  int ticks = 0;
  std::vector<std::pair<std::string, std::int64_t>> log;
};

TEST(Timeline, AnActorMayWakeItselfAndTheClockJumps) {
  Timeline t;
  Recorder r(t);
  r.ticks = 2;
  t.wake(r.tick, Time{1000});
  t.wake(r.bell, Time{8001});
  EXPECT_EQ(t.run(kNever, 100), 4U);
  EXPECT_EQ(r.log, (std::vector<std::pair<std::string, std::int64_t>>{
                       {"tick", 1000}, {"tick", 8000}, {"bell", 8001}, {"tick", 15000}}));
  EXPECT_EQ(t.now().ps, 15000);
  EXPECT_EQ(t.events(), 4U);
  EXPECT_TRUE(t.idle());
}

TEST(Timeline, StopsAtALimitOfTimeOrOfEvents) {
  Timeline t;
  Recorder r(t);
  for (int i = 1; i <= 10; ++i) t.wake(r.bell, Time{i * 100});
  EXPECT_EQ(t.run(Time{300}, 100), 3U);
  EXPECT_EQ(t.now().ps, 300);
  EXPECT_EQ(t.run(kNever, 2), 2U);
  EXPECT_EQ(t.now().ps, 500);
}

// Two runs of a random world with many simultaneous wake-ups give the same log.
TEST(Timeline, TheSameSeedGivesTheSameRun) {
  struct Walker {
    explicit Walker(Timeline& t) : timeline(t) {
      for (int i = 0; i < 50; ++i) ids.push_back(t.add<&Walker::on_wake>(*this));
    }
    void on_wake(Time now) {
      log.push_back(now.ps);
      if (log.size() > 20'000) return;
      for (std::uint64_t k = prng.below(3); k-- > 0;) {
        const std::size_t who = prng.below(ids.size());
        log.push_back(static_cast<std::int64_t>(who));
        timeline.wake(ids[who], now + nanoseconds(static_cast<std::int64_t>(prng.below(20))));
      }
    }
    Timeline& timeline;
    Prng prng{3};
    std::vector<ActorId> ids;
    std::vector<std::int64_t> log;
  };
  std::vector<std::int64_t> logs[2];
  for (auto& log : logs) {
    Timeline t;
    Walker w(t);
    for (const ActorId id : w.ids) t.wake(id, Time{});
    t.run(kNever, 100'000);
    log = w.log;
  }
  EXPECT_GT(logs[0].size(), 1000U);
  EXPECT_EQ(logs[0], logs[1]);
}

}  // namespace
}  // namespace weft::sim
