// Datagrams: what arrives is in the receive behind its GRH, from whoever knows the Q_Key; what is lost or has
// no place is gone, and nobody is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/base/prng.h"
#include "core/transport/two_devices.h"
#include "core/wire/bytes.h"
#include "core/wire/ip.h"

namespace weft {
namespace {

constexpr std::uint32_t kGrh = 40;

DeviceConfig small_port() {
  DeviceConfig c;
  c.port_mtu = 1024;
  return c;
}

struct UdTest : ::testing::Test {
  UdTest() : w(wire::Mode::kIrn, small_port(), QpType::kUd) {  // the mode does not matter
    for (std::size_t i = 0; i < w.a.bytes().size(); ++i)
      w.a.bytes()[i] = static_cast<std::uint8_t>(i * 7 + i / 256 + 1);
  }
  // Receive k at b's offset 16384 + 2048 k.
  void receives(int n, std::uint32_t length = 1024 + kGrh) {
    for (int i = 0; i < n; ++i) {
      const auto k = static_cast<std::uint64_t>(i);
      ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 16384 + 2048 * k, length, 100 + k)));
    }
  }
  SendWr datagram(int i, std::uint32_t length = 700) {
    return w.request(WrOpcode::kSend, 1024 * static_cast<std::uint64_t>(i), length, 0);
  }
  bool arrived(int i, int receive, std::uint32_t length = 700) {
    const auto from = w.a.bytes().begin() + 1024 * i;
    return std::equal(from, from + length, w.b.bytes().begin() + 16384 + 2048 * receive + kGrh);
  }
  std::uint64_t counted(Counter c) { return w.b.device.counters().get(c); }
  QpState state(Side& s, Qpn q) { return s.device.query_qp(q)->state; }

  TwoDevices w;
};

TEST_F(UdTest, ADatagramBringsItsGrhAndSaysWhoSentIt) {
  receives(3);
  w.post(datagram(0));
  SendWr r = datagram(1, 0);
  r.opcode = WrOpcode::kSendImm;
  r.imm = 0xCAFE;
  w.post(r);
  w.post(datagram(2, 1024));
  w.run();
  EXPECT_EQ(w.sent, 3);
  EXPECT_EQ(w.a.completions().size(), 3U);
  const auto got = w.b.completions();
  ASSERT_EQ(got.size(), 3U);
  constexpr std::uint32_t kLengths[] = {700, 0, 1024};
  for (int i = 0; i < 3; ++i) {
    const Completion& c = got[static_cast<std::size_t>(i)];
    EXPECT_EQ(c.wr_id, 100U + static_cast<std::uint64_t>(i));
    EXPECT_EQ(c.status, WcStatus::kSuccess);
    EXPECT_EQ(c.opcode, WcOpcode::kReceive);
    EXPECT_EQ(c.byte_len, kLengths[i] + kGrh);
    EXPECT_EQ(c.src_qp, w.qa);
    EXPECT_EQ(c.qpn, w.qb);
    EXPECT_EQ(c.flags, i == 1 ? kWcGrh | kWcWithImm : kWcGrh);
    EXPECT_EQ(c.imm, i == 1 ? 0xCAFEU : 0U);
    EXPECT_TRUE(arrived(i, i, kLengths[i]));
  }
  const std::uint8_t* const grh = w.b.bytes().data() + 16384;
  EXPECT_TRUE(std::all_of(grh, grh + 20, [](std::uint8_t b) { return b == 0; }));
  EXPECT_EQ(grh[20], 0x45);
  EXPECT_EQ(wire::load_be16(grh + 22), 20 + 8 + 12 + 8 + 700 + 4);
  EXPECT_EQ(grh[28], 64);
  EXPECT_EQ(grh[29], 17);
  EXPECT_EQ(wire::internet_checksum(wire::internet_sum({grh + 20, 20})), 0);
  EXPECT_EQ(wire::load_be32(grh + 32), 0x0A000001U);
  EXPECT_EQ(wire::load_be32(grh + 36), 0x0A000002U);
}

// The world gives each member its own copy, and says what for.
TEST_F(UdTest, ADatagramToAGroupBringsTheGroupsHeader) {
  receives(1);
  const wire::Address group = wire::Address::v4(239, 1, 2, 3);
  wire::RxPacket p;
  p.header.opcode = wire::kUdSendOnly;
  p.header.dest_qp = w.qb;
  p.header.set_deth(TwoDevices::kQkey, w.qa);
  p.source = w.a.address;
  p.group = &group;
  const std::vector<std::uint8_t> nothing;
  Side::Copier sink{w.b, &nothing};
  w.b.device.on_packets(w.now, {&p, 1}, sink);
  ASSERT_EQ(w.b.completions().size(), 1U);
  const std::uint8_t* const grh = w.b.bytes().data() + 16384;
  EXPECT_EQ(wire::load_be32(grh + 32), 0x0A000001U);
  EXPECT_EQ(wire::load_be32(grh + 36), 0xEF010203U);
  EXPECT_EQ(wire::internet_checksum(wire::internet_sum({grh + 20, 20})), 0);
}

TEST_F(UdTest, Ipv6DatagramsBringTheirIpv6Header) {
  wire::RxPacket p;
  p.header.opcode = wire::kUdSendOnly;
  p.payload = 5;
  p.tos = 0x62;
  p.ttl = 9;
  p.source.bytes[0] = 0xFD;
  p.source.bytes[15] = 1;
  wire::Address to = p.source;
  to.bytes[15] = 2;
  const auto grh = ud_grh(p, to);
  EXPECT_EQ(wire::load_be32(grh.data()), 0x66200000U);
  EXPECT_EQ(wire::load_be16(grh.data() + 4), 8 + 12 + 8 + 5 + 3 + 4);
  EXPECT_EQ(grh[6], 17);
  EXPECT_EQ(grh[7], 9);
  EXPECT_EQ(grh[23], 1);
  EXPECT_EQ(grh[39], 2);
}

TEST_F(UdTest, EveryPatternOfLossesCostsExactlyTheDatagramsItHits) {
  for (std::uint64_t pattern = 0; pattern < 256; ++pattern) {
    SCOPED_TRACE("losses " + std::to_string(pattern));
    TwoDevices fresh(wire::Mode::kRoce, small_port(), QpType::kUd);
    fresh.lose_pattern = pattern;
    std::vector<std::uint32_t> kept;
    for (std::uint32_t i = 0; i < 8; ++i) {
      if ((pattern >> i & 1U) == 0) kept.push_back(i);
      fresh.a.bytes()[64 * i] = static_cast<std::uint8_t>(i + 1);
      ASSERT_TRUE(fresh.b.device.post_recv(fresh.qb, fresh.receive(fresh.b, 8192 + 256 * i, 256, i)));
      fresh.post(fresh.request(WrOpcode::kSend, 64 * i, 64, 0));
    }
    fresh.run();
    ASSERT_EQ(fresh.a.completions().size(), 8U);
    const auto got = fresh.b.completions();
    ASSERT_EQ(got.size(), kept.size());
    for (std::size_t k = 0; k < kept.size(); ++k)
      ASSERT_EQ(fresh.b.bytes()[8192 + 256 * k + kGrh], kept[k] + 1);
  }
}

TEST_F(UdTest, TheQkeyDecides) {
  receives(4);
  SendWr r = datagram(0);
  r.remote_qkey = TwoDevices::kQkey + 1;
  w.post(r);
  r.remote_qkey = 0x8000'0000;  // "mine", which is the peer's too
  w.post(r);
  w.run();
  EXPECT_EQ(w.b.completions().size(), 1U);
  EXPECT_EQ(counted(Counter::drop_qkey), 1U);
  QpAttr t;
  t.qkey = 99;
  ASSERT_TRUE(w.a.device.modify_qp(w.qa, t, kAttrQkey, w.now));
  w.post(r);
  w.run();
  EXPECT_EQ(counted(Counter::drop_qkey), 2U);
  ASSERT_TRUE(w.b.device.modify_qp(w.qb, t, kAttrQkey, w.now));
  w.post(r);
  w.run();
  EXPECT_EQ(w.b.completions().size(), 1U);
}

TEST_F(UdTest, WithoutAReceiveOrRoomInItADatagramIsDropped) {
  w.post(datagram(0));
  w.run();
  EXPECT_EQ(counted(Counter::drop_no_receive), 1U);
  receives(1, kGrh + 100);
  const auto before = w.b.bytes();
  w.post(datagram(1, 101));
  w.run();
  EXPECT_EQ(counted(Counter::drop_too_long), 1U);
  EXPECT_EQ(w.b.bytes(), before) << "nothing of it, not even the GRH";
  w.post(datagram(2, 100));
  w.run();
  ASSERT_EQ(w.b.completions().size(), 1U);
  EXPECT_TRUE(arrived(2, 0, 100));
  receives(1, kGrh - 1);
  w.post(datagram(0, 0));
  w.run();
  EXPECT_EQ(counted(Counter::drop_too_long), 2U);
}

// A receive in pieces, cut inside the GRH and inside the payload.
TEST_F(UdTest, GrhAndPayloadAreScattered) {
  const Sge pieces[4] = {{Side::kBase + 1000, 11, w.b.mr.lkey},
                         {Side::kBase + 2000, 0, w.b.mr.lkey},
                         {Side::kBase + 3000, 30, w.b.mr.lkey},
                         {Side::kBase + 4000, 700, w.b.mr.lkey}};
  ASSERT_TRUE(w.b.device.post_recv(w.qb, {1, pieces}));
  w.post(datagram(0, 300));
  w.run();
  ASSERT_EQ(w.b.completions().size(), 1U);
  std::vector<std::uint8_t> all(w.b.bytes().begin() + 1000, w.b.bytes().begin() + 1011);
  all.insert(all.end(), w.b.bytes().begin() + 3000, w.b.bytes().begin() + 3030);
  all.insert(all.end(), w.b.bytes().begin() + 4000, w.b.bytes().begin() + 4299);
  EXPECT_EQ(wire::internet_checksum(wire::internet_sum({all.data() + 20, 20})), 0);
  EXPECT_TRUE(std::equal(all.begin() + kGrh, all.end(), w.a.bytes().begin()));
  EXPECT_EQ(w.b.bytes()[1011], 0);
  EXPECT_EQ(w.b.bytes()[4299], 0);
}

// SQE: a datagram of more than the port's MTU cannot be sent.
TEST_F(UdTest, WhatIsLongerThanThePortsMtuStopsTheSendQueue) {
  receives(4);
  w.post(datagram(0));
  w.post(datagram(1, 1025));
  w.post(datagram(2));
  w.run();
  EXPECT_EQ(w.a.statuses(), (std::vector{WcStatus::kSuccess, WcStatus::kLocalLength, WcStatus::kFlushed}));
  EXPECT_EQ(state(w.a, w.qa), QpState::kSqe);
  QpAttr t;
  t.state = QpState::kRts;
  ASSERT_TRUE(w.a.device.modify_qp(w.qa, t, kAttrState, w.now));
  w.post(datagram(3));
  w.run();
  EXPECT_EQ(w.b.completions().size(), 2U);
  EXPECT_TRUE(arrived(3, 1));
}

TEST_F(UdTest, AReceiveThatCannotBeWrittenFails) {
  w.b.receive_nowhere(w.qb, 5);
  w.post(datagram(0));
  w.run();
  EXPECT_EQ(w.b.statuses(), std::vector{WcStatus::kLocalProtection});
  EXPECT_EQ(state(w.b, w.qb), QpState::kErr);
}

TEST_F(UdTest, AddressHandlesAreCheckedWhenARequestIsPosted) {
  Device& d = w.a.device;
  const auto refused = [&](const SendWr& r) {
    const auto posted = d.post_send(w.qa, r);
    return !posted && posted.error() == Errc::kInvalid;
  };
  SendWr r = datagram(0);
  r.remote_qpn = wire::kEveryMember;
  EXPECT_TRUE(refused(r)) << "a host is no group";
  const PathId group = *d.open_path({wire::Address::v4(224, 0, 0, 5)});
  EXPECT_EQ(d.create_ah({77}, group).error(), Errc::kInvalid);
  r.ah = *d.create_ah(w.a.pd, group);
  EXPECT_FALSE(refused(r));
  r.remote_qpn = w.qb;
  EXPECT_TRUE(refused(r)) << "a group is every member's";
  ASSERT_TRUE(d.destroy_ah(r.ah));
  const PdId other = *d.alloc_pd();
  r = datagram(0);
  r.ah = *d.create_ah(other, *d.open_path({w.b.address}));
  EXPECT_TRUE(refused(r)) << "of another protection domain";
  EXPECT_EQ(d.dealloc_pd(other).error(), Errc::kBusy);
  ASSERT_TRUE(d.destroy_ah(r.ah));
  EXPECT_TRUE(d.dealloc_pd(other));
  EXPECT_TRUE(refused(r)) << "destroyed";
  EXPECT_FALSE(d.destroy_ah(r.ah));
  r.opcode = WrOpcode::kWrite;
  EXPECT_TRUE(refused(r));

  receives(1);
  w.post(datagram(0));  // what is posted does not need its handle any more
  ASSERT_TRUE(d.destroy_ah(w.to_b));
  w.run();
  EXPECT_EQ(w.b.completions().size(), 1U);
  std::vector<AhId> all;
  for (auto ah = d.create_ah(w.a.pd, {0}); ah; ah = d.create_ah(w.a.pd, {0})) all.push_back(*ah);
  EXPECT_EQ(all.size(), d.config().max_ah);
}

// Every message names its own destination; a burst has one.
TEST_F(UdTest, OneQueuePairSendsToMany) {
  Device& d = w.a.device;
  std::vector<PathId> paths;
  std::vector<AhId> handles;
  for (std::uint8_t n = 2; n < 5; ++n) {
    paths.push_back(*d.open_path({wire::Address::v4(10, 0, 0, n)}));
    handles.push_back(*d.create_ah(w.a.pd, paths.back()));
  }
  constexpr std::size_t kTo[] = {0, 0, 1, 2, 2, 2, 0};
  for (const std::size_t to : kTo) {
    SendWr r = datagram(0);
    r.ah = handles[to];
    r.remote_qpn = {1000 + static_cast<std::uint32_t>(to)};
    w.post(r);
  }
  std::vector<std::size_t> went;
  for (wire::Burst b = d.poll_transmit(w.now, {}); !b.empty(); b = d.poll_transmit(w.now, {})) {
    for (const wire::TxPacket& p : b.packets) {
      const std::size_t to = p.header.dest_qp.v - 1000;
      EXPECT_EQ(b.path, paths[to]);
      EXPECT_EQ(p.header.psn.v, (0xFFFFFE + went.size()) & kPsnMask);
      went.push_back(to);
    }
  }
  EXPECT_TRUE(std::equal(went.begin(), went.end(), std::begin(kTo), std::end(kTo)));
  EXPECT_EQ(w.a.completions().size(), std::size(kTo));
}

TEST_F(UdTest, ADestinationWithoutCreditHoldsTheQueueAndAnotherPathIsNotCharged) {
  DeviceConfig c = small_port();
  c.path_credit = {1500};
  TwoDevices d(wire::Mode::kRoce, c, QpType::kUd);
  const PathId full = *d.a.device.open_path({d.b.address});
  const PathId other = *d.a.device.open_path({wire::Address::v4(10, 0, 0, 9)});
  for (int i = 0; i < 4; ++i) d.post(d.request(WrOpcode::kSend, 0, 700, 0));
  while (d.turn()) {
  }
  EXPECT_EQ(d.sent, 2);
  EXPECT_EQ(d.a.device.path_in_flight(full).n, 1400U);
  const Qpn second = d.a.create(kNoSrq, QpType::kUd);
  d.connect(second, d.b.create(kNoSrq, QpType::kUd));
  SendWr r = d.request(WrOpcode::kSend, 0, 700, 0);
  r.ah = *d.a.device.create_ah(d.a.pd, other);
  ASSERT_TRUE(d.a.post(second, r));
  while (d.turn()) {
  }
  EXPECT_EQ(d.sent, 3);
  EXPECT_EQ(d.a.device.path_in_flight(other).n, 700U);
  ASSERT_TRUE(d.a.device.destroy_qp(d.qa)) << "while it stands in the path's line";
  d.run();
  EXPECT_EQ(d.a.device.path_in_flight(full).n, 0U);
  EXPECT_EQ(d.a.device.path_in_flight(other).n, 0U);
}

TEST_F(UdTest, DrawsFromASharedReceiveQueue) {
  const SrqId srq = *w.b.device.create_srq(w.b.pd, {16, 2, 0});
  w.qb = w.b.create(srq, QpType::kUd);
  w.connect(w.qa = w.a.create(kNoSrq, QpType::kUd), w.qb);
  ASSERT_TRUE(w.b.device.post_srq_recv(srq, w.receive(w.b, 16384, 1064, 9)));
  w.post(datagram(0));
  w.post(datagram(1));
  w.run();
  ASSERT_EQ(w.b.completions().size(), 1U);
  EXPECT_TRUE(arrived(0, 0));
  EXPECT_EQ(counted(Counter::drop_no_receive), 1U);
}

// docs/protocol/verbs.md#attributes, the rows of UD.
TEST_F(UdTest, AttributeMasksAreThoseOfUd) {
  const Qpn q = w.a.create(kNoSrq, QpType::kUd);
  QpAttr t;
  EXPECT_FALSE(w.a.step(q, t, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccess));
  EXPECT_FALSE(w.a.step(q, t, QpState::kInit, kAttrPkeyIndex | kAttrPort));
  EXPECT_TRUE(w.a.step(q, t, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrQkey));
  EXPECT_FALSE(w.a.step(q, t, QpState::kRtr, kAttrPath | kAttrMtu | kAttrDestQpn | kAttrRqPsn));
  EXPECT_TRUE(w.a.step(q, t, QpState::kRtr, 0));
  EXPECT_FALSE(w.a.step(q, t, QpState::kRts, 0));
  EXPECT_TRUE(w.a.step(q, t, QpState::kRts, kAttrSqPsn));
  EXPECT_TRUE(w.a.step(q, t, QpState::kRts, kAttrQkey));
  EXPECT_TRUE(w.a.step(q, t, QpState::kSqd, kAttrSqdNotify));
  EXPECT_TRUE(w.a.step(q, t, QpState::kRts, kAttrQkey));
  EXPECT_TRUE(w.a.step(q, t, QpState::kReset, 0));
}

TEST_F(UdTest, HostilePackets) {
  Prng random(1147);
  receives(16, 300);
  std::uint64_t delivered = 0;
  for (int i = 0; i < 100'000; ++i) {
    Side::Frame f;
    wire::Header& h = f.packet.header;
    h.opcode = static_cast<std::uint8_t>(random.below(8) == 0 ? random.below(256) : 0x64 + random.below(2));
    h.psn = {static_cast<std::uint32_t>(random.next()) & kPsnMask};
    h.dest_qp = w.qb;
    h.pkey = random.below(20) == 0 ? 0x1234 : 0xFFFF;
    h.mode = static_cast<wire::Mode>(random.below(10) == 0 ? random.below(3) : 0);
    h.set_deth(random.below(4) == 0 ? static_cast<std::uint32_t>(random.next()) : TwoDevices::kQkey,
               {static_cast<std::uint32_t>(random.next()) & kPsnMask});
    f.packet.payload =
        static_cast<std::uint32_t>(random.below(4) == 0 ? random.below(5000) : random.below(300));
    f.payload.resize(f.packet.payload, 0xEE);
    f.packet.source = wire::Address::v4(10, 0, static_cast<std::uint8_t>(random.below(256)), 9);
    w.deliver(w.b, f);
    if (i % 16 != 0) continue;
    for (const Completion& c : w.b.completions()) {
      ++delivered;
      ASSERT_EQ(c.status, WcStatus::kSuccess);
      ASSERT_LE(c.byte_len, 300U);
      ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 16384, 300, 1)));
    }
  }
  EXPECT_GT(delivered, 10'000U);
  EXPECT_EQ(state(w.b, w.qb), QpState::kRts);
  EXPECT_EQ(w.b.device.peek_control(), kNoQpn);
  for (const Counter c : {Counter::drop_qkey, Counter::drop_too_long, Counter::drop_refused,
                          Counter::drop_opcode, Counter::drop_pkey})
    EXPECT_GT(counted(c), 0U) << kCounterInfo[static_cast<std::size_t>(c)].name;
}

}  // namespace
}  // namespace weft
