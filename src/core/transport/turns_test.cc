// Turns of a Device's queue pairs (SRNIC §4.3.1): who has one, and how much of its work goes with it.
#include <gtest/gtest.h>

#include <map>

#include "core/transport/two_devices.h"

namespace weft {
namespace {

constexpr Budget kAll{64, 65000};

struct Several : TwoDevices {
  Several(const DeviceConfig& c, const std::vector<std::uint8_t>& levels) : TwoDevices(wire::Mode::kIrn, c) {
    for (const std::uint8_t level : levels) {
      service_level = level;
      from.push_back(a.create());
      connect(from.back(), b.create());
    }
  }
  void post(Qpn qpn, std::uint32_t length) {
    ASSERT_TRUE(a.device.post_send(qpn, request(WrOpcode::kWrite, 0, length, 0)).has_value());
  }
  // Whose turn it was and how many packets it sent; kNoQpn when nobody has work.
  std::pair<Qpn, std::size_t> turn_of_a() {
    const wire::Burst burst = a.device.poll_transmit(now, kAll);
    return {burst.empty() ? kNoQpn : burst.qpn, burst.packets.size()};
  }
  std::vector<Qpn> from;
};

// Messages of 10 packets at 3 packets a turn: each goes on where it stopped, and others have turns between.
TEST(Turns, AMessageIsResumedInTheMiddle) {
  DeviceConfig c;
  c.burst_packets = 3;
  Several w(c, {0, 0});
  for (const Qpn q : w.from) w.post(q, 2560);
  std::vector<std::pair<Qpn, std::size_t>> expected;
  for (const std::size_t n : {3U, 3U, 3U, 1U}) {
    for (const Qpn q : w.from) expected.emplace_back(q, n);
  }
  for (const auto& e : expected) EXPECT_EQ(w.turn_of_a(), e);
  EXPECT_EQ(w.turn_of_a().first, kNoQpn);
}

// n = 8 requests a turn, begun or resumed, however small they are; without the bound, all of them.
TEST(Turns, ATurnTakesUpToNRequests) {
  for (const std::uint32_t n : {8U, 0U}) {
    DeviceConfig c;
    c.burst_requests = n;
    Several w(c, {0});
    for (int i = 0; i < 20; ++i) w.post(w.from[0], 64);
    for (const std::size_t expected :
         n == 8 ? std::vector<std::size_t>{8, 8, 4} : std::vector<std::size_t>{20})
      EXPECT_EQ(w.turn_of_a().second, expected);
    EXPECT_EQ(w.turn_of_a().first, kNoQpn);
  }
}

TEST(Turns, ATurnTakesUpToABurstOfBytes) {
  DeviceConfig c;
  c.burst_bytes = 5000;
  Several w(c, {0});
  w.post(w.from[0], 256 * 40);
  // 256 bytes, BTH and RETH: 284 a packet.
  EXPECT_EQ(w.turn_of_a().second, 5000U / 284U);
}

// However often work is posted, a queue pair is queued once: a second turn would be empty.
TEST(Turns, AQueuePairIsQueuedOnce) {
  Several w(DeviceConfig{}, {0});
  for (int i = 0; i < 5; ++i) w.post(w.from[0], 64);
  EXPECT_EQ(w.a.device.engine().ready_queue.upcoming(), 1U);
  EXPECT_EQ(w.a.device.pick(w.now), w.from[0]);
  w.post(w.from[0], 64);  // while its turn is being prepared
  EXPECT_EQ(w.a.device.pick(w.now), kNoQpn);
  EXPECT_EQ(w.a.device.transmit(w.from[0], w.now, kAll).packets.size(), 6U);
}

// Only when it has work and credit: with its window full it is not in the queue, and an ACK brings it back.
TEST(Turns, AQueuePairWithoutCreditIsNotQueued) {
  DeviceConfig c;
  c.bdp_cap = 4;
  Several w(c, {0});
  w.post(w.from[0], 256 * 8);
  EXPECT_EQ(w.turn_of_a().second, 4U);
  EXPECT_TRUE(w.a.device.engine().ready_queue.empty());
  EXPECT_FALSE(w.a.device.is_ready(w.from[0]));
}

TEST(Turns, WeightsAndPrioritiesFollowTheServiceLevel) {
  for (const Schedule s : {Schedule::kWeighted, Schedule::kPriority}) {
    DeviceConfig c;
    c.schedule = s;
    c.burst_packets = 1;
    Several w(c, {0, 3});
    for (const Qpn q : w.from) w.post(q, 256 * 40);
    std::map<Qpn, int> turns;
    for (int i = 0; i < 40; ++i) ++turns[w.turn_of_a().first];
    EXPECT_EQ(turns[w.from[1]], s == Schedule::kWeighted ? 32 : 40);  // level 3 weighs four times level 0
    EXPECT_EQ(w.a.device.query_qp(w.from[1])->service_level, 3);
  }
}

TEST(Turns, AServiceLevelAboveFifteenIsRefused) {
  TwoDevices w(wire::Mode::kIrn);
  const Qpn q = w.a.create();
  QpAttr t;
  const auto [init, rtr, rts] = ladder(QpType::kRc);
  ASSERT_TRUE(w.a.step(q, t, init));
  t.path = *w.a.device.open_path({w.b.address});
  t.service_level = 16;
  EXPECT_EQ(w.a.step(q, t, rtr).error(), Errc::kInvalid);
}

}  // namespace
}  // namespace weft
