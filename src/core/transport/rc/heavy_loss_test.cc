// Paths that lose so much that most silences end with an answer which tells no time: what a program waits
// must follow from the path, and not from the verbs time-out that it chose. All of this is in virtual time.
#include <gtest/gtest.h>

#include "core/transport/long_path.h"

namespace weft {
namespace {

using wire::Mode;

constexpr std::uint8_t kCode = 20;  // 4.3 s

struct LossyPath : LongPath {
  // `per_mille` of the packets of each direction are lost.
  LossyPath(Mode m, std::uint64_t per_mille, std::uint64_t seed) : LongPath(m, config(), kCode) {
    loses = [per_mille, random = Prng(seed)](const wire::Header&) mutable {
      return random.below(1000) < per_mille;
    };
    delay = microseconds(20);
    spacing = microseconds(1);
  }
  static DeviceConfig config() {
    DeviceConfig c = live();
    c.window_packets = 1024;
    c.bdp_cap = 1024;
    return c;
  }
  // 200 messages of four packets, 50 of them at a time.
  Duration takes() {
    const Time since = now;
    for (int i = 0; i < 4; ++i) {
      writes(50, 4);
      EXPECT_EQ(complete(50, seconds(10)), 50U);
    }
    return now - since;
  }
};

// A retransmission that is lost again needs a time-out, and so does a lost end. Each of them costs
// milliseconds.
TEST(HeavyLoss, OfThreeInTenCostsIrnAndSrnicNoVerbsTimeOut) {
  for (const Mode mode : {Mode::kIrn, Mode::kSrnic}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      LossyPath w(mode, 300, seed);
      EXPECT_LE(w.takes(), seconds(1)) << wire::mode_name(mode) << ", seed " << seed;
      EXPECT_EQ(w.count(Counter::retries_charged), 0U);
    }
  }
}

// roce goes back for each loss, and waits where a NAK is lost. What goes again is all that could tell a round
// trip: nothing new is sent for long.
TEST(HeavyLoss, OfOneInTenCostsRoceNoVerbsTimeOut) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    LossyPath w(Mode::kRoce, 100, seed);
    EXPECT_LE(w.takes(), seconds(1)) << "seed " << seed;
    EXPECT_EQ(w.count(Counter::timeout_high), 0U);
  }
}

// The first probe is answered after a silence, and tells no time. What goes again then does, and nothing of
// the silence is left in the time-outs.
TEST(HeavyLoss, WhatGoesAgainAfterASilenceIsTimed) {
  for (const Mode mode : {Mode::kRoce, Mode::kIrn, Mode::kSrnic}) {
    LongPath w(mode, LossyPath::config(), kCode);
    w.delay = microseconds(50);
    w.writes(4, 4);
    ASSERT_EQ(w.complete(4), 4U);
    int lost = 0;
    const Time since = w.now;
    w.loses = [&](const wire::Header&) { return lost++ < 4 || w.now < since.after(milliseconds(40)); };
    w.writes(1, 4);
    ASSERT_EQ(w.complete(1), 1U);
    const RoundTrip& r = w.a.device.engine().cold(*w.a.device.engine().find(w.qa)).round_trip;
    EXPECT_FALSE(r.held()) << wire::mode_name(mode);
    EXPECT_LE(r.timeout(), milliseconds(1)) << wire::mode_name(mode);
  }
}

// The oldest packet is lost for 20 ms, and one behind it for 6. What the third time-out, after 7 ms, repairs
// of them is answered: from there on time-outs double anew, and the oldest need not wait from 15 to 31 ms.
TEST(HeavyLoss, IsNoSilenceWhereANackTellsOfARepair) {
  for (const Mode mode : {Mode::kIrn, Mode::kSrnic}) {
    LongPath w(mode, LossyPath::config(), kCode);
    w.delay = microseconds(20);
    w.writes(4, 4);
    ASSERT_EQ(w.complete(4), 4U);
    const auto first = w.a.device.engine().find(w.qa)->requests_out.max.v;
    const Time since = w.now;
    w.loses = [&](const wire::Header& h) {
      if (h.opcode == wire::kAcknowledge) return false;
      const auto place = (h.psn.v - first) & 0xFFFFFF;
      return (place == 0 && w.now < since.after(milliseconds(20))) ||
             (place == 5 && w.now < since.after(milliseconds(6)));
    };
    w.writes(1, 16);
    EXPECT_EQ(w.complete(1), 1U);
    EXPECT_GE(w.now - since, milliseconds(20)) << wire::mode_name(mode);
    EXPECT_LE(w.now - since, milliseconds(27)) << wire::mode_name(mode);
  }
}

}  // namespace
}  // namespace weft
