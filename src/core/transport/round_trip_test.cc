// The estimate of RFC 6298: what one sample makes of it, that it comes to rest, and that variation widens it.
#include "core/transport/round_trip.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace weft
