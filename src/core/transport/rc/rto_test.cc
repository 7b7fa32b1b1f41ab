// Retransmission time-outs: the static two of IRN §3.1, the dynamic one of IRN §4.3, and Karn's rule. A
// time-out is observed as a user would: how long after a packet was lost does it go out again?
#include <gtest/gtest.h>

#include "core/transport/two_devices.h"

namespace weft {
namespace {

DeviceConfig config_of(Rto rto) {
  DeviceConfig c;
  c.rto = rto;
  c.rto_low = microseconds(10);
  c.rto_high = microseconds(320);
  return c;
}

class RtoTest : public ::testing::TestWithParam<wire::Mode> {
 protected:
  struct World : TwoDevices {
    using Frames = std::vector<Side::Frame>;

    Frames control(Side& s) {
      Frames out;
      for (;;) {
        const wire::Burst burst = s.device.poll_control(now);
        if (burst.empty()) return out;
        s.collect(burst, out);
      }
    }
    void answer(const Frames& requests, Duration rtt) {
      for (const Side::Frame& f : requests) deliver(b, f);
      const Frames acks = control(b);
      now = now.after(rtt);
      for (const Side::Frame& f : acks) deliver(a, f);
    }
    // A WRITE of `packets`, acknowledged after `rtt`.
    void exchange(Duration rtt, std::uint32_t packets = 1) {
      post(request(WrOpcode::kWrite, 0, 256 * packets, 0));
      answer(intercept(a), rtt);
    }
    // Nothing of what is out is answered: how long until `from` sends again, and what.
    Duration silence(Side& from, Frames& again) {
      const Time since = now;
      while (again.empty()) {
        CHECK(from.device.next_deadline() != kNever);
        now = std::max(now, from.device.next_deadline());
        from.device.on_timer(now);
        again = intercept(from);
      }
      return now - since;
    }
    // A WRITE is lost, sent again, and acknowledged late.
    Duration time_out(std::uint32_t packets = 1) {
      post(request(WrOpcode::kWrite, 0, 256 * packets, 0));
      intercept(a);
      Frames again;
      const Duration waited = silence(a, again);
      for (int i = 0; i < 10 && !again.empty(); ++i) {
        answer(again, microseconds(700));
        again = intercept(a);
      }
      return waited;
    }
    using TwoDevices::TwoDevices;
  };
};

TEST_P(RtoTest, StaticDependsOnWhatIsInFlightAlone) {
  World w(GetParam(), config_of(Rto::kStatic));
  for (int i = 0; i < 20; ++i) w.exchange(microseconds(50));
  EXPECT_EQ(w.time_out(3), microseconds(10));
  EXPECT_EQ(w.time_out(4), microseconds(320));
}

TEST_P(RtoTest, DynamicBeginsHighAndComesToTheRoundTrip) {
  World w(GetParam(), config_of(Rto::kDynamic));
  EXPECT_EQ(w.time_out(), microseconds(320));
  for (int i = 0; i < 100; ++i) w.exchange(microseconds(50));
  for (const std::uint32_t packets : {1U, 3U, 4U}) {
    const Duration waited = w.time_out(packets);
    EXPECT_GE(waited, microseconds(49));
    EXPECT_LE(waited, microseconds(51));
  }
}

TEST_P(RtoTest, DynamicHasAFloor) {
  World w(GetParam(), config_of(Rto::kDynamic));
  for (int i = 0; i < 100; ++i) w.exchange(microseconds(2));
  EXPECT_EQ(w.time_out(), microseconds(10));
}

TEST_P(RtoTest, DynamicDoublesWhileNothingIsAnswered) {
  World w(GetParam(), config_of(Rto::kDynamic));
  for (int i = 0; i < 100; ++i) w.exchange(microseconds(50));
  w.post(w.request(WrOpcode::kWrite, 0, 256, 0));
  w.intercept(w.a);
  Duration last{};
  for (int i = 0; i < 5; ++i) {
    World::Frames again;
    const Duration waited = w.silence(w.a, again);
    EXPECT_TRUE(i == 0 || waited == last * 2);
    last = waited;
  }
}

TEST_P(RtoTest, FlooredIsNoLessThanAnyOfThem) {
  DeviceConfig c = config_of(Rto::kFloored);
  World low(GetParam(), c);
  for (int i = 0; i < 100; ++i) low.exchange(microseconds(50));
  EXPECT_GE(low.time_out(1), microseconds(49));
  World high(GetParam(), c);
  for (int i = 0; i < 100; ++i) high.exchange(microseconds(50));
  EXPECT_EQ(high.time_out(4), microseconds(320));
  c.rto_floor = milliseconds(1);
  c.rto_initial = {};
  World floor(GetParam(), c);
  EXPECT_EQ(floor.time_out(1), milliseconds(1));
}

// Karn: the ACKs of what time_out() sends twice come after 700 us, and are not believed.
TEST_P(RtoTest, WhatATimeOutSendsAgainIsNotTimed) {
  World w(GetParam(), config_of(Rto::kDynamic));
  for (int i = 0; i < 100; ++i) w.exchange(microseconds(50));
  for (int i = 0; i < 20; ++i) w.time_out();
  EXPECT_LE(w.time_out(), microseconds(51));
}

// The same of what a NACK asks for: the first packet is lost, and being timed.
TEST_P(RtoTest, WhatANackSendsAgainIsNotTimed) {
  World w(GetParam(), config_of(Rto::kDynamic));
  for (int i = 0; i < 100; ++i) w.exchange(microseconds(50));
  for (int i = 0; i < 20; ++i) {
    w.post(w.request(WrOpcode::kWrite, 0, 256 * 2, 0));
    World::Frames frames = w.intercept(w.a);
    ASSERT_EQ(frames.size(), 2U);
    frames.erase(frames.begin());
    w.answer(frames, microseconds(20));
    frames = w.intercept(w.a);
    ASSERT_EQ(frames.size(), 1U);
    w.answer(frames, microseconds(700));
  }
  EXPECT_EQ(w.a.completions().size(), 64U);
  EXPECT_LE(w.time_out(), microseconds(51));
}

// A responder times its READ responses, and what it sent twice not at all.
TEST_P(RtoTest, AResponderMeasuresToo) {
  World w(GetParam(), config_of(Rto::kDynamic));
  const auto read = [&](Duration rtt, bool lost) {
    w.post(w.request(WrOpcode::kRead, 0, 256, 0));
    w.answer(w.intercept(w.a), Duration{});
    World::Frames responses = w.intercept(w.b);
    EXPECT_EQ(responses.size(), 1U);
    Duration waited{};
    if (lost) {
      responses.clear();
      waited = w.silence(w.b, responses);
    }
    for (const Side::Frame& f : responses) w.deliver(w.a, f);
    const World::Frames acks = w.control(w.a);
    w.now = w.now.after(rtt);
    for (const Side::Frame& f : acks) w.deliver(w.b, f);
    return waited;
  };
  EXPECT_EQ(read(microseconds(700), true), microseconds(320));
  for (int i = 0; i < 100; ++i) read(microseconds(50), false);
  for (int i = 0; i < 20; ++i) read(microseconds(700), true);
  EXPECT_LE(read(microseconds(50), true), microseconds(51));
}

INSTANTIATE_TEST_SUITE_P(Modes, RtoTest, ::testing::Values(wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
