// Where the time of messages goes: stamps, clocks that differ, what took too long, and peers that lie about
// it.
#include "channel/report.h"
#include "tests/channel/worlds.h"

namespace weft::channel_test {
namespace {

using channel::Place;
using channel::SlowEntry;
using channel::SlowLog;
using channel::Trace;

constexpr std::uint64_t kAll = ~std::uint64_t{0};

// Two programs whose clocks differ: b's shows 7 ms more.
struct Skewed {
  explicit Skewed(const Config& config = small_config(), Duration skew = milliseconds(7)) : world(config) {
    world.b().skew = skew;
    world.connect(at_a, at_b);
  }
  User& a() { return world.a(); }
  User& b() { return world.b(); }
  void trace(std::uint64_t mask = kAll) {
    EXPECT_TRUE(a().context->set("trace_sample_mask", mask));
    EXPECT_TRUE(b().context->set("trace_sample_mask", mask));
    world.run(milliseconds(2));
  }
  // Sends one message; what b knows of it.
  Trace send_one(std::uint32_t length = 100) {
    EXPECT_TRUE(a().context->send(*at_a, a().make(length, 1), 1, false));
    world.run(milliseconds(1));
    const Notice n = b().take();
    EXPECT_EQ(n.kind, Notice::Kind::kMessage);
    EXPECT_TRUE(User::filled(*n.message, length, 1));
    Trace t;
    traced = b().context->trace_of(*n.message, t);
    b().context->release(n.message);
    world.run(milliseconds(1));
    return t;
  }
  NicWorld world;
  Channel* at_a = nullptr;
  Channel* at_b = nullptr;
  bool traced = false;
};

TEST(Traces, TellTheTimeOnTheNetworkBetweenClocksThatDiffer) {
  Skewed p;
  p.trace();
  for (const std::uint32_t length : {100U, 4096U, 50'000U}) {
    const Trace t = p.send_one(length);
    ASSERT_TRUE(p.traced) << length;
    EXPECT_NE(t.id, 0U);
    ASSERT_TRUE(t.offset_known);
    EXPECT_NEAR(static_cast<double>(t.offset_ns), 7e6, static_cast<double>(t.error_ns));
    EXPECT_LE(t.error_ns, 2'500U);
    // The line takes 1 us; programs look every half of one.
    EXPECT_GE(t.network_ns + static_cast<std::int64_t>(t.error_ns), 1'000);
    EXPECT_LE(t.network_ns, 5'000);
  }
  EXPECT_EQ(p.at_b->ways.count, 3U);
}

TEST(Traces, AreSwitchedWhileTheProgramsRun) {
  Skewed p;
  (void)p.send_one();
  EXPECT_FALSE(p.traced);
  EXPECT_EQ(p.at_a->counts().clocks, 0U);
  p.trace();
  (void)p.send_one();
  EXPECT_TRUE(p.traced);
  p.trace(0);
  const std::uint32_t asked = p.at_a->counts().clocks;
  EXPECT_GE(asked, 1U);
  (void)p.send_one();
  EXPECT_FALSE(p.traced);
  p.world.run(milliseconds(5));
  EXPECT_EQ(p.at_a->counts().clocks, asked);  // and nobody asks for clocks any more
}

// One in 64; 256 messages.
TEST(Traces, AreAsManyAsTheMaskSays) {
  Config config = small_config();
  config.trace_mask = 1;
  Skewed p(config);
  int traced = 0;
  for (int i = 0; i < 256; ++i) {
    (void)p.send_one();
    traced += p.traced ? 1 : 0;
  }
  EXPECT_EQ(traced, 4);
  EXPECT_EQ(p.a().context->counts().traced, 4U);
  EXPECT_EQ(p.at_a->counts().sent, 256U);  // questions about clocks are no messages of the program
}

// The block of a request serves a plain message next: nothing of the request goes with it.
TEST(Traces, CarryNothingOfWhatTheirMemoryHeldBefore) {
  Config config = small_config();
  config.trace_mask = kAll;
  Skewed p(config);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(p.a().context->call(*p.at_a, p.a().make(10, 1), 5, kNever));
    p.world.run(milliseconds(1));
    const Notice request = p.b().take();
    ASSERT_EQ(request.kind, Notice::Kind::kRequest);
    ASSERT_TRUE(p.b().context->answer(*request.message, nullptr, 77, 0));
    p.b().context->release(request.message);
    p.world.run(milliseconds(1));
    p.a().context->release(p.a().take().message);
    (void)p.send_one(10);
    EXPECT_TRUE(p.traced);
  }
  EXPECT_EQ(p.b().context->counts().violations, 0U);
}

// The network is slow one way, the peer's program thinks: the requester knows which was which without a clock
// of anybody else.
TEST(Traces, TakeARequestApart) {
  Config config = small_config();
  config.trace_mask = kAll;
  config.slow = microseconds(100);
  Skewed p(config);
  p.world.run(milliseconds(2));
  ASSERT_TRUE(p.a().context->call(*p.at_a, p.a().make(10, 1), 5, kNever));
  p.world.run(microseconds(20));
  const Notice request = p.b().take();
  ASSERT_EQ(request.kind, Notice::Kind::kRequest);
  p.world.run(microseconds(300));
  ASSERT_TRUE(p.b().context->answer(*request.message, p.b().make(10, 2), 0, 0));
  p.b().context->release(request.message);
  p.world.run(milliseconds(1));
  const Notice n = p.a().take();
  ASSERT_EQ(n.kind, Notice::Kind::kResponse);
  Trace t;
  ASSERT_TRUE(p.a().context->trace_of(*n.message, t));
  EXPECT_TRUE(t.response);
  EXPECT_NEAR(static_cast<double>(t.there_ns), 318'000, 4'000);
  EXPECT_GE(t.ways_ns(), 2'000U);
  EXPECT_LE(t.ways_ns(), 6'000U);
  EXPECT_LE(t.queued_ns, 500U);
  p.a().context->release(n.message);
  SlowEntry e;
  ASSERT_TRUE(p.a().context->next_slow(e));
  EXPECT_EQ(e.place, Place::kRequest);
  EXPECT_EQ(e.trace, t.id);
  const std::string said = sentence(e);
  EXPECT_NE(said.find("request to "), std::string::npos) << said;
  EXPECT_NE(said.find("peer 31"), std::string::npos) << said;
  EXPECT_FALSE(p.a().context->next_slow(e));
}

// Long tail: now and then the network holds a message up. It is logged at the receiver, by its trace.
TEST(SlowLogs, NameAMessageThatTheNetworkHeldUp) {
  Config config = small_config();
  config.trace_mask = kAll;
  config.slow = microseconds(50);
  Skewed p(config);
  p.world.run(milliseconds(5));
  SlowEntry e;
  (void)p.send_one();
  EXPECT_FALSE(p.b().context->next_slow(e));
  ASSERT_TRUE(p.a().context->send(*p.at_a, p.a().make(10, 1), 1, false));
  // The wire stands still for a while: time-outs of the transport bring the message.
  p.world.cut(true);
  p.world.run(milliseconds(2));
  p.world.cut(false);
  p.world.run(milliseconds(20));
  ASSERT_TRUE(p.b().context->next_slow(e));
  EXPECT_EQ(e.place, Place::kWay);
  EXPECT_GE(e.took_ns, 1'000'000U);
  EXPECT_NE(e.trace, 0U);
  EXPECT_NE(sentence(e).find("network from "), std::string::npos);
}

// Jitter: a program that does something else between two polls is told so; one that slept is not.
TEST(SlowLogs, CountTheTimeBetweenPolls) {
  Config config = small_config();
  config.poll_warn = microseconds(500);
  Skewed p(config, {});
  p.a().poll(p.world.now() + microseconds(400));
  EXPECT_EQ(p.a().context->counts().late_polls, 0U);
  p.a().poll(p.world.now() + microseconds(1000));
  EXPECT_EQ(p.a().context->counts().late_polls, 1U);
  SlowEntry e;
  ASSERT_TRUE(p.a().context->next_slow(e));
  EXPECT_EQ(sentence(e), "time between polls took 600.0 us");
  ASSERT_TRUE(p.a().context->arm());
  p.a().poll(p.world.now() + milliseconds(50));
  EXPECT_EQ(p.a().context->counts().late_polls, 1U);
}

// The clock of a machine on which registering memory takes 3 ms and everything else a microsecond.
struct Machine {
  std::uint64_t ns = 1;
  std::uint64_t step = 1'000;
  static std::uint64_t read(void* at) {
    Machine& m = *static_cast<Machine*>(at);
    return m.ns += m.step;
  }
};

TEST(SlowLogs, NameThePartOfTheTurnThatTookLong) {
  Machine machine;
  Config config = small_config();
  config.clock = Machine::read;
  config.program = &machine;
  config.slow = microseconds(100);
  Skewed p(config, {});
  SlowEntry e;
  EXPECT_FALSE(p.a().context->next_slow(e));
  machine.step = 3'000'000;
  Message* const m = p.a().context->allocate(10);
  machine.step = 1'000;
  p.a().context->release(m);
  ASSERT_TRUE(p.a().context->next_slow(e));
  EXPECT_EQ(sentence(e), "memory took 3000.0 us");
  ASSERT_TRUE(p.a().context->set("slow_threshold", 0));
  machine.step = 3'000'000;
  p.a().context->release(p.a().context->allocate(10));
  EXPECT_FALSE(p.a().context->next_slow(e));
}

// A place that is slow a thousand times a second for a minute, and another one once.
TEST(SlowLogs, DoNotFlood) {
  SlowLog log;
  std::uint64_t now = 1'000'000'000;
  std::uint64_t counted = 0;
  std::uint64_t written = 0;
  SlowEntry e;
  for (int i = 0; i < 60'000; ++i, now += 1'000'000) {
    (void)log.add(Place::kTimers, now, 200'000 + static_cast<std::uint64_t>(i % 100));
    while (log.next(e)) ++written, counted += 1 + e.omitted;
  }
  EXPECT_LE(written, 10U);
  EXPECT_GE(written, 5U);
  ASSERT_NE(log.add(Place::kFetch, now, 200'000), nullptr);   // another place
  ASSERT_NE(log.add(Place::kTimers, now, 900'000), nullptr);  // an outlier
  while (log.next(e)) counted += e.place == Place::kTimers ? 1 + e.omitted : 0;
  EXPECT_EQ(counted, 60'001U);  // what is left out is counted
  EXPECT_EQ(log.add(Place::kTimers, now + 1, 900'000), nullptr);
  // After a rest it begins anew.
  ASSERT_NE(log.add(Place::kTimers, now + 200'000'000'000, 200'000), nullptr);
  EXPECT_EQ(log.add(Place::kTimers, now + 200'050'000'000, 200'000), nullptr);
  EXPECT_NE(log.add(Place::kTimers, now + 200'100'000'000, 200'000), nullptr);
}

TEST(SlowLogs, ForgetTheOldestThatNobodyRead) {
  SlowLog log;
  std::uint64_t took = 1;
  for (std::uint32_t i = 0; i < SlowLog::kEntries + 5; ++i) {
    ASSERT_NE(log.add(Place::kTimers, 1 + i * 200'000'000'000, took), nullptr);
  }
  EXPECT_EQ(log.lost(), 5U);
  SlowEntry e;
  std::uint32_t read = 0;
  while (log.next(e)) ++read;
  EXPECT_EQ(read, SlowLog::kEntries);
}

TEST(PeerClocks, KeepTheBestSampleUntilItIsOld) {
  channel::PeerClock c;
  // Ours shows 1000 more; 100 there, 300 back: wrong by 100 of at most 201.
  ASSERT_TRUE(c.sample(10'000, 9'100, 9'200, 10'500));
  EXPECT_EQ(c.offset_ns, 1'100);
  EXPECT_EQ(c.error_ns(10'500), 201U);
  ASSERT_TRUE(c.sample(20'000, 19'010, 19'020, 20'030));  // 10 and 10
  EXPECT_EQ(c.offset_ns, 1'000);
  ASSERT_TRUE(c.sample(30'000, 29'500, 29'500, 32'000));  // a bad one changes nothing
  EXPECT_EQ(c.offset_ns, 1'000);
  // A minute later the good one is old: 50 us a second.
  EXPECT_EQ(c.error_ns(60'000'020'030), 11U + 3'000'000U);
  ASSERT_TRUE(c.sample(60'000'030'000, 60'000'029'100, 60'000'029'200, 60'000'030'500));
  EXPECT_EQ(c.offset_ns, 1'100);
  // These cannot be.
  EXPECT_FALSE(c.sample(100, 50, 40, 200));
  EXPECT_FALSE(c.sample(100, 50, 400, 200));
  EXPECT_FALSE(c.sample(200, 50, 60, 100));
  EXPECT_EQ(c.samples, 4U);
}

// Clocks that began anywhere, and go back while a message is on its way.
TEST(PeerClocks, SurviveClocksThatGoBack) {
  Skewed p(small_config(), seconds(3600));
  p.trace();
  (void)p.send_one();
  p.b().context->rebase(seconds(1800));
  p.b().skew = seconds(1800);
  const Trace t = p.send_one();
  ASSERT_TRUE(p.traced);
  EXPECT_NEAR(static_cast<double>(t.offset_ns), 3600e9, static_cast<double>(t.error_ns));
}

}  // namespace
}  // namespace weft::channel_test
