#include "adm/settings.h"

#include <gtest/gtest.h>

namespace weft::adm {
namespace {

TEST(Settings, AreReadBackAsTheyWereWritten) {
  Settings s;
  s.version = 7;
  EXPECT_TRUE(s.set({"", "slow_threshold", 1000}));
  EXPECT_TRUE(s.set({"chunk_server", "filter_drop_ppm", UINT64_MAX}));
  EXPECT_TRUE(s.set({"", "keepalive_intv_ms", 0}));
  EXPECT_EQ(text_of(s),
            "weft parameters 1\nversion 7\nkeepalive_intv_ms=0\nslow_threshold=1000\n"
            "chunk_server/filter_drop_ppm=18446744073709551615\n");
  const auto back = read_settings(text_of(s));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->all(), s.all());
  EXPECT_EQ(back->version, 7U);
}

TEST(Settings, OfAProgramGoBeforeThoseOfAll) {
  Settings s;
  s.set({"b", "slow_threshold", 2});
  s.set({"", "slow_threshold", 1});
  EXPECT_EQ(s.wanted("a", "slow_threshold"), 1U);
  EXPECT_EQ(s.wanted("b", "slow_threshold"), 2U);
  EXPECT_EQ(s.wanted("b", "nop_us"), std::nullopt);
  EXPECT_TRUE(s.unset("", "slow_threshold"));
  EXPECT_FALSE(s.unset("", "slow_threshold"));
  EXPECT_EQ(s.wanted("a", "slow_threshold"), std::nullopt);
  EXPECT_EQ(s.wanted("b", "slow_threshold"), 2U);
}

TEST(Settings, AreReadWholeOrNotAtAll) {
  const std::string begin = "weft parameters 1\nversion 1\n";
  EXPECT_TRUE(read_settings(begin));
  for (const std::string& text :
       {std::string(), std::string("weft parameters 2\nversion 1\n"),
        std::string("weft parameters 1\nversion x\n"), begin + "nop_us",
        begin + "nop_us=", begin + "nop_us=-1\n", begin + "nop_us=1 \n", begin + "/nop_us=1\n",
        begin + "a/b/nop_us=1\n", begin + "=1\n", begin + "nop_us=18446744073709551616\n", begin + "\n",
        begin + "a_name_of_17_chars/nop_us=1\n", begin + std::string(kMostText, 'a')})
    EXPECT_FALSE(read_settings(text)) << text.substr(0, 80);
  std::string many = begin;
  for (std::size_t i = 0; i <= kMostSettings; ++i) many.append("p").append(std::to_string(i)).append("=1\n");
  EXPECT_FALSE(read_settings(many));
}

// A program of another version may have parameters that this library does not know.
TEST(Settings, MayNameWhatThisLibraryDoesNotKnow) {
  EXPECT_TRUE(read_settings("weft parameters 1\nversion 1\nnot_yet=1\n"));
}

TEST(Settings, AreRefusedWithASentence) {
  EXPECT_EQ(read_setting("slow_treshold=1").error().message,
            "there is no parameter 'slow_treshold'; the nearest is 'slow_threshold'");
  EXPECT_EQ(read_setting("depth=8").error().message,
            "depth is fixed when a context is made; it cannot change while the context is in use");
  EXPECT_EQ(read_setting("nop_us=0").error().message, "nop_us = 0 us: it must be more than zero");
  EXPECT_FALSE(read_setting("nop_us"));
  EXPECT_FALSE(read_setting("a_name_of_17_chars/nop_us=1"));
  const auto sound = read_setting("a/trace_sample_mask=0xff");
  ASSERT_TRUE(sound);
  EXPECT_EQ(*sound, (Setting{"a", "trace_sample_mask", 255}));
}

}  // namespace
}  // namespace weft::adm
