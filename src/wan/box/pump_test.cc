// A live box between two ports that tests hold in their hands, and a pair of them with endpoints of a few
// lines: what leaves, byte for byte.
#include "wan/box/pump.h"

#include <gtest/gtest.h>

#include "core/wire/bytes.h"
#include "core/wire/icrc.h"
#include "core/wire/ip.h"
#include "wan/box/fake_port.h"
#include "wan/box/long_line.h"
#include "wan/logic/store.h"

namespace weft::wan {
namespace {

PumpConfig config(std::uint64_t n) {
  PumpConfig c;
  c.box.instance = c.box.seed = n;
  c.box.secret = {1, 2, 3};
  c.box.store = Bytes{2'000'000};
  c.box.halves = 16;
  c.box.calm = 4;
  return c;
}

struct Alone {
  FakePort near{"near"};
  FakePort far{"far"};
  Pump pump{config(1), near, far};
};

TEST(LiveBox, ForwardsWhatItDoesNotUnderstandAsItCame) {
  Alone a;
  FakePort::Bytes arp(60, 0xFF);
  arp[12] = 8;
  arp[13] = 6;
  FakePort::Bytes jumbo(9000, 0x11);
  FakePort::Bytes broken = packet(wire::kWriteOnly, 7, 64);
  broken.back() ^= 1U;
  const Offload tcp{Offload::kNeedsChecksum, 1, 54, 1448, 34, 16};
  a.near.comes(arp);
  a.near.comes(jumbo, tcp);
  a.near.comes(broken);
  a.far.comes(arp);
  a.pump.turn({});
  ASSERT_EQ(a.far.left.size(), 3U);
  EXPECT_EQ(a.far.left[0].first, arp);
  EXPECT_EQ(a.far.left[1].first, jumbo);
  EXPECT_EQ(a.far.left[1].second, tcp);
  EXPECT_EQ(a.far.left[2].first, broken);
  ASSERT_EQ(a.near.left.size(), 1U);
  EXPECT_EQ(a.pump.strangers(Stranger::other), 3U);
  EXPECT_EQ(a.pump.strangers(Stranger::bad_icrc), 1U);
  EXPECT_EQ(a.pump.slots_in_use(), 0U);
}

TEST(LiveBox, IsAWireForPacketsOfNobodyItKnows) {
  Alone a;
  for (std::uint32_t i = 0; i < 200; ++i) a.near.comes(packet(wire::kWriteOnly, i, 64));
  while (a.pump.turn({})) {
  }
  ASSERT_EQ(a.far.left.size(), 200U);
  for (std::uint32_t i = 0; i < 200; ++i) EXPECT_EQ(a.far.left[i].first, packet(wire::kWriteOnly, i, 64));
  EXPECT_EQ(a.pump.slots_in_use(), 0U);
}

// With this identification, and the ICRC that goes with it.
FakePort::Bytes numbered(FakePort::Bytes b, std::uint16_t identification) {
  wire::store_be16(b.data() + 18, identification);
  wire::Icrc icrc(std::span<const std::uint8_t>(b).subspan(14, 28));
  icrc.packet(std::span<const std::uint8_t>(b).subspan(kHeadersBytes, b.size() - kHeadersBytes - 4));
  for (unsigned i = 0; i < 4; ++i) b[b.size() - 4 + i] = static_cast<std::uint8_t>(icrc.value() >> (8U * i));
  return b;
}

// A train of RoCEv2 is frames for the box; each has the identification that its ICRC was computed with.
TEST(LiveBox, CutsATrain) {
  Alone a;
  FakePort::Bytes train = packet(wire::kWriteOnly, 0, 64);
  const std::size_t piece = train.size() - kHeadersBytes;
  const std::uint16_t at_once = 3;
  for (std::uint16_t i = 1; i < at_once; ++i) {
    const FakePort::Bytes more = numbered(packet(wire::kWriteOnly, i, 64), i);
    train.insert(train.end(), more.begin() + kHeadersBytes, more.end());
  }
  wire::store_be16(train.data() + 16, static_cast<std::uint16_t>(train.size() - 14));
  wire::store_be16(train.data() + 38, static_cast<std::uint16_t>(train.size() - 34));
  Offload o;
  o.flags = Offload::kNeedsChecksum;
  o.cut_as = Offload::kUdpTrain;
  o.piece = static_cast<std::uint16_t>(piece);
  a.near.comes(train, o);
  a.pump.turn({});
  ASSERT_EQ(a.far.left.size(), at_once);
  for (std::uint32_t i = 0; i < at_once; ++i) {
    const FakePort::Bytes& b = a.far.left[i].first;
    EXPECT_EQ(b.size(), kHeadersBytes + piece);
    EXPECT_EQ(wire::load_be16(b.data() + 18), i);
    EXPECT_EQ(wire::load_be16(b.data() + 40), 0U);
    EXPECT_FALSE(a.far.left[i].second.is_train());
  }
  EXPECT_EQ(a.pump.strangers(Stranger::bad_icrc), 0U);
  EXPECT_EQ(a.pump.slots_in_use(), 0U);
}

TEST(LiveBox, KeepsToTheRateOfTheLine) {
  FakePort near("near");
  FakePort far("far");
  PumpConfig c = config(1);
  c.rate = megabits(100);
  Pump pump(c, near, far);
  for (std::uint32_t i = 0; i < 512; ++i) near.comes(packet(wire::kWriteOnly, i, 256));
  Time now = Time{} + seconds(1);
  std::size_t bytes = 0;
  for (const Time end = now + milliseconds(10); now < end; now = now + microseconds(20)) {
    pump.turn(now);
    bytes = 0;
    for (const auto& [frame, offload] : far.left) bytes += frame.size() + 24;
  }
  // 10 ms, and what may be made up for.
  EXPECT_LE(bytes, 125'000U + 6'250U + 400U);
  EXPECT_GE(bytes, 120'000U);
  EXPECT_LT(pump.next_due(now), kNever);
}

// What passes is not held back, whatever the rate. Ten seconds' worth of it at once does not keep the box
// from the line for as long: what it owes goes on.
TEST(LiveBox, SpeaksAgainSoonAfterAFlood) {
  FakePort near("near");
  FakePort far("far");
  PumpConfig c = config(1);
  c.rate = megabits(100);
  Pump pump(c, near, far);
  const FakePort::Bytes stranger(9000, 0x11);
  for (int i = 0; i < 14'000; ++i) near.comes(stranger);
  Time now = Time{} + seconds(1);
  while (pump.turn(now)) {
  }
  EXPECT_GE(far.left.size(), 14'000U);
  far.left.clear();
  near.comes(packet(wire::kWriteOnly, 1, 256));
  for (const Time end = now + milliseconds(20); now < end; now = now + microseconds(100)) pump.turn(now);
  EXPECT_GE(far.left.size(), 1U);
}

// Two boxes and a line of 5 ms; a requester that has 16 WRITEs under way, a responder that acknowledges each.
struct Pair {
  explicit Pair(ParityTerms parity = {}, bool through_routers = false, std::uint32_t bytes = 64)
      : terms(parity), routers(through_routers), payload(bytes) {}
  PumpConfig config_with(std::uint64_t n) const {
    PumpConfig c = config(n);
    c.box.parity = terms;
    return c;
  }
  void run(Duration how_long) {
    for (const Time end = now + how_long; now < end; now = now + microseconds(50)) {
      if (done != last_done) moved_at = now;
      last_done = done;
      if (now - moved_at > milliseconds(30)) {  // a time-out
        moved_at = now;
        sent = done;
      }
      while (sent < most && sent < done + 16) near0.comes(packet(wire::kWriteOnly, sent++, payload));
      for (bool moved = true; moved;) {
        moved = box0.turn(now);
        moved = box1.turn(now) || moved;
        moved = line.turn(now) || moved;
        move(far0, end0);
        if (routers) route(end0);
        move(end0, far0);
        move(far1, end1);
        if (routers) route(end1);
        move(end1, far1);
        for (const auto& [frame, offload] : near0.left) hear(frame, true);
        near0.left.clear();
        for (const auto& [frame, offload] : near1.left) hear(frame, false);
        near1.left.clear();
      }
    }
  }
  static void move(FakePort& from, FakePort& to) {
    for (auto& [frame, offload] : from.left) to.comes(std::move(frame), offload);
    from.left.clear();
  }
  // What routers of the line do to a frame: other stations, one hop less, a mark.
  static void route(FakePort& port) {
    for (auto& [frame, offload] : port.left) {
      for (std::size_t i = 0; i < 12; ++i) frame[i] = static_cast<std::uint8_t>(0x40 + i);
      frame[15] |= 2U;
      frame[22] = 60;
      wire::store_be16(frame.data() + 24, 0);
      wire::store_be16(frame.data() + 24,
                       wire::internet_checksum(wire::internet_sum(std::span(frame).subspan(14, 20))));
    }
  }
  void hear(const FakePort::Bytes& bytes, bool requester) {
    Frame f;
    std::span<const std::uint8_t> mad;
    Stranger reason{};
    ASSERT_TRUE(understand(bytes, f, mad, reason));
    if (!mad.empty()) return;
    if (requester) {
      const bool ack = f.header.syndrome <= wire::kSyndromeAck;
      if (ack) done = std::max(done, f.header.psn.v + 1);
      if (!ack) sent = std::min(sent, f.header.psn.v);
      return;
    }
    // Byte for byte what the requester sent.
    if (f.header.psn.v == taken) {
      FakePort::Bytes expected = packet(wire::kWriteOnly, taken++, payload);
      if (routers) {
        FakePort by("routers");
        by.left.emplace_back(expected, Offload{});
        route(by);
        expected = by.left[0].first;
      }
      EXPECT_EQ(bytes, expected);
    }
    if (taken != 0) near1.comes(packet(wire::kAcknowledge, taken - 1, 0, false));
  }

  ParityTerms terms;
  bool routers;
  std::uint32_t payload;
  FakePort near0{"near"}, far0{"far"}, end0{"end"}, end1{"end"}, far1{"far"}, near1{"near"};
  Pump box0{config_with(1), near0, far0};
  Pump box1{config_with(2), near1, far1};
  LongLine line{[] {
                  LongLineConfig c;
                  c.delay = milliseconds(5);
                  c.rate = gigabits(1);
                  c.loss = 10'000;
                  return c;
                }(),
                end0, end1};
  Time now = Time{} + seconds(1);
  std::uint32_t most = UINT32_MAX;
  std::uint32_t sent = 0;
  std::uint32_t done = 0;
  std::uint32_t taken = 0;
  std::uint32_t last_done = 0;
  Time moved_at = now;
};

TEST(LiveBoxes, AcknowledgeEarlyOverALineThatLosesPacketsAndDeliverAll) {
  Pair p;
  p.run(milliseconds(500));
  EXPECT_EQ(p.box0.box().counters().get(BoxCounter::owned), 1U);
  // As a wire 16 packets take 10 ms.
  EXPECT_GT(p.done, 500U / 10 * 16 * 3);
  p.most = p.sent;
  p.run(milliseconds(300));
  EXPECT_EQ(p.done, p.most);
  EXPECT_EQ(p.taken, p.most);
  EXPECT_GT(p.line.counters(0).lost, 0U);
  EXPECT_EQ(p.box0.slots_in_use() + p.box1.slots_in_use(), 0U);
  EXPECT_TRUE(p.box0.owes_nothing() && p.box1.owes_nothing());
}

// What the line loses comes by parity, byte for byte, as if it had never been lost; also where routers have
// changed what they may on both, frames and parity.
TEST(LiveBoxes, RestoreWhatTheLineLost) {
  for (const bool routers : {false, true}) {
    Pair p({16, 2}, routers);
    p.run(milliseconds(500));
    p.most = p.sent;
    p.run(milliseconds(300));
    EXPECT_EQ(p.done, p.most);
    EXPECT_EQ(p.taken, p.most);
    EXPECT_GT(p.line.counters(0).lost, 5U);
    const BoxCounters& far = p.box1.box().counters();
    EXPECT_GT(far.get(BoxCounter::restored), 5U) << routers;
    EXPECT_EQ(far.get(BoxCounter::restored_wrong), 0U);
    EXPECT_EQ(p.box1.parity_broken(), 0U);
    EXPECT_EQ(p.box0.slots_in_use() + p.box1.slots_in_use(), 0U);
    EXPECT_TRUE(p.box0.owes_nothing() && p.box1.owes_nothing());
  }
}

// A line of 4200 bytes has room for packets of 3824 bytes and their parity; longer ones go without.
TEST(LiveBoxes, LeaveOutWhatIsTooLongForTheLine) {
  EXPECT_EQ(LineParity::covered(4200), 3824U);
  EXPECT_GE(LineParity::covered(4500), kMostPayload);
  EXPECT_EQ(LineParity::covered(300), 0U);
  Pair p({16, 2});
  EXPECT_EQ(p.box0.box().config().covered, 3824U);
  p.run(milliseconds(400));
  EXPECT_GT(p.box0.box().counters().get(BoxCounter::covered), 0U);
  EXPECT_EQ(p.box0.box().counters().get(BoxCounter::uncovered), 0U);
}

}  // namespace
}  // namespace weft::wan
