// What a Device cannot be asked to be.
#include "core/transport/config.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

// srnic's receive numbers have 16 bits, good for fewer than 2^15 SENDs ahead
// (docs/protocol/srnic.md#layouts).
TEST(Config, AWindowIsNoWiderThanReceiveNumbersTell) {
  DeviceConfig c;
  c.window_packets = c.bdp_cap = 1U << 15U;
  EXPECT_TRUE(c.validate());
  c.window_packets = c.bdp_cap = 1U << 16U;
  EXPECT_FALSE(c.validate());
}

}  // namespace
}  // namespace weft
