// Path credit: who waits for it, who goes first, and who needs none (sched/paths.h).
#include <gtest/gtest.h>

#include <algorithm>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

// The credit of one packet, which its own requests want again and again, and the answers to the peer's READ:
// whoever found none and stood in the path's line goes first when it is called.
TEST(PathCredit, RequestsDoNotUseUpTheCreditOfAnswers) {
  DeviceConfig narrow;
  narrow.path_credit = Bytes{256};
  for (const wire::Mode mode : {wire::Mode::kIrn, wire::Mode::kSrnic}) {
    for (const int vain : {0, 1}) {
      Hand w(mode, narrow);
      const Sge all{Side::kBase, 256 * 60, w.b.mr.lkey};
      SendWr write;
      write.opcode = WrOpcode::kWrite;
      write.flags = kSendSignaled;
      write.sges = {&all, 1};
      write.remote_address = Side::kBase;
      write.rkey = w.a.mr.rkey;
      ASSERT_TRUE(w.b.device.post_send(w.qb, write));
      Frames sent = w.from(w.b);
      for (int i = 0; i < vain; ++i) EXPECT_TRUE(w.b.device.transmit(w.qb, w.now, {}).empty());
      w.post(w.request(WrOpcode::kRead, 0, 256 * 4, 0));
      for (int i = 0; i < 12; ++i) {  // eight would do: every second packet answers the READ
        w.to(w.a, sent);
        w.to(w.b, w.from(w.a));
        sent = w.from(w.b);
      }
      EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
      EXPECT_EQ(statuses(w.b), Statuses{});  // the WRITE goes on
    }
  }
}

// A WRITE of every 8 bytes would always find some credit, and an answer of 256 never enough.
TEST(PathCredit, SmallRequestsDoNotUseUpTheCreditOfALargeAnswer) {
  DeviceConfig narrow;
  narrow.path_credit = Bytes{700};
  Hand w(wire::Mode::kIrn, narrow);
  const Sge few{Side::kBase, 8, w.b.mr.lkey};
  SendWr write;
  write.opcode = WrOpcode::kWrite;
  write.sges = {&few, 1};
  write.remote_address = Side::kBase;
  write.rkey = w.a.mr.rkey;
  const auto refill = [&] {
    while (w.b.device.post_send(w.qb, write)) {
    }
  };
  refill();
  std::deque<Side::Frame> under_way;
  const auto leave = [&] {
    for (Side::Frame& f : w.from(w.b)) under_way.push_back(std::move(f));
  };
  leave();
  w.post(w.request(WrOpcode::kRead, 0, 256, 0));
  w.to(w.b, w.from(w.a));
  bool answered = false;
  for (int i = 0; i < 200 && !answered; ++i) {
    leave();
    ASSERT_FALSE(under_way.empty());
    answered = under_way.front().packet.header.opcode == wire::kReadResponseOnly;
    w.to(w.a, {under_way.front()});
    under_way.pop_front();
    w.to(w.b, w.from(w.a));
    refill();
  }
  EXPECT_TRUE(answered);
}

// Its READs need other credit than its answers. They must not cost it its place in the path's line.
TEST(PathCredit, WhoWaitsForCreditToAnswerKeepsItsPlace) {
  DeviceConfig narrow;
  narrow.path_credit = Bytes{560};
  narrow.path_overhead = Bytes{0};
  Hand w(wire::Mode::kIrn, narrow);
  w.mode_of_b = wire::Mode::kRoce;
  w.qa = w.a.create();
  w.qb = w.b.create();
  w.connect(w.qa, w.qb);
  w.mode_of_b = wire::Mode::kIrn;
  const Qpn other = w.b.create();
  w.connect(w.a.create(), other);
  const Qpn third = w.b.create();
  w.connect(w.a.create(), third);
  const auto post = [&](Qpn from, WrOpcode opcode, std::uint32_t length) {
    const Sge all{Side::kBase, length, w.b.mr.lkey};
    SendWr wr;
    wr.opcode = opcode;
    wr.flags = kSendSignaled;
    wr.sges = {&all, 1};
    wr.remote_address = Side::kBase;
    wr.rkey = w.a.mr.rkey;
    ASSERT_TRUE(w.b.device.post_send(from, wr));
  };
  post(other, WrOpcode::kWrite, 8);
  post(other, WrOpcode::kWrite, 512);
  const Frames under_way = w.from(w.b);
  ASSERT_EQ(under_way.size(), 3U);
  w.post(w.request(WrOpcode::kRead, 0, 256, 0));
  w.to(w.b, w.from(w.a));
  w.to(w.a, w.from(w.b));  // the READ's ACK; its answer waits
  post(third, WrOpcode::kWrite, 256);
  for (int i = 0; i < 3; ++i) post(w.qb, WrOpcode::kRead, 256);
  w.to(w.a, {under_way[0]});
  w.to(w.b, w.from(w.a));  // 8 bytes of credit are free, and 48 were
  EXPECT_TRUE(only(w.from(w.b), wire::kWriteOnly).empty());
  w.to(w.a, {under_way[1]});
  w.to(w.b, w.from(w.a));
  const Frames next = w.from(w.b);
  EXPECT_EQ(only(next, wire::kReadResponseOnly).size(), 1U);
  EXPECT_EQ(only(next, wire::kWriteOnly).size(), 0U);
}

TEST(PathCredit, NobodyOvertakesThePathsLine) {
  DeviceConfig narrow;
  narrow.path_credit = Bytes{2500};
  Hand w(wire::Mode::kIrn, narrow);
  w.post(w.request(WrOpcode::kWrite, 0, 40'000, 0));
  w.to(w.b, w.from(w.a));  // as much as the credit admits
  const Qpn late = w.a.create();
  const Qpn target = w.b.create();
  w.connect(late, target);
  ASSERT_TRUE(w.a.device.post_send(late, w.request(WrOpcode::kWrite, 0, 256, 0)));
  EXPECT_TRUE(w.from(w.a).empty());
  // Every ACK makes room for one packet, and the first queue pair would have one.
  bool had_its_turn = false;
  for (const Side::Frame& ack : w.from(w.b)) {
    w.to(w.a, {ack});
    for (const Side::Frame& sent : w.from(w.a))
      had_its_turn = had_its_turn || sent.packet.header.dest_qp == target;
  }
  EXPECT_TRUE(had_its_turn);
}

// Others may use up the credit before the next turn; what is in flight must then come back without a
// time-out.
TEST(PathCredit, WhoeverUsesPathCreditAsksForAnAck) {
  DeviceConfig narrow;
  narrow.path_credit = Bytes{2500};
  narrow.ack_every = 64;
  narrow.burst_packets = 2;
  Hand w(wire::Mode::kRoce, narrow);
  w.post(w.request(WrOpcode::kWrite, 0, 20'000, 0));
  const wire::Burst first = w.a.device.poll_transmit(w.now, {});
  ASSERT_EQ(first.packets.size(), 2U);
  EXPECT_EQ(first.packets[1].header.bits & wire::kAckReq, wire::kAckReq);
}

TEST(PathCredit, AResponderWithoutARequesterKeepsNoCredit) {
  DeviceConfig narrow;
  narrow.path_credit = Bytes{2000};
  Hand w(wire::Mode::kIrn, narrow);
  w.post(w.request(WrOpcode::kRead, 0, 30'000, 0));
  w.to(w.b, w.from(w.a));
  ASSERT_TRUE(w.a.device.destroy_qp(w.qa));
  w.play();
  EXPECT_EQ(w.b.device.path_in_flight(*w.b.device.open_path({w.a.address})).n, 0U);
  EXPECT_EQ(w.b.device.loss_blocks_in_use(), 0U);
}

// Credit is for what was never sent: the whole of it may be held by what is behind the packet that was lost.
TEST(PathCredit, WhatIsSentAgainNeedsNoCredit) {
  DeviceConfig narrow;
  narrow.path_credit = Bytes{2500};
  Hand w(wire::Mode::kRoce, narrow);
  w.post(w.request(WrOpcode::kWrite, 0, 40'000, 0));
  auto frames = w.from(w.a);
  ASSERT_GT(frames.size(), 2U);
  EXPECT_TRUE(w.from(w.a).empty());  // the credit is used up
  const WirePsn lost = frames[0].packet.header.psn;
  frames.erase(frames.begin());
  w.to(w.b, frames);
  w.to(w.a, w.from(w.b));  // NAK
  const auto again = w.from(w.a);
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again[0].packet.header.psn, lost);
}

// The same of READs in roce: others took the credit that was free when it went back.
TEST(PathCredit, WhatIsReadAgainNeedsNoCredit) {
  DeviceConfig narrow;
  narrow.path_credit = Bytes{600};
  Hand w(wire::Mode::kRoce, narrow);
  const Qpn second = w.a.create();
  const Qpn target = w.b.create();
  w.connect(second, target);
  w.post(w.request(WrOpcode::kRead, 0, 512, 0));
  ASSERT_EQ(w.from(w.a).size(), 1U);  // lost
  ASSERT_TRUE(w.a.device.post_send(second, w.request(WrOpcode::kRead, 512, 512, 0)));
  const Frames sent = w.from_in_time(w.a);
  const auto again = [&](const Frames& frames) {
    return std::any_of(frames.begin(), frames.end(),
                       [&](const Side::Frame& f) { return f.packet.header.dest_qp == w.qb; });
  };
  EXPECT_TRUE(again(sent));
  w.a.device.check_invariants();
}

// The first in the line was refused for want of a receive. It has no use for credit now, and the second has.
TEST(PathCredit, WhoFoundNoReceiveDoesNotHoldUpTheLine) {
  DeviceConfig narrow;
  narrow.path_credit = Bytes{700};
  Hand w(wire::Mode::kIrn, narrow);
  const Qpn second = w.a.create();
  w.connect(second, w.b.create());
  w.post(w.request(WrOpcode::kSend, 0, 256 * 4, 0));
  const Frames begun = w.from(w.a);
  ASSERT_EQ(begun.size(), 2U);
  ASSERT_TRUE(w.a.device.post_send(second, w.request(WrOpcode::kWrite, 0, 8, 0)));
  EXPECT_TRUE(w.from(w.a).empty());
  w.to(w.b, begun);
  w.to(w.a, w.from(w.b));
  EXPECT_EQ(only(w.from(w.a), wire::kWriteOnly).size(), 1U);
}

}  // namespace
}  // namespace weft
