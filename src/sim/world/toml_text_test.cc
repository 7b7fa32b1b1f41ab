#include "sim/world/toml_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/world/scenario.h"

namespace weft::sim {
namespace {

std::string refusal(const std::string& text) {
  const auto read = read_toml(text, "here");
  return read ? "none" : read.error().message;
}

constexpr char kBeyond[] = "characters beyond ASCII belong in strings and comments";

TEST(TomlText, BeyondAsciiAreStringsAndComments) {
  const auto read = read_toml(
      "# \xC2\xA7 4.1\nname = \"\xC3\xA4\" # \xC2\xA7\nb = '''\n\xC3\xA4\n'''\nc = \"\"\"\n\xC3\xA4 "
      "\\\"\"\"\"\nd = [\"\xC3\xA4\", '\xC3\xA4'] # \xC3\xA4\n\"\xC3\xA4\".'\xC3\xA4' = {b=\"\xC3\xA4\"}\n",
      "here");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)["name"].value<std::string>(), "\xC3\xA4");
  EXPECT_EQ((*read)["\xC3\xA4"]["\xC3\xA4"]["b"].value<std::string>(), "\xC3\xA4");
}

TEST(TomlText, BeyondAsciiIsNothingElse) {
  EXPECT_EQ(refusal("a = 1\n\xC3\xA4 = 2\n"), std::string("here, line 2: ") + kBeyond);
  EXPECT_EQ(refusal("a = \"\\\\\" \xC3\xA4"), std::string("here, line 1: ") + kBeyond);
  EXPECT_EQ(refusal("a = \xC3\xA4"), std::string("here, line 1: ") + kBeyond);
}

// Each of these made the parser's behaviour undefined, or is near one that did.
TEST(TomlText, AMistakeBeforeIsOneSentence) {
  for (const std::string text : {
           "a = \"b\" \xE2\x80\x83\n",
           "a = \"unfinished\nb = \xC3\xA4\n",
           "a = 12E\"\xC6\xBB\"\n",
           "a = ===\"\x1B=::[:::q::\xCA\xA1\xC2\x99p`OO@s*\n\"\n",
           "Sseed = 12Es===\"\x1B=:::[::quoogy::\xCA\xA1\x99p\nogy::\"@s*end\"::\n",
           "a = \"\"\"\\\xC7\xBB\n\"\"\"\n",
           "\xEE\x80\x80\n",
           "[\xC4\x80]\n",
           "a = \"\x99\"\n",
       })
    EXPECT_THAT(refusal(text), ::testing::StartsWith("here, line ")) << text;
}

TEST(TomlText, AScenarioSaysSoInASentence) {
  const auto s = parse_scenario("hosts = 2\n\xEE\x80\x80\n", "here", {});
  ASSERT_FALSE(s);
  EXPECT_THAT(s.error().message, ::testing::StartsWith("here, line 2: "));
}

}  // namespace
}  // namespace weft::sim
