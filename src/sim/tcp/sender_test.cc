// A sender and a receiver on a line of fixed delay, against what RFC 5681, 6298, 6582 and 6675 say in
// numbers.
#include "sim/tcp/sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "sim/tcp/receiver.h"

namespace weft::sim::tcp {
namespace {

using ::testing::ElementsAre;

constexpr std::uint32_t kMss = 1000;
constexpr Duration kDelay = microseconds(50);  // one way
constexpr Duration kRtt = microseconds(100);
constexpr Duration kGap = microseconds(1);  // between two segments

Config config(Flavour flavour = Flavour::kSack) {
  Config c;
  c.flavour = flavour;
  c.mss = kMss;
  c.rto_min = c.rto_initial = milliseconds(1);
  return c;
}

// Data leaves one segment after the other; ACKs take no room. `loses` decides by segment number and by how
// often that one was sent before.
class Line {
 public:
  explicit Line(const Config& c) : sender(c), receiver(c) {}

  void run(std::uint64_t segments, Duration limit = seconds(1000)) {
    sender.write(segments * kMss, now);
    while (!sender.done() && now < Time{} + limit) step();
  }
  void step() {
    sender.check_invariants();
    if (sender.ready() && free_at <= now) {
      const Piece p = sender.next(now);
      // Only the first of a recovery, the fast retransmit, leaves whatever the window.
      const bool fast = p.cause == Cause::kRecovery && sender.counters().recoveries != recoveries;
      EXPECT_TRUE(fast || sender.in_flight() <= sender.window()) << p.seq;
      recoveries = sender.counters().recoveries;
      const std::uint64_t n = p.seq / kMss;
      departures.push_back({now, n, p.cause});
      free_at = now + kGap;
      Segment s;
      s.seq = p.seq;
      s.length = p.length;
      if (!loses(n, times[n]++)) flying.emplace(now + kDelay, s);
      return;
    }
    Time next = std::min(sender.deadline(), receiver.deadline());
    if (sender.ready()) next = std::min(next, free_at);
    if (!flying.empty()) next = std::min(next, flying.begin()->first);
    ASSERT_NE(next, kNever) << "nothing will ever happen";
    now = next;
    if (!flying.empty() && flying.begin()->first <= now) {
      const Segment s = flying.begin()->second;
      flying.erase(flying.begin());
      if (s.acknowledgment) {
        sender.on_ack(s, now);
      } else {
        const Receiver::Delivered d = receiver.on_data(s, now);
        EXPECT_EQ(d.from, delivered);
        delivered = d.to;
      }
    }
    if (receiver.ack_due(now)) {
      Segment a;
      receiver.acknowledge(a);
      if (!loses_ack(++acks)) flying.emplace(now + kDelay, a);
    }
    if (sender.deadline() <= now) {
      timeouts.push_back(now);
      sender.on_timer(now);
    }
  }
  // Segments that left for the first time in [from, to).
  std::size_t left(Time from, Time to) const {
    std::size_t n = 0;
    for (const auto& d : departures) n += d.at >= from && d.at < to && d.cause == Cause::kNew ? 1U : 0U;
    return n;
  }

  struct Departure {
    Time at;
    std::uint64_t number;
    Cause cause;
  };
  std::function<bool(std::uint64_t, int)> loses = [](std::uint64_t, int) { return false; };
  std::function<bool(std::uint64_t)> loses_ack = [](std::uint64_t) { return false; };
  Sender sender;
  Receiver receiver;
  Time now{};
  Time free_at{};
  std::uint64_t delivered = 0;
  std::uint64_t acks = 0;
  std::uint64_t recoveries = 0;
  std::multimap<Time, Segment> flying;
  std::map<std::uint64_t, int> times;
  std::vector<Departure> departures;
  std::vector<Time> timeouts;
};

bool once(const std::set<std::uint64_t>& lost, std::uint64_t n, int before) {
  return before == 0 && lost.contains(n);
}

TEST(Sender, SlowStartDoublesEachRoundTrip) {
  Config c = config();
  c.initial_window = 1;
  Line line(c);
  line.run(127);
  for (std::int64_t round = 0; round < 6; ++round)
    EXPECT_EQ(line.left(Time{} + kRtt * round, Time{} + kRtt * (round + 1)), 1ULL << round) << round;
  EXPECT_EQ(line.sender.counters().segments, 127U);
  EXPECT_EQ(line.delivered, 127U * kMss);
}

// RFC 5681 §3.1: with one ACK for two segments, three for two instead of two for one.
TEST(Sender, DelayedAcksSlowTheStart) {
  Config c = config();
  c.initial_window = 2;
  c.delayed_ack = milliseconds(500);
  Line line(c);
  line.run(50, microseconds(450));
  EXPECT_EQ(line.left(Time{} + kRtt, Time{} + kRtt * 2), 3U);
  EXPECT_LE(line.left(Time{} + kRtt * 2, Time{} + kRtt * 3), 5U);
}

// Above ssthresh one segment more per round trip.
TEST(Sender, AvoidanceGrowsByASegmentPerRoundTrip) {
  Line line(config());
  line.loses = [](std::uint64_t n, int before) { return once({30}, n, before); };
  line.sender.write(2000 * kMss, line.now);
  while (line.sender.counters().recoveries == 0 || line.sender.state() != Sender::State::kOpen) line.step();
  const std::uint64_t window = line.sender.window();
  EXPECT_EQ(window, line.sender.threshold());
  const Time from = line.now;
  while (line.now < from + kRtt * 20) line.step();
  EXPECT_NEAR(static_cast<double>(line.sender.window() - window) / kMss, 20.0, 2.0);
}

// The first two duplicates let one new segment out each (limited transmit), the third the missing one; the
// window is half of what was under way; no time-out.
TEST(Sender, ThreeDuplicatesRetransmitAtOnce) {
  for (const Flavour f : {Flavour::kSack, Flavour::kNewReno, Flavour::kReno}) {
    Line line(config(f));
    line.loses = [](std::uint64_t n, int before) { return once({2}, n, before); };
    line.run(60);
    EXPECT_TRUE(line.timeouts.empty());
    EXPECT_EQ(line.sender.counters().recoveries, 1U);
    EXPECT_EQ(line.sender.counters().again_recovery, 1U);
    EXPECT_EQ(line.sender.counters().segments, 61U);
    // The window allows 16 new segments before the repair: 10 at the start, 4 for the ACKs of segments 0 and
    // 1, 2 by limited transmit. The line has let out one of the last 6 per microsecond since the first ACK: 5
    // so far.
    const auto again = std::find_if(line.departures.begin(), line.departures.end(),
                                    [](const auto& d) { return d.cause == Cause::kRecovery; });
    EXPECT_EQ(again - line.departures.begin(), 15);
    EXPECT_EQ(again->number, 2U);
    EXPECT_EQ(line.sender.threshold(), 13U * kMss / 2) << "13 were under way";
    // The third duplicate comes with the ACK of segment 5.
    EXPECT_EQ(again->at, Time{} + kGap * 5 + kRtt);
  }
}

TEST(Sender, TwoDuplicatesDoNot) {
  Line line(config());
  line.loses = [](std::uint64_t n, int before) { return once({7}, n, before); };
  line.sender.write(10 * kMss, line.now);  // two segments come behind the lost one
  while (!line.sender.done()) line.step();
  EXPECT_EQ(line.sender.counters().again_recovery, 0U);
  ASSERT_EQ(line.timeouts.size(), 1U);
  EXPECT_EQ(line.sender.counters().again_timeout, 1U) << "what SACK reported is not sent again";
}

// Half of the window is lost, every second segment: with SACK all are repaired one round trip later; NewReno
// repairs one for each round trip.
TEST(Sender, ManyLossesInAWindowAreRepairedInOneRoundTripWithSack) {
  std::map<Flavour, std::int64_t> repair_ps;
  for (const Flavour f : {Flavour::kSack, Flavour::kNewReno}) {
    Config c = config(f);
    c.initial_window = 40;
    c.rto_min = c.rto_initial = seconds(1);
    Line line(c);
    line.loses = [](std::uint64_t n, int before) { return before == 0 && n < 40 && n % 4 == 0; };
    line.run(40);
    EXPECT_TRUE(line.timeouts.empty());
    EXPECT_EQ(line.sender.counters().again_recovery, 10U);
    EXPECT_EQ(line.sender.counters().recoveries, 1U);
    const auto first = std::find_if(line.departures.begin(), line.departures.end(),
                                    [](const auto& d) { return d.cause != Cause::kNew; });
    repair_ps[f] = (line.now - first->at).ps;
  }
  EXPECT_LT(repair_ps[Flavour::kSack], (kRtt * 3 / 2).ps);
  EXPECT_GT(repair_ps[Flavour::kNewReno], (kRtt * 9).ps);
  EXPECT_LT(repair_ps[Flavour::kNewReno], (kRtt * 11).ps);
}

// RFC 5681's own recovery ends with the first new acknowledgment and forgets the second loss.
TEST(Sender, RenoNeedsATimeoutForTheSecondLoss) {
  for (const Flavour f : {Flavour::kNewReno, Flavour::kReno}) {
    Line line(config(f));
    line.loses = [](std::uint64_t n, int before) { return once({2, 4}, n, before); };
    line.run(16);
    EXPECT_EQ(line.timeouts.size(), f == Flavour::kReno ? 1U : 0U);
  }
}

// The last two are lost, and one before them: the hole starts recovery, the rescue shows that the end is
// missing, and what lies below it (rule 3) needs no recovery of its own.
TEST(Sender, TheRescueFindsALostTail) {
  Line line(config());
  line.loses = [](std::uint64_t n, int before) { return once({10, 18, 19}, n, before); };
  line.run(20);
  EXPECT_EQ(line.sender.counters().again_rescue, 1U);
  EXPECT_TRUE(line.timeouts.empty());
  EXPECT_EQ(line.sender.counters().recoveries, 1U);
}

// A segment that is lost again and again: the time between time-outs doubles, up to the most.
TEST(Sender, TimeoutsBackOff) {
  Config c = config();
  c.rto_max = milliseconds(10);
  Line line(c);
  line.loses = [](std::uint64_t n, int before) { return n == 0 && before < 7; };
  line.run(1);
  ASSERT_EQ(line.timeouts.size(), 7U);
  std::vector<std::int64_t> ms;
  Time before{};
  for (const Time t : line.timeouts) {
    ms.push_back((t - before).us() / 1000);
    before = t;
  }
  EXPECT_THAT(ms, ElementsAre(1, 2, 4, 8, 10, 10, 10));
  EXPECT_EQ(line.sender.window(), kMss * 1U + kMss) << "slow start from one segment";
  EXPECT_EQ(line.sender.rto().srtt().ps, 0) << "what was sent twice measures nothing (Karn)";
  EXPECT_EQ(line.sender.rto().value(), milliseconds(10)) << "and leaves the back-off";
  line.run(1);
  EXPECT_EQ(line.sender.rto().srtt(), kRtt);
  EXPECT_EQ(line.sender.rto().value(), milliseconds(1)) << "a measurement ends it";
}

// After a time-out the window is one segment, ssthresh half of what was under way, and everything missing
// goes out again in slow start; the halving is not repeated.
TEST(Sender, ATimeoutStartsSlowly) {
  Config c = config();
  c.initial_window = 16;
  Line line(c);
  line.loses = [](std::uint64_t n, int before) { return n < 16 && before < (n == 0 ? 2 : 1); };
  line.run(16);
  EXPECT_EQ(line.timeouts.size(), 2U);
  EXPECT_EQ(line.sender.threshold(), 8U * kMss);
  EXPECT_EQ(line.sender.counters().again_timeout, 17U);
  std::vector<std::size_t> rounds;
  for (std::int64_t i = 0; i < 4; ++i) {
    std::size_t n = 0;
    for (const auto& d : line.departures)
      n += d.at >= line.timeouts[1] + kRtt * i && d.at < line.timeouts[1] + kRtt * (i + 1) ? 1U : 0U;
    rounds.push_back(n);
  }
  EXPECT_THAT(rounds, ElementsAre(1, 2, 4, 8));
}

TEST(Sender, LostAcknowledgmentsCostNothingWhileLaterOnesCome) {
  Line line(config());
  line.loses_ack = [](std::uint64_t n) { return n % 3 != 0; };
  line.run(300);
  EXPECT_EQ(line.sender.counters().segments, 300U);
}

TEST(Sender, TheReceiverBoundsWhatIsUnderWay) {
  Config c = config();
  c.receive_window = {5 * kMss + 1};
  Line line(c);
  line.run(100);
  EXPECT_EQ(line.left(Time{}, Time{} + kRtt), 5U);
  EXPECT_EQ(line.left(Time{} + kRtt * 5, Time{} + kRtt * 6), 5U);
}

TEST(Sender, AfterASilenceItStartsFromTheInitialWindow) {
  Line line(config());
  line.run(400);
  EXPECT_GT(line.sender.window(), 20U * kMss);
  line.now = line.now + milliseconds(2);
  line.run(1);
  EXPECT_LE(line.sender.window(), 11U * kMss);
}

// A NIC that is the bottleneck: the window is never what limits, and stays at twice what the way holds.
TEST(Sender, AnUnusedWindowDoesNotGrow) {
  Line line(config());
  line.run(20'000);
  EXPECT_LE(line.sender.window(), 2U * 102 * kMss);
  EXPECT_NEAR(static_cast<double>(line.now.ps), 20e9 + 100e6, 0.03 * 20e9) << "one segment per microsecond";
}

// Every loss pattern of the first ten segments, first transmissions only, and of their first repairs: always
// everything, in order, and never a segment more than twice without a time-out.
TEST(Sender, EveryLossPatternOfTenIsRepaired) {
  for (const Flavour f : {Flavour::kSack, Flavour::kNewReno, Flavour::kReno}) {
    for (std::uint64_t pattern = 0; pattern < 1024; ++pattern) {
      Line line(config(f));
      line.loses = [&](std::uint64_t n, int before) {
        return n < 10 && (before == 0 || (before == 1 && n % 3 == 0)) && (pattern >> n & 1U) != 0;
      };
      line.run(14);
      ASSERT_TRUE(line.sender.done()) << pattern;
      ASSERT_EQ(line.delivered, 14U * kMss) << pattern;
      if (!line.timeouts.empty()) continue;
      for (const auto& [n, times] : line.times) ASSERT_LE(times, 3) << pattern << " segment " << n;
    }
  }
}

}  // namespace
}  // namespace weft::sim::tcp
