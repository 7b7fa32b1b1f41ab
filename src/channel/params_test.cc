#include "channel/params.h"

#include <gtest/gtest.h>

namespace weft::channel {
namespace {

TEST(ChannelParams, EachIsReadBackAsItWasSet) {
  for (const Param& p : params()) {
    Config c;
    c.pages.map = [](std::uint64_t, MemoryMode) -> void* { return nullptr; };
    const std::uint64_t before = p.get(c);
    const std::uint64_t wanted = before == 0 ? 1 : before;
    EXPECT_TRUE(set_param(c, std::string(p.name) + "=" + std::to_string(wanted))) << p.name;
    EXPECT_EQ(p.get(c), wanted) << p.name;
  }
}

TEST(ChannelParams, WhatIsWrongIsSaidInASentence) {
  Config c;
  EXPECT_EQ(set_param(c, "dept=1").error().message, "there is no parameter 'dept'; the nearest is 'depth'");
  EXPECT_EQ(set_param(c, "depth=x").error().message, "depth = 'x': it must be a whole number");
  EXPECT_EQ(set_param(c, "depth").error().message, "depth = '': it must be a whole number");
  EXPECT_EQ(set_param(c, "depth=2000").error().message, "depth = 2000: it must lie between 1 and 1024");
  EXPECT_EQ(set_param(c, "nop_us=0").error().message, "nop_us = 0 us: it must be more than zero");
  EXPECT_FALSE(set_param(c, "keepalive_intv_ms=99999999999"));
  EXPECT_EQ(c.depth, 32U);
}

TEST(ChannelParams, AnOfflineOneIsRefusedInUse) {
  Config c;
  EXPECT_EQ(set_online(c, "depth", 8).error().message,
            "depth is fixed when a context is made; it cannot change while the context is in use");
  EXPECT_TRUE(set_online(c, "keepalive_intv_ms", 8));
  EXPECT_EQ(c.keepalive, milliseconds(8));
}

}  // namespace
}  // namespace weft::channel
