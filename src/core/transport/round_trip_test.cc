// The estimate of RFC 6298: what one sample makes of it, that it comes to rest, and that variation widens it.
#include "core/transport/round_trip.h"

#include <gtest/gtest.h>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

TEST(RoundTrip, BelievesItsFirstSampleOnlyByHalf) {
  RoundTrip r;
  EXPECT_FALSE(r.measured());
  r.sample(microseconds(40));
  EXPECT_TRUE(r.measured());
  EXPECT_EQ(r.timeout(), microseconds(120));  // R + 4 x R/2
}

TEST(RoundTrip, ConvergesOnASteadyRoundTripFromEitherSide) {
  for (const std::int64_t first : {1, 4000}) {
    RoundTrip r;
    r.sample(microseconds(first));
    for (int i = 0; i < 100; ++i) r.sample(microseconds(40));
    EXPECT_GE(r.timeout(), microseconds(39));
    EXPECT_LE(r.timeout(), microseconds(41));
  }
}

// The gains: an eighth of the way, and a quarter.
TEST(RoundTrip, MovesByAnEighthAndAQuarter) {
  RoundTrip r{microseconds(80).ps, microseconds(8).ps};
  r.sample(microseconds(160));
  EXPECT_EQ(r.smoothed_ps, microseconds(90).ps);
  EXPECT_EQ(r.variation_ps, microseconds(26).ps);
}

// Round trips that jump by 20 us about 100 us: the time-out stays above every one of them.
TEST(RoundTrip, VariationKeepsTheTimeOutAboveEverySample) {
  RoundTrip r;
  for (int i = 0; i < 100; ++i) r.sample(microseconds(i % 2 == 0 ? 80 : 120));
  EXPECT_GT(r.timeout(), microseconds(150));
  EXPECT_LT(r.timeout(), microseconds(200));
}

TEST(RoundTrip, OfNoTimeAtAllIsMeasured) {
  RoundTrip r;
  r.sample(Duration{});
  EXPECT_TRUE(r.measured());
}

// A silence raises time-outs until something is timed. That sample counts as a first one: what was known
// before is older than the silence.
TEST(RoundTrip, IsHeldUntilTheNextSample) {
  RoundTrip r;
  for (int i = 0; i < 100; ++i) r.sample(microseconds(40));
  r.hold(milliseconds(5));
  r.hold(milliseconds(4));
  EXPECT_TRUE(r.held());
  EXPECT_TRUE(r.measured());
  EXPECT_EQ(r.least(), milliseconds(5));
  r.sample(microseconds(50));
  EXPECT_FALSE(r.held());
  EXPECT_EQ(r.least(), Duration{});
  EXPECT_EQ(r.timeout(), microseconds(150));
}

// A controller that lives on round trips must not be blind while packets are missing. The NACK of a packet
// that came ahead tells its time as well as an ACK would; what was sent twice still tells nothing.
TEST(RoundTripOf, APacketAheadOfAHoleIsMeasured) {
  for (const wire::Mode mode : {wire::Mode::kIrn, wire::Mode::kSrnic}) {
    Hand w(mode);
    const auto measured = [&] {
      return w.a.device.engine().cold(*w.a.device.engine().find(w.qa)).round_trip;
    };
    w.post(w.request(WrOpcode::kWrite, 0, 256 * 8, 0));
    Frames sent = w.from(w.a);
    ASSERT_EQ(sent.size(), 8U);
    sent.erase(sent.begin());  // the one that is timed
    w.now = w.now.after(microseconds(5));
    w.to(w.b, sent);
    w.to(w.a, w.from(w.b));
    w.post(w.request(WrOpcode::kWrite, 0, 256, 0));
    sent = w.from(w.a);
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_TRUE(sent[0].packet.header.psn != sent[1].packet.header.psn);
    EXPECT_FALSE(measured().measured());
    w.now = w.now.after(microseconds(7));
    w.to(w.b, {sent[1]});  // the repair is late
    w.to(w.a, w.from(w.b));
    EXPECT_EQ(measured().smoothed_ps, microseconds(7).ps);
    w.now = w.now.after(microseconds(20));
    w.to(w.b, {sent[0]});
    w.to(w.a, w.from(w.b));
    EXPECT_EQ(statuses(w.a).size(), 2U);
    EXPECT_EQ(measured().smoothed_ps, microseconds(7).ps);
  }
}

// The same of READ responses.
TEST(RoundTripOf, AResponseAheadOfAHoleIsMeasured) {
  for (const wire::Mode mode : {wire::Mode::kIrn, wire::Mode::kSrnic}) {
    Hand w(mode);
    const auto measured = [&] {
      return w.b.device.engine().cold(*w.b.device.engine().find(w.qb)).round_trip;
    };
    w.post(w.request(WrOpcode::kRead, 0, 256 * 4, 0));
    w.to(w.b, w.from(w.a));
    Frames sent = w.from(w.b);
    w.to(w.a, only(sent, wire::kReadResponseLast));
    w.to(w.b, w.from(w.a));
    w.post(w.request(WrOpcode::kRead, 0, 256, 0));
    w.to(w.b, w.from(w.a));
    sent = only(w.from(w.b), wire::kReadResponseOnly);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_FALSE(measured().measured());
    w.now = w.now.after(microseconds(9));
    w.to(w.a, sent);
    w.to(w.b, w.from(w.a));
    EXPECT_EQ(measured().smoothed_ps, microseconds(9).ps);
  }
}

}  // namespace
}  // namespace weft
