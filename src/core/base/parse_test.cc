// Quantities as people write them: exact values, one spelling per unit, sentences for mistakes.
#include "core/base/parse.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Parse, APercentageBecomesExactMillionths) {
  EXPECT_EQ(parse_probability("loss", "1%"), 10'000U);
  EXPECT_EQ(parse_probability("loss", "0.1%"), 1'000U);
  EXPECT_EQ(parse_probability("loss", "0.0001%"), 1U);
  EXPECT_EQ(parse_probability("loss", "100%"), 1'000'000U);
  EXPECT_EQ(parse_probability("loss", "0.01"), 10'000U);
  EXPECT_EQ(parse_probability("loss", "0"), 0U);
}

TEST(Parse, AProbabilityThatWouldRoundToSomethingElseIsRefused) {
  EXPECT_FALSE(parse_probability("loss", "0.00001%"));
  EXPECT_FALSE(parse_probability("loss", "101%"));
  EXPECT_FALSE(parse_probability("loss", "1.5"));
}

TEST(Parse, DurationsNeedAUnitAndKeepFractions) {
  EXPECT_EQ(parse_duration("delay", "50us"), microseconds(50));
  EXPECT_EQ(parse_duration("delay", "1.5ms"), microseconds(1500));
  EXPECT_EQ(parse_duration("delay", "20ps"), picoseconds(20));
  EXPECT_EQ(parse_duration("delay", "0"), Duration{});
  EXPECT_EQ(parse_duration("delay", "0.001ns"), picoseconds(1));
  EXPECT_FALSE(parse_duration("delay", "50"));
  EXPECT_FALSE(parse_duration("delay", "0.1ps"));
  EXPECT_FALSE(parse_duration("delay", "86401s"));
}

TEST(Parse, RatesAndSizesKnowTheirUsualUnits) {
  EXPECT_EQ(parse_rate("rate", "100Gbps"), gigabits(100));
  EXPECT_EQ(parse_rate("rate", "2.5Gbps"), megabits(2500));
  EXPECT_EQ(parse_rate("rate", "0"), Rate{});
  EXPECT_FALSE(parse_rate("rate", "100"));
  EXPECT_FALSE(parse_rate("rate", "100mbps"));
  EXPECT_EQ(parse_size("size", "64KiB"), Bytes{65536});
  EXPECT_EQ(parse_size("size", "1500"), Bytes{1500});
  EXPECT_EQ(parse_size("size", "1.5kB"), Bytes{1500});
  EXPECT_FALSE(parse_size("size", "0.3B"));
}

TEST(Parse, DistancesNeedAUnitAndTakeLightFiveMicrosecondsAKilometre) {
  EXPECT_EQ(parse_distance("distance", "1000km"), kilometres(1000));
  EXPECT_EQ(parse_distance("distance", "1.5km"), Distance{1500});
  EXPECT_EQ(parse_distance("distance", "250m"), Distance{250});
  EXPECT_EQ(parse_distance("distance", "0"), Distance{});
  EXPECT_FALSE(parse_distance("distance", "1000"));
  EXPECT_FALSE(parse_distance("distance", "0.5m"));
  EXPECT_FALSE(parse_distance("distance", "100001km"));
  EXPECT_EQ(propagation(kilometres(1000)), milliseconds(5));
}

TEST(Parse, WhatIsNotANumberIsRefused) {
  for (const char* text : {"", "%", "us", "-1us", "+1us", ".5us", "1.us", "1 us", "1us ", "0x10us", "1e3us",
                           "nan", "99999999999999999999999s"}) {
    EXPECT_FALSE(parse_duration("delay", text)) << text;
  }
}

TEST(Parse, IntegersKeepToTheCallersRange) {
  EXPECT_EQ(parse_integer("seeds", "200", 1, 1000), 200U);
  EXPECT_EQ(parse_integer("seeds", "0", 0, 10), 0U);
  EXPECT_FALSE(parse_integer("seeds", "0", 1, 10));
  EXPECT_FALSE(parse_integer("seeds", "11", 1, 10));
  EXPECT_FALSE(parse_integer("seeds", "1.0", 1, 10));
  EXPECT_FALSE(parse_integer("seeds", "ten", 1, 10));
}

TEST(Parse, AMistakeNamesTheFieldTheValueAndWhatIsAllowed) {
  const std::string m = parse_probability("--loss", "1x").error().message;
  EXPECT_NE(m.find("--loss"), std::string::npos);
  EXPECT_NE(m.find("'1x'"), std::string::npos);
  EXPECT_NE(m.find("0% to 100%"), std::string::npos);
  const std::string n = parse_integer("--jobs", "0", 1, 64).error().message;
  EXPECT_NE(n.find("from 1 to 64"), std::string::npos);
}

}  // namespace
}  // namespace weft
