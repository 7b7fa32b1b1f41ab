#include "sim/world/plain_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/world/scenario.h"

namespace weft::sim {
namespace {

TEST(PlainText, BeyondAsciiAreOnlyStringsAndComments) {
  EXPECT_EQ(line_beyond_ascii("# \xC2\xA7 4.1\nname = \"\xC3\xA4\" # \xC2\xA7\n"), 0U);
  EXPECT_EQ(line_beyond_ascii("a = '\xC3\xA4'\nb = '''\n\xC3\xA4\n'''\nc = \"\"\"\n\xC3\xA4 \\\"\"\"\n"), 0U);
  EXPECT_EQ(line_beyond_ascii("a = 1\n\xC3\xA4 = 2\n"), 2U);
  EXPECT_EQ(line_beyond_ascii("a = \"b\" \xE2\x80\x83\n"), 1U);
  EXPECT_EQ(line_beyond_ascii("a = \"unfinished\nb = \xC3\xA4\n"), 2U);
  EXPECT_EQ(line_beyond_ascii("a = \"\\\\\" \xC3\xA4"), 1U) << "a backslash that is escaped escapes nothing";
  EXPECT_EQ(line_beyond_ascii("a = 12E\"\xC6\xBB\"\n"), 1U) << "a quote inside a number begins no string";
  EXPECT_EQ(line_beyond_ascii(
                "a = [\"\xC3\xA4\", '\xC3\xA4'] # \xC3\xA4\n\"\xC3\xA4\".'\xC3\xA4' = {b=\"\xC3\xA4\"}"),
            0U);
}

// The TOML parser's behaviour is undefined for U+E000 and its neighbours.
TEST(PlainText, AScenarioSaysSoInASentence) {
  const auto s = parse_scenario("hosts = 2\n\xEE\x80\x80\n", "here", {});
  ASSERT_FALSE(s);
  EXPECT_THAT(s.error().message, ::testing::StartsWith("here, line 2: "));
}

}  // namespace
}  // namespace weft::sim
