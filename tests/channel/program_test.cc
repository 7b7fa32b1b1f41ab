// What a program may do with a context at any time: sleep, come late, run for months, and make mistakes.
#include <chrono>

#include "channel/report.h"
#include "channel_c/clock.h"
#include "tests/channel/worlds.h"

namespace weft::channel_test {
namespace {

struct Pair {
  explicit Pair(const Config& config = small_config()) : world(config) { world.connect(at_a, at_b); }
  User& a() { return world.a(); }
  User& b() { return world.b(); }
  NicWorld world;
  Channel* at_a = nullptr;
  Channel* at_b = nullptr;
};

bool rang(VerbsPort& port) {
  bool yes = false;
  for (PortEvent e; port.poll_event(e);) yes = yes || e.kind == PortEventKind::kCompletion;
  return yes;
}

// A message comes after the last poll and before arm(); another one after that. The first is told at once,
// the second by an event that nobody has taken.
TEST(Sleepers, AreWokenByWhateverComesAfterTheyLooked) {
  Pair p;
  p.b().context->look_next_time();
  p.b().poll(p.world.now());
  ASSERT_TRUE(p.a().context->send(*p.at_a, p.a().make(10, 1), 1, false));
  p.world.pass(microseconds(50));
  ASSERT_TRUE(p.b().context->arm());
  Notice n;
  ASSERT_TRUE(p.b().context->next(n));
  EXPECT_EQ(n.kind, Notice::Kind::kMessage);
  EXPECT_FALSE(rang(p.world.port_b()));
  ASSERT_TRUE(p.a().context->send(*p.at_a, p.a().make(10, 2), 2, false));
  p.world.pass(microseconds(50));
  EXPECT_TRUE(rang(p.world.port_b()));
}

// It opens a context, works for a minute, and then asks for a channel: the attempt begins then.
TEST(Deadlines, CountFromTheTimeOfTheCall) {
  NicWorld world(small_config());
  ASSERT_TRUE(world.b().context->listen(kService).has_value());
  world.a().poll(Time{});
  const Time late = Time{} + seconds(60);
  world.a().context->at(late);
  ASSERT_TRUE(world.a().context->connect(world.address_b(), kService, 1).has_value());
  world.a().poll(late + milliseconds(1));
  EXPECT_TRUE(world.a().notices.empty());
  world.a().poll(late + seconds(6));
  EXPECT_EQ(world.a().take().reason, Reason::kLate);
}

TEST(Deadlines, DoNotWrapAtTheEndOfTime) {
  Config config = small_config();
  config.connecting = seconds(1'000'000);
  NicWorld world(config);
  ASSERT_TRUE(world.b().context->listen(kService).has_value());
  const Time last{INT64_MAX - seconds(10).ps};
  world.a().poll(last);
  ASSERT_TRUE(world.a().context->connect(world.address_b(), kService, 1).has_value());
  world.a().poll(last + seconds(1));
  EXPECT_TRUE(world.a().notices.empty());
}

// A year of a program that polls once a day, and of one that sleeps for a year: time goes on by what passed,
// and stays far from what a Time holds.
TEST(Clocks, RunForAYear) {
  using channel::Clock;
  for (const std::int64_t hours_between : {24, 366 * 24}) {
    Clock::Point point = Clock::Point{} + std::chrono::hours(5);
    Clock clock(point);
    Time before = clock.at(point, [](Duration) { FAIL(); });
    for (std::int64_t hour = hours_between; hour <= 366 * 24; hour += hours_between) {
      point += std::chrono::hours(hours_between);
      std::int64_t gone_back = 0;
      const Time now = clock.at(point, [&](Duration by) {
        ASSERT_LE(by, channel::kMostRebase);
        gone_back += by.us() / 3'600'000'000;
        before = channel::rebased(before, by);
      });
      EXPECT_GE(now, Time{} + seconds(3600));
      EXPECT_LE(now, Time{} + seconds(51LL * 24 * 3600));
      if (hours_between == 24) {
        EXPECT_EQ(now - before, seconds(24LL * 3600)) << hour;
      }
      EXPECT_GE(now - before, seconds(24LL * 3600));
      EXPECT_TRUE(gone_back == 0 || now < Time{} + seconds(49LL * 24 * 3600));
      before = now;
    }
  }
}

// A message that was received cannot be sent or be an answer; none is sent twice.
TEST(Mistakes, OfAMessageThatIsNotToBeSentAreRefused) {
  Pair p;
  ASSERT_TRUE(p.a().context->send(*p.at_a, p.a().make(10, 1), 1, false));
  ASSERT_TRUE(p.a().context->call(*p.at_a, p.a().make(10, 2), 2, kNever));
  p.world.run(milliseconds(1));
  const Notice came = p.b().take();
  const Notice asked = p.b().take();
  ASSERT_EQ(asked.kind, Notice::Kind::kRequest);
  EXPECT_FALSE(p.b().context->send(*p.at_b, came.message, 1, false));
  EXPECT_FALSE(p.b().context->call(*p.at_b, came.message, 1, kNever));
  EXPECT_FALSE(p.b().context->answer(*asked.message, asked.message, 0, 0));
  Message* const once = p.b().make(10, 3);
  ASSERT_TRUE(p.b().context->send(*p.at_b, once, 1, false));
  EXPECT_FALSE(p.b().context->send(*p.at_b, once, 1, false));
  ASSERT_TRUE(p.b().context->answer(*asked.message, nullptr, 0, 0));
  p.b().context->release(came.message);
  p.b().context->release(asked.message);
  p.world.run(milliseconds(1));
  while (!p.a().notices.empty()) p.a().context->release(p.a().take().message);
  p.a().context->close(*p.at_a);
  p.world.run(milliseconds(10));
  for (User* u : {&p.a(), &p.b()}) {
    EXPECT_EQ(u->context->own_memory().in_use, 0U);
    EXPECT_EQ(u->context->lent_memory().in_use, 0U);
  }
}

// 2^32 - 1 is what -1 becomes.
TEST(Mistakes, InALengthGiveNoMessage) {
  NicWorld world(small_config());
  for (const std::uint32_t length : {0xFFFF'FFFFU, 0xFFFF'FF00U, 0x8000'0000U}) {
    EXPECT_EQ(world.a().context->allocate(length), nullptr);
    EXPECT_FALSE(world.a().context->reserve(length, 1));
  }
}

// The end of a channel was handed out, and the program has not come to it: a new channel is another one.
TEST(Ends, AreSeenBeforeTheirChannelServesAgain) {
  Pair p;
  p.a().context->abort(*p.at_a);
  Notice n;
  ASSERT_TRUE(p.a().context->next(n));
  ASSERT_EQ(n.kind, Notice::Kind::kClosed);
  const auto other = p.a().context->connect(p.world.address_b(), kService, 5);
  ASSERT_TRUE(other);
  EXPECT_NE(*other, p.at_a);
}

// Longer messages than a context has room for are not sent to it.
TEST(Memory, BoundsTheMessagesThatAContextTakes) {
  Pair p;
  Message* const m = p.a().make(9U << 20U, 1);
  ASSERT_NE(m, nullptr);
  EXPECT_FALSE(p.a().context->send(*p.at_a, m, 1, false));
  p.a().context->release(m);
}

// One channel waits for memory that the program holds; the other's message has its own and comes whole.
TEST(Memory, ThatOneChannelWaitsForStopsNoOther) {
  Config config = small_config();
  config.fragment = 1024;
  Pair p(config);
  ASSERT_TRUE(p.a().context->connect(p.world.address_b(), kService, 5));
  p.world.run(milliseconds(1));
  p.b().context->accept(*p.b().take().channel, 6);
  p.world.run(milliseconds(1));
  Channel* const second = p.a().take().channel;
  p.b().take();
  for (std::uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(p.a().context->send(*p.at_a, p.a().make(8'200'000, i), i, false));
    p.world.run(milliseconds(40));
  }
  const Notice held = p.b().take();
  ASSERT_EQ(held.kind, Notice::Kind::kMessage);
  ASSERT_GT(p.b().context->counts().starved, 0U);
  ASSERT_TRUE(p.b().notices.empty());
  ASSERT_TRUE(p.a().context->send(*second, p.a().make(100'000, 7), 7, false));
  p.world.run(milliseconds(2));
  const Notice n = p.b().take();
  ASSERT_EQ(n.kind, Notice::Kind::kMessage);
  EXPECT_TRUE(User::filled(*n.message, 100'000, 7));
  p.b().context->release(n.message);
  p.b().context->release(held.message);  // and then there is room
  p.world.run(milliseconds(40));
  EXPECT_EQ(p.b().take().kind, Notice::Kind::kMessage);
}

// A block is idle from when it was given back, not from when somebody last looked.
TEST(Memory, IsIdleFromWhenItWasGivenBack) {
  Config config = small_config();
  config.idle_memory = milliseconds(5);
  config.terms.timeout = 1;
  NicWorld world(config);
  Context& c = *world.a().context;
  c.poll(Time{});
  Message* const m = c.allocate(100);
  c.poll(Time{} + milliseconds(5));
  c.poll(Time{} + microseconds(9'900));
  c.release(m);
  c.poll(Time{} + milliseconds(10));
  EXPECT_GT(c.lent_memory().registered, 0U);
  c.poll(Time{} + milliseconds(15));
  EXPECT_EQ(c.lent_memory().registered, 0U);
}

// The peer asks and keeps every response: answers wait up to a bound, and then they are refused.
TEST(Memory, IsNotFilledByAnswersThatNobodyTakes) {
  Config config = small_config();
  config.depth = 8;
  config.queue = 4;
  config.calls = 16;
  Pair p(config);
  std::vector<Message*> held;
  for (std::uint32_t i = 0; i < 200; ++i) {
    Message* const m = p.a().make(10, i);
    const auto id = p.a().context->call(*p.at_a, m, i, kNever);
    if (!id) p.a().context->release(m);
    p.world.run(microseconds(100));
    if (id && i >= 8) (void)p.a().context->cancel(*id);  // and asks again, whatever comes of it
    while (!p.b().notices.empty()) held.push_back(p.b().take().message);
    while (!held.empty() && p.b().context->answer(*held.front(), nullptr, 0, 0)) {
      p.b().context->release(held.front());
      held.erase(held.begin());
    }
    ASSERT_LE(p.at_b->waiting, config.queue + config.depth + config.calls);
  }
  EXPECT_FALSE(held.empty());
  // It takes them after all, and everything is answered.
  for (int turn = 0; turn < 200; ++turn) {
    while (!p.a().notices.empty()) {
      const Notice n = p.a().take();
      if (n.message != nullptr) p.a().context->release(n.message);
    }
    p.world.run(microseconds(100));
    while (!p.b().notices.empty()) held.push_back(p.b().take().message);
    while (!held.empty() && p.b().context->answer(*held.front(), nullptr, 0, 0)) {
      p.b().context->release(held.front());
      held.erase(held.begin());
    }
  }
  EXPECT_TRUE(held.empty());
  EXPECT_EQ(p.at_b->waiting, 0U);
}

// What each end has in flight, holds and waits for is there to be read, and so is how long requests took.
TEST(Statistics, SayWhatAChannelIsDoing) {
  Pair p;
  const auto text = [&] { return report(*p.a().context); };
  for (std::uint32_t i = 0; i < 3; ++i)
    ASSERT_TRUE(p.a().context->send(*p.at_a, p.a().make(10, i), i, false));
  ASSERT_TRUE(p.a().context->call(*p.at_a, p.a().make(10, 3), 3, kNever));
  p.world.run(microseconds(100));
  auto at_a = stat_of(*p.at_a);
  auto at_b = stat_of(*p.at_b);
  EXPECT_EQ(at_a.state, Channel::State::kOpen);
  EXPECT_TRUE(at_a.asked && !at_b.asked);
  EXPECT_EQ(at_a.peer, p.world.address_b());
  EXPECT_EQ(at_b.peer, p.world.address_a());
  EXPECT_EQ(at_b.service, kService);
  EXPECT_EQ(at_a.in_flight, 4U);
  EXPECT_EQ(at_a.depth, small_config().depth);
  EXPECT_EQ(at_a.calls, 1U);
  EXPECT_EQ(at_a.counts.sent, 4U);
  EXPECT_EQ(at_a.counts.sent_bytes, 40U);
  EXPECT_EQ(at_a.round_trips.count, 0U);
  EXPECT_EQ(at_b.held, 4U);
  EXPECT_EQ(at_b.counts.received, 4U);
  EXPECT_NE(text().find(" 4/32 "), std::string::npos) << text();
  while (!p.b().notices.empty()) {
    const Notice n = p.b().take();
    if (n.kind == Notice::Kind::kRequest) {
      ASSERT_TRUE(p.b().context->answer(*n.message, nullptr, 0, 0));
    }
    p.b().context->release(n.message);
  }
  p.world.run(microseconds(200));
  at_a = stat_of(*p.at_a);
  EXPECT_EQ(at_a.in_flight, 0U);
  EXPECT_EQ(at_a.calls, 0U);
  EXPECT_EQ(at_a.round_trips.count, 1U);
  EXPECT_GE(at_a.round_trips.last, microseconds(100));  // the program thought about it
  EXPECT_LE(at_a.round_trips.last, microseconds(110));
  EXPECT_EQ(at_a.round_trips.least, at_a.round_trips.last);
  EXPECT_EQ(at_a.round_trips.smoothed, at_a.round_trips.last);
  EXPECT_EQ(text().find("channels 1 of 4,"), 0U) << text();
  EXPECT_NE(text().find("\nopen "), std::string::npos) << text();
  EXPECT_NE(text().find(" 0/32 "), std::string::npos) << text();
  p.a().context->release(p.a().take().message);
  p.a().context->abort(*p.at_a);
  EXPECT_EQ(text().find("channels 0 of 4,"), std::string::npos);  // until its end is told
  EXPECT_EQ(text().find("\nopen "), std::string::npos) << text();
}

TEST(Statistics, SmoothRoundTripsByAnEighth) {
  channel::RoundTrips t;
  t.add(microseconds(80));
  t.add(microseconds(160));
  t.add(microseconds(40));
  EXPECT_EQ(t.count, 3U);
  EXPECT_EQ(t.last, microseconds(40));
  EXPECT_EQ(t.least, microseconds(40));
  EXPECT_EQ(t.smoothed, nanoseconds(83'750));  // 80, 90, 83.75
}

// Switched on and off while messages travel.
TEST(Filter, DropsAndHoldsUpAndLetsGo) {
  Pair p;
  Context& b = *p.b().context;
  const auto send = [&](std::uint32_t number) {
    ASSERT_TRUE(p.a().context->send(*p.at_a, p.a().make(10, number), number, true));
  };
  // Dropped: the sender is told that it was taken, a request has no response.
  ASSERT_TRUE(b.set("filter_drop_ppm", 1'000'000));
  send(1);
  ASSERT_TRUE(p.a().context->call(*p.at_a, p.a().make(10, 2), 2, p.world.now() + milliseconds(1)));
  p.world.run(milliseconds(2));
  EXPECT_TRUE(p.b().notices.empty());
  EXPECT_EQ(b.counts().dropped, 2U);
  EXPECT_EQ(p.a().take().fate, Fate::kDelivered);
  EXPECT_EQ(p.a().take().fate, Fate::kTooLate);
  // Held up: each in turn.
  ASSERT_TRUE(b.set("filter_drop_ppm", 0));
  ASSERT_TRUE(b.set("filter_delay_us", 300));
  send(3);
  send(4);
  p.world.run(microseconds(250));
  EXPECT_TRUE(p.b().notices.empty());
  p.world.run(microseconds(150));
  ASSERT_EQ(p.b().notices.size(), 1U);
  p.world.run(microseconds(300));
  ASSERT_EQ(p.b().notices.size(), 2U);
  // Off, with one held up: it comes.
  send(5);
  p.world.run(microseconds(50));
  ASSERT_TRUE(b.set("filter_delay_us", 0));
  p.world.run(microseconds(400));
  ASSERT_EQ(p.b().notices.size(), 3U);
  for (std::uint32_t i = 3; i <= 5; ++i) {
    const Notice n = p.b().take();
    EXPECT_TRUE(User::filled(*n.message, 10, i)) << i;
    b.release(n.message);
  }
  EXPECT_FALSE(b.set("filter_drop_ppm", 1'000'001));
}

// Connections fail on purpose, one message in twenty, and the session bears it: each message once, in order.
TEST(Filter, FailsConnectionsThatSessionsSurvive) {
  Config config = small_config();
  config.reconnect = seconds(1);
  config.redial = microseconds(100);
  config.filter_fail = 50'000;
  config.filter_delay = microseconds(3);
  Pair p(config);
  std::uint32_t sent = 0;
  std::uint32_t came = 0;
  for (int turn = 0; turn < 4000 && came < 300; ++turn) {
    while (sent < 300) {
      Message* const m = p.a().make(40, sent);
      if (!p.a().context->send(*p.at_a, m, sent, false)) {
        p.a().context->release(m);
        break;
      }
      ++sent;
    }
    p.world.run(microseconds(50));
    while (!p.b().notices.empty()) {
      const Notice n = p.b().take();
      ASSERT_EQ(n.kind, Notice::Kind::kMessage);
      ASSERT_TRUE(User::filled(*n.message, 40, came)) << came;
      ++came;
      p.b().context->release(n.message);
    }
  }
  EXPECT_EQ(came, 300U);
  EXPECT_GE(p.b().context->counts().failed, 5U);
  EXPECT_EQ(p.at_b->counts().reconnects, p.b().context->counts().failed);
}

TEST(Keepalive, BeginsWhenItIsSwitchedOn) {
  Config config = small_config();
  config.keepalive = {};
  Pair p(config);
  p.world.run(milliseconds(10));
  EXPECT_EQ(p.at_a->counts().probes, 0U);
  ASSERT_TRUE(p.a().context->set("keepalive_intv_ms", 2));
  p.world.run(milliseconds(11));
  EXPECT_GE(p.at_a->counts().probes, 4U);
}

}  // namespace
}  // namespace weft::channel_test
