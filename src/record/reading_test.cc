#include "record/reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::record {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRun =
    R"({"traffic": [{"fct_us_mean": 4.5, "flows": 10}, {"fct_us_mean": 8}], "totals": {"drops": 3, "sent": 0},
        "name": "x", "complete": true})";

Reading reading() { return std::move(*Reading::parse(kRun)); }

double value(const char* expression) {
  const auto v = reading().evaluate(expression);
  EXPECT_TRUE(v) << expression << ": " << (v ? "" : v.error().message);
  return v.value_or(-1);
}

std::string mistake(const char* expression) {
  const auto v = reading().evaluate(expression);
  return v ? "none" : v.error().message;
}

TEST(Reading, NumbersHaveTheirPlaces) {
  EXPECT_EQ(value("traffic.0.fct_us_mean"), 4.5);
  EXPECT_EQ(value("traffic.1.fct_us_mean"), 8);
  EXPECT_EQ(value("complete"), 1);
}

TEST(Reading, Computes) {
  EXPECT_EQ(value("100 * totals.drops / traffic.0.flows"), 30);
  EXPECT_EQ(value("1 - 2 - 3"), -4);
  EXPECT_EQ(value("8 / 2 / 2"), 2);
  EXPECT_EQ(value("2 + 3 * (4 - 1)"), 11);
  EXPECT_EQ(value("-totals.drops + 0.5"), -2.5);
}

// A counter that stayed zero is not in the record. An expression that names it without `?` is an error.
TEST(Reading, WhatIsAbsentIsZeroOnlyIfAsked) {
  EXPECT_EQ(value("totals.timeouts? + 1"), 1);
  EXPECT_EQ(value("totals.drops?"), 3);
  EXPECT_THAT(mistake("totals.timeouts"), HasSubstr("no 'timeouts' in 'totals'; there is drops, sent"));
}

TEST(Reading, MistakesSayWhatThereIs) {
  EXPECT_THAT(mistake("trafic.0"), HasSubstr("no 'trafic' in the record; there is traffic, totals"));
  EXPECT_THAT(mistake("traffic.2.flows"), HasSubstr("no '2' in 'traffic'; there is 0 to 1"));
  EXPECT_THAT(mistake("totals.drops.x"), HasSubstr("no 'x' in 'totals.drops'; there is nothing below it"));
  EXPECT_THAT(mistake("totals"), HasSubstr("is no number; below it there is drops, sent"));
  EXPECT_THAT(mistake("name"), HasSubstr("is no number"));
  EXPECT_THAT(mistake("totals.drops / totals.sent"), HasSubstr("divides by zero"));
  EXPECT_THAT(mistake("1e308 * 10"), HasSubstr("not finite"));
}

TEST(Reading, WhatIsNoExpressionIsFoundWithoutARecord) {
  for (const char* bad : {"", "1 +", "(1", "1 2", "a.b c", "$", "* 3"})
    EXPECT_FALSE(check_expression(bad)) << bad;
  EXPECT_FALSE(check_expression(std::string(1000, '(')));
  for (const char* good : {"a", "a.0.b? / (b - c)", "-a", "a / 0.5"})
    EXPECT_TRUE(check_expression(good)) << good;
}

TEST(Reading, WhatIsNotJsonIsRefused) { EXPECT_FALSE(Reading::parse("{")); }

}  // namespace
}  // namespace weft::record
