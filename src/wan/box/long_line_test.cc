#include "wan/box/long_line.h"

#include <gtest/gtest.h>

#include "wan/box/fake_port.h"

namespace weft::wan {
namespace {

struct Line {
  explicit Line(const LongLineConfig& c) : line(c, a, b) {}
  // Frames of 100 bytes, numbered.
  void send(std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) {
      FakePort::Bytes f(100);
      f[0] = static_cast<std::uint8_t>(number);
      f[1] = static_cast<std::uint8_t>(number++ >> 8U);
      a.comes(f);
    }
  }
  void run(Time until) {
    for (;;) {
      while (line.turn(now)) {
      }
      const Time next = line.next_due(now);
      if (next > until) break;
      now = next;
    }
    now = until;
  }
  FakePort a{"a"};
  FakePort b{"b"};
  LongLine line;
  Time now{};
  std::uint32_t number = 0;
};

LongLineConfig config() {
  LongLineConfig c;
  c.delay = milliseconds(5);
  c.rate = megabits(992);  // 100 bytes and what is around them: 1 us
  return c;
}

TEST(LongLine, CarriesFramesInOrderAtItsRateAfterItsDelay) {
  Line l(config());
  l.send(100);
  l.run(Time{} + milliseconds(5));
  EXPECT_EQ(l.b.left.size(), 0U);
  l.run(Time{} + milliseconds(5) + microseconds(50));
  EXPECT_EQ(l.b.left.size(), 50U);
  l.run(Time{} + milliseconds(6));
  ASSERT_EQ(l.b.left.size(), 100U);
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(l.b.left[i].first[0], i);
  EXPECT_EQ(l.line.next_due(l.now), kNever);
  EXPECT_EQ(l.line.counters(0).most_late.ps, 0);
}

TEST(LongLine, LosesTheSameFramesForTheSameSeed) {
  std::vector<std::vector<std::uint8_t>> seen[3];
  const std::uint64_t seeds[3] = {7, 7, 8};
  for (int i = 0; i < 3; ++i) {
    LongLineConfig c = config();
    c.loss = 100'000;
    c.seed = seeds[i];
    Line l(c);
    l.send(2000);
    l.run(Time{} + milliseconds(20));
    for (auto& f : l.b.left) seen[i].push_back(f.first);
    EXPECT_NEAR(static_cast<double>(seen[i].size()), 1800, 60);
    EXPECT_EQ(l.line.counters(0).lost, 2000 - seen[i].size());
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_NE(seen[0], seen[2]);
}

TEST(LongLine, LosesWhatItsQueueDoesNotHold) {
  LongLineConfig c = config();
  c.queue = Bytes{12'400};  // 100 frames
  Line l(c);
  l.send(60);
  l.run(Time{});
  l.send(60);
  l.run(Time{} + milliseconds(10));
  EXPECT_NEAR(static_cast<double>(l.line.counters(0).drop_queue), 20, 1);
  EXPECT_EQ(l.b.left.size() + l.line.counters(0).drop_queue, 120U);
  EXPECT_LE(l.line.counters(0).longest_queue.n, c.queue.n);
}

TEST(LongLine, ThatIsCutLosesWhatIsOnItAndWhatComes) {
  Line l(config());
  l.send(10);
  l.run(Time{} + milliseconds(1));
  l.line.cut(true);
  l.send(10);
  l.run(Time{} + milliseconds(20));
  EXPECT_EQ(l.b.left.size(), 0U);
  EXPECT_EQ(l.line.counters(0).drop_cut, 20U);
  l.line.cut(false);
  l.send(10);
  l.run(Time{} + milliseconds(30));
  EXPECT_EQ(l.b.left.size(), 10U);
}

// Frames of every length, for longer than the ring is.
TEST(LongLine, ForgetsNothingWhereItsRingWraps) {
  LongLineConfig c = config();
  c.delay = microseconds(100);
  c.queue = Bytes{100'000};
  Line l(c);
  std::uint32_t expected = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    FakePort::Bytes f(64 + i * 7 % 1400);
    f[0] = static_cast<std::uint8_t>(i);
    l.a.comes(f);
    l.run(l.now + microseconds(20));
    for (const auto& [frame, offload] : l.b.left) {
      EXPECT_EQ(frame.size(), 64 + expected * 7 % 1400);
      EXPECT_EQ(frame[0], static_cast<std::uint8_t>(expected++));
    }
    l.b.left.clear();
  }
  EXPECT_GT(expected, 19'900U);
  EXPECT_EQ(l.line.counters(0).drop_queue, 0U);
}

}  // namespace
}  // namespace weft::wan
