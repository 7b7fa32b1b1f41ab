// A world that stood still itself finds time-outs long overdue. The peer may have stood still with it, so a
// time-out starts over; but once in a silence, or a machine that is always late would never report a peer
// that is gone: the standard allows four times the time-out per attempt.
#include <gtest/gtest.h>

#include "core/transport/long_path.h"

namespace weft {
namespace {

using wire::Mode;

constexpr Duration kStall = milliseconds(1);

class StallTest : public ::testing::TestWithParam<Mode> {
 protected:
  LongPath w{GetParam(), config(), 14};
  static DeviceConfig config() {
    DeviceConfig c = LongPath::live();
    c.tail_probe = {};
    return c;
  }
  Duration timeout = nanoseconds(4096LL << 14);
  // Every timer is looked at so late.
  std::vector<WcStatus> be_late(Duration late, Duration limit) {
    const Time end = w.now.after(limit);
    std::vector<WcStatus> got;
    while (got.empty() && w.now < end) {
      w.intercept(w.a);
      w.now = std::max(w.now, w.a.device.next_deadline()).after(late);
      w.a.device.on_timer(w.now, kStall);
      got = w.a.statuses();
    }
    return got;
  }
};

TEST_P(StallTest, AWorldThatIsAlwaysLateReportsAPeerThatIsGone) {
  for (const Duration late : {microseconds(10), milliseconds(2), milliseconds(30)}) {
    w.qa = w.a.create();
    w.qb = w.b.create();
    w.connect(w.qa, w.qb);
    const Time since = w.now;
    w.writes(1, 1);
    ASSERT_EQ(be_late(late, seconds(60)), std::vector{WcStatus::kRetryExceeded}) << late.us();
    EXPECT_GE(w.now - since, timeout * 8);
    EXPECT_LE(w.now - since, timeout * (4 * 8)) << late.us();
  }
}

TEST_P(StallTest, OneStallCostsNoRetry) {
  w.writes(1, 1);
  w.intercept(w.a);
  w.now = w.now.after(timeout * 20);
  w.a.device.on_timer(w.now, kStall);
  EXPECT_TRUE(w.intercept(w.a).empty());
  EXPECT_EQ(w.count(Counter::retries_charged), 0U);
  EXPECT_EQ(w.count(Counter::stalls), 1U);
  EXPECT_GE(w.a.device.next_deadline(), w.now.after(milliseconds(1)));
}

// Others' traffic is no reason to forgive the silent one again.
TEST_P(StallTest, ABusyNeighbourDoesNotKeepASilentPeerAlive) {
  const Qpn silent = w.qa;
  const Qpn near = w.a.create();
  const Qpn far = w.b.create();
  w.connect(near, far);
  CHECK(w.a.post(silent, w.request(WrOpcode::kWrite, 0, 256, 0)));
  const Time since = w.now;
  std::vector<WcStatus> got;
  while (got.empty() && w.now - since < timeout * 40) {
    CHECK(w.a.post(near, w.request(WrOpcode::kWrite, 0, 256, 0, 0)));
    for (const Side::Frame& f : w.intercept(w.a)) {
      if (f.packet.header.dest_qp == far) w.deliver(w.b, f);
    }
    std::vector<Side::Frame> answers;
    w.b.collect(w.b.device.poll_control(w.now), answers);
    for (const Side::Frame& f : answers) w.deliver(w.a, f);
    w.now = w.now.after(milliseconds(20));
    w.a.device.on_timer(w.now, kStall);
    got = w.a.statuses();
  }
  EXPECT_EQ(got, std::vector{WcStatus::kRetryExceeded});
  EXPECT_LE(w.now - since, timeout * (4 * 8));
}

INSTANTIATE_TEST_SUITE_P(Modes, StallTest, ::testing::Values(Mode::kRoce, Mode::kIrn, Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
