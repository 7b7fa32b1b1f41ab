// Repairs that go by a narrow way: the test carries every packet by hand, so that it decides what comes late,
// what is lost, and what the two ends believe of each other meanwhile. Each scene was a finding of the swarm.
#include <gtest/gtest.h>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

// --- irn: what a response says of its request ---

TEST(RepairTest, AResponseAcknowledgesItsRequestEvenIfItCannotBeKept) {
  DeviceConfig no_bitmaps;
  no_bitmaps.loss_blocks = 0;
  Hand w(wire::Mode::kIrn, no_bitmaps);
  w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
  w.post(w.request(WrOpcode::kRead, 0, 600, 0));
  w.to(w.b, w.from(w.a));
  // The ACKs and the first response are lost; the last one is ahead of it and finds no bitmap.
  w.to(w.a, only(w.from(w.b), wire::kReadResponseLast));
  EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
  w.play();
  EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
}

TEST(RepairTest, AReadThatFailsHereFailsBehindWhatCameBeforeIt) {
  for (const wire::Mode mode : {wire::Mode::kRoce, wire::Mode::kIrn}) {
    Hand w(mode);
    w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
    SendWr bad = w.request(WrOpcode::kRead, 0, 8, 0);
    const Sge nowhere{Side::kBase, 8, {0xBAD}};
    bad.sges = {&nowhere, 1};
    w.post(bad);
    w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
    w.to(w.b, w.from(w.a));
    w.to(w.a, only(w.from(w.b), wire::kReadResponseOnly));
    EXPECT_EQ(statuses(w.a), (Statuses{WcStatus::kSuccess, WcStatus::kLocalProtection, WcStatus::kFlushed}));
  }
}

TEST(RepairTest, AReadThatFailsHereWaitsForAnEarlierOnesAnswer) {
  Hand w(wire::Mode::kIrn);
  w.post(w.request(WrOpcode::kRead, 0, 8, 0));
  SendWr bad = w.request(WrOpcode::kRead, 8, 8, 0);
  const Sge nowhere{Side::kBase, 8, {0xBAD}};
  bad.sges = {&nowhere, 1};
  w.post(bad);
  w.to(w.b, w.from(w.a));
  const Frames answers = only(w.from(w.b), wire::kReadResponseOnly);
  ASSERT_EQ(answers.size(), 2U);
  w.to(w.a, {answers[1]});
  EXPECT_EQ(statuses(w.a), Statuses{});
  w.to(w.a, {answers[0]});
  EXPECT_EQ(statuses(w.a), (Statuses{WcStatus::kSuccess, WcStatus::kLocalProtection}));
}

TEST(RepairTest, ARefusalOfAReadNamesTheReadItMeans) {
  Hand w(wire::Mode::kIrn);
  const MrInfo other = w.b.region(4096, kLocalWrite | kRemoteRead);
  w.post(w.request(WrOpcode::kRead, 0, 8, 0));
  SendWr refused = w.request(WrOpcode::kRead, 8, 8, 0);
  refused.rkey = other.rkey;
  w.post(refused);
  const Frames asked = w.from(w.a);
  ASSERT_EQ(asked.size(), 2U);
  w.to(w.b, asked);
  ASSERT_TRUE(w.b.device.deregister_mr(other.rkey));  // the request was in order, the answer is not
  const Frames sent = w.from(w.b);
  ASSERT_EQ(sent.back().packet.header.syndrome, wire::kSyndromeNakAccess);
  // The first answer comes last.
  for (auto f = sent.rbegin(); f != sent.rend(); ++f) w.to(w.a, {*f});
  EXPECT_EQ(statuses(w.a), (Statuses{WcStatus::kSuccess, WcStatus::kRemoteAccess}));
}

// A SEND is given up for want of a receive and waits for the READ before it to complete. Meanwhile its copy
// is taken.
TEST(RepairTest, AFailedRequestThatIsAcknowledgedAfterAllStillFails) {
  for (const wire::Mode mode : {wire::Mode::kIrn, wire::Mode::kSrnic}) {
    Hand w(mode);
    w.rnr_retry = 0;
    w.qa = w.a.create();
    w.qb = w.b.create();
    w.connect(w.qa, w.qb);
    w.post(w.request(WrOpcode::kRead, 0, 600, 0));
    w.post(w.request(WrOpcode::kSend, 0, 8, 0));
    const Frames sent = w.from(w.a);
    ASSERT_EQ(sent.size(), 2U);
    w.to(w.b, sent);
    w.to(w.a, only(w.from(w.b), wire::kAcknowledge));  // one of them says: not ready
    ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 0, 64, 7)));
    w.to(w.b, {sent[1]});
    w.play();
    EXPECT_EQ(statuses(w.a), (Statuses{WcStatus::kSuccess, WcStatus::kRnrRetryExceeded}));
    EXPECT_EQ(w.a.device.query_qp(w.qa)->state, QpState::kErr);
  }
}

// --- irn: a responder whose requester does not acknowledge ---

TEST(RepairTest, ASilencedResponderAnswersWhenItIsAskedAgain) {
  Hand w(wire::Mode::kIrn);
  w.post(w.request(WrOpcode::kRead, 0, 30'000, 0));
  const Time begin = w.now;
  // Its four time-outs are over after 5 ms; the requester fails after 8 x 16.8 ms.
  w.play([&] { return w.now - begin < milliseconds(60); });
  EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
}

// An ACK that was under way for longer than the responder had patience: it goes on as if it had come in time.
TEST(RepairTest, ALateReadAckWakesASilencedResponder) {
  for (const wire::Mode mode : {wire::Mode::kIrn, wire::Mode::kSrnic}) {
    Hand w(mode);
    w.post(w.request(WrOpcode::kRead, 0, 1024, 0));
    w.to(w.b, w.from(w.a));
    w.to(w.a, only(w.from(w.b), wire::kReadResponseFirst));  // the rest is lost
    const Frames late = w.from(w.a);
    while (w.b.device.next_deadline() != kNever) {
      w.now = w.b.device.next_deadline();
      w.b.device.on_timer(w.now);
      (void)w.from(w.b);
    }
    w.to(w.b, late);
    EXPECT_NE(w.b.device.next_deadline(), kNever);
    w.play();
    EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
  }
}

TEST(RepairTest, ANewReadWakesASilencedResponder) {
  Hand w(wire::Mode::kIrn);
  w.post(w.request(WrOpcode::kRead, 0, 8, 0));
  w.to(w.b, w.from(w.a));
  w.to(w.a, w.from(w.b));
  ASSERT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
  w.from(w.a);  // the READ ACK is lost, and so is whatever the responder sends until it gives up
  while (w.b.device.next_deadline() < w.now.after(milliseconds(100))) {
    w.now = w.b.device.next_deadline();
    w.b.device.on_timer(w.now);
    w.from(w.b);
  }
  const Time asked = w.now;
  w.post(w.request(WrOpcode::kRead, 0, 8, 0));
  w.play();
  EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
  EXPECT_EQ(w.a.device.counters().get(Counter::timeout_read), 0U) << "answered only when asked twice";
  EXPECT_LT(w.now - asked, milliseconds(1));
}

// A refusal waits for the answers before it. Those that nobody takes must not keep the responder's own user
// from getting its receives back.
TEST(RepairTest, ARefusalDoesNotWaitForARequesterThatIsGone) {
  for (const wire::Mode mode : {wire::Mode::kIrn, wire::Mode::kSrnic}) {
    Hand w(mode);
    ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 0, 8, 7)));
    ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 8, 8, 8)));
    w.post(w.request(WrOpcode::kRead, 0, 600, 0));
    w.post(w.request(WrOpcode::kSend, 0, 64, 0));  // too long
    w.to(w.b, w.from(w.a));
    EXPECT_EQ(statuses(w.b), Statuses{WcStatus::kLocalLength});
    ASSERT_TRUE(w.a.device.destroy_qp(w.qa));
    w.play();
    EXPECT_EQ(statuses(w.b), Statuses{WcStatus::kFlushed});
    EXPECT_EQ(w.b.device.query_qp(w.qb)->state, QpState::kErr);
  }
}

// Nothing behind it would be taken either, and the refusals' delay may be shorter than the queue at the
// receiver's door: whole windows would meet their own copies there.
TEST(RepairTest, WhoFoundNoReceiveAsksAgainWithOnePacket) {
  for (const wire::Mode mode : {wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic}) {
    Hand w(mode);
    w.post(w.request(WrOpcode::kSend, 0, 256 * 4, 0));
    w.to(w.b, w.from(w.a));
    w.to(w.a, w.from(w.b));
    const Frames asks = w.from_in_time(w.a);
    ASSERT_EQ(asks.size(), 1U);
    EXPECT_EQ(asks[0].packet.header.opcode, wire::kSendFirst);
    ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 0, 1024, 1)));
    w.to(w.b, asks);
    w.to(w.a, w.from(w.b));
    const Frames rest = w.from(w.a);
    EXPECT_EQ(rest.size(), 3U);
    w.to(w.b, rest);
    w.to(w.a, w.from(w.b));
    EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
  }
}

// A receiver without bitmaps refuses the first packet and NACKs those that it throws away behind it. They go
// again once: either because all that was refused does, or because they were lost.
TEST(RepairTest, WhatGoesAgainAfterARefusalIsNotRepairedBesides) {
  Hand w(wire::Mode::kIrn);
  w.post(w.request(WrOpcode::kSend, 0, 256 * 4, 0));
  const Frames sent = w.from(w.a);
  ASSERT_EQ(sent.size(), 4U);
  w.to(w.b, {sent[0]});
  const Frames refusal = w.from(w.b);
  ASSERT_EQ(refusal.size(), 1U);
  w.to(w.a, refusal);
  for (std::size_t i = 1; i < sent.size(); ++i) {
    Side::Frame nack = refusal[0];
    nack.packet.header.set_aeth(wire::kSyndromeNakSequence, 0);
    nack.packet.header.set_sack(sent[i].packet.header.psn);
    nack.packet.header.ext_flags = wire::kSackNotKept;
    w.to(w.a, {nack});
  }
  ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 0, 1024, 1)));
  const Frames asks = w.from_in_time(w.a);
  ASSERT_EQ(asks.size(), 1U);
  w.to(w.b, {asks[0]});
  w.to(w.a, w.from(w.b));
  EXPECT_EQ(w.from(w.a).size(), 3U);
}

// --- roce ---

// Where turns are rare, the packet that asks for an ACK would leave only after the time-out.
TEST(RepairTest, ASlowTransmitterAsksForAnAckInTime) {
  DeviceConfig c;
  c.ack_every = 64;
  c.burst_packets = 1;
  Hand w(wire::Mode::kRoce, c);
  w.post(w.request(WrOpcode::kWrite, 0, 256 * 60, 0));
  Frames sent;
  for (int turn = 0; turn < 8; ++turn) {  // within 0.8 ms; the time-out is 1.05 ms
    w.a.collect(w.a.device.poll_transmit(w.now, {}), sent);
    w.now = w.now.after(microseconds(100));
  }
  ASSERT_EQ(sent.size(), 8U);
  int asked = 0;
  for (const Side::Frame& f : sent) asked += (f.packet.header.bits & wire::kAckReq) != 0 ? 1 : 0;
  EXPECT_EQ((sent[5].packet.header.bits | sent[6].packet.header.bits) & wire::kAckReq, wire::kAckReq);
  EXPECT_LE(asked, 3);
}

// The requester asks again for READs whose answers are only late, then takes these and goes on: the rows that
// answer for the second time make room.
TEST(RepairTest, ARepeatedAnswerDoesNotHoldUpTheNextRead) {
  Hand w(wire::Mode::kRoce);
  for (int i = 0; i < 4; ++i) w.post(w.request(WrOpcode::kRead, 0, 600, 0));  // as many as may be outstanding
  w.to(w.b, w.from(w.a));
  const Frames late = w.from(w.b);
  w.now = w.a.device.next_deadline();
  w.a.device.on_timer(w.now);
  const Frames again = w.from(w.a);
  w.to(w.a, late);
  EXPECT_EQ(statuses(w.a), Statuses(4, WcStatus::kSuccess));
  w.post(w.request(WrOpcode::kRead, 0, 600, 0));
  const Frames next = w.from(w.a);
  w.to(w.b, again);
  w.to(w.b, next);
  w.play();
  EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
}

TEST(RepairTest, MoreReadsThanAllowedAreRefused) {
  Hand w(wire::Mode::kRoce);
  for (int i = 0; i < 5; ++i) w.post(w.request(WrOpcode::kRead, 0, 600, 0));
  Frames asked = w.from(w.a);
  ASSERT_EQ(asked.size(), 4U);
  Side::Frame fifth = asked.back();
  fifth.packet.header.psn = (expand(fifth.packet.header.psn, Seq::start({0xFFFFFE})) + 3U).wire();
  asked.push_back(fifth);
  w.to(w.b, asked);
  const Frames answers = w.from(w.b);  // the refusal leaves behind the answers
  EXPECT_EQ(answers.back().packet.header.syndrome, wire::kSyndromeNakInvalid);
  EXPECT_EQ(w.b.device.query_qp(w.qb)->state, QpState::kErr);
}

TEST(RepairTest, NoAckOvertakesAResponseWhoseMemoryIsGone) {
  Hand w(wire::Mode::kRoce);
  w.post(w.request(WrOpcode::kRead, 0, 8, 0));
  w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
  const Frames asked = w.from(w.a);
  w.to(w.b, asked);
  const wire::Burst answer = w.b.device.poll_transmit(w.now, {});
  ASSERT_EQ(answer.packets.size(), 1U);
  w.b.device.gather_failed(answer, 0, w.now);
  const Frames sent = w.from(w.b);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].packet.header.syndrome, wire::kSyndromeNakOperation);
  EXPECT_EQ(sent[0].packet.header.psn, asked[0].packet.header.psn);
  w.to(w.a, sent);
  EXPECT_EQ(statuses(w.a), (Statuses{WcStatus::kRemoteOperation, WcStatus::kFlushed}));
}

// docs/protocol/constants.md#receiver-not-ready-delays: code 12 is 0.64 ms.
TEST(RepairTest, ARequesterWaitsAsLongAsTheReceiverAsks) {
  for (const wire::Mode mode : {wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic}) {
    Hand w(mode, DeviceConfig{});
    QpAttr attr;
    attr.min_rnr_timer = 12;
    ASSERT_TRUE(w.b.device.modify_qp(w.qb, attr, kAttrMinRnrTimer, w.now).has_value());
    w.post(w.request(WrOpcode::kSend, 0, 256, 0));
    w.to(w.b, w.from(w.a));
    w.to(w.a, w.from(w.b));
    const Time refused = w.now;
    w.now = refused.after(microseconds(639));
    w.a.device.on_timer(w.now);
    EXPECT_TRUE(w.from(w.a).empty());
    w.now = refused.after(microseconds(640));
    w.a.device.on_timer(w.now);
    EXPECT_FALSE(w.from(w.a).empty());
  }
}

// Who is refused for want of a receive must not hold the credit of somebody who has one.
TEST(RepairTest, WhatWasRefusedGivesItsCreditBackWhenItsDelayIsOver) {
  for (const wire::Mode mode : {wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic}) {
    DeviceConfig narrow;
    narrow.path_credit = Bytes{2500};
    Hand w(mode, narrow);
    w.post(w.request(WrOpcode::kSend, 0, 512, 0));
    w.to(w.b, w.from(w.a));
    EXPECT_GT(w.a.device.engine().paths[0].in_flight, 0U);
    w.to(w.a, w.from(w.b));        // not ready
    for (int i = 0; i < 3; ++i) {  // the entry of its time-out may come first
      w.now = std::max(w.now, w.a.device.next_deadline());
      w.a.device.on_timer(w.now);
      if (w.a.device.is_ready(w.qa)) break;
    }
    EXPECT_EQ(w.a.device.engine().paths[0].in_flight, 0U);
    ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 4096, 1024, 1)).has_value());
    w.run();
    EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
    EXPECT_EQ(w.a.device.engine().paths[0].in_flight, 0U);
  }
}

// A READ waits for READ credit only, even if what was sent behind it has used up the other.
TEST(RepairTest, AReadGoesOutAgainThoughWhatIsBehindItHoldsTheCredit) {
  DeviceConfig narrow;
  narrow.path_credit = Bytes{2500};
  Hand w(wire::Mode::kRoce, narrow);
  w.post(w.request(WrOpcode::kSend, 0, 8, 0));
  w.post(w.request(WrOpcode::kRead, 0, 600, 0));
  w.post(w.request(WrOpcode::kWrite, 0, 20'000, 0));
  const Frames sent = w.from(w.a);
  // Another queue pair has asked for more than the credit.
  const Qpn other = w.a.create();
  w.connect(other, w.b.create());
  ASSERT_TRUE(w.a.device.post_send(other, w.request(WrOpcode::kRead, 0, 2400, 0)));
  w.to(w.b, sent);
  w.to(w.a, w.from(w.b));  // not ready: back to the SEND
  ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 0, 64, 7)));
  w.play();
  EXPECT_EQ(statuses(w.a), Statuses(4, WcStatus::kSuccess));
  EXPECT_EQ(w.a.device.counters().get(Counter::timeout_high), 0U);
}

// Nor does it wait for those in the path's line: what they wait for is in flight behind it.
TEST(RepairTest, AReadGoesOutAgainThoughOthersStandInThePathsLine) {
  DeviceConfig narrow;
  narrow.path_credit = Bytes{2500};
  Hand w(wire::Mode::kRoce, narrow);
  w.post(w.request(WrOpcode::kSend, 0, 8, 0));
  w.post(w.request(WrOpcode::kRead, 0, 600, 0));
  w.post(w.request(WrOpcode::kWrite, 0, 20'000, 0));
  const Frames sent = w.from(w.a);
  const Qpn other = w.a.create();
  w.connect(other, w.b.create());
  ASSERT_TRUE(w.a.device.post_send(other, w.request(WrOpcode::kWrite, 0, 2000, 0)));
  EXPECT_TRUE(w.from(w.a).empty());
  w.to(w.b, sent);
  w.to(w.a, w.from(w.b));  // not ready: back to the SEND
  ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 0, 64, 7)));
  w.play();
  EXPECT_EQ(statuses(w.a), Statuses(4, WcStatus::kSuccess));
  EXPECT_EQ(w.a.device.counters().get(Counter::timeout_high), 0U);
}

// What a dead connection has in flight must not stop those that share its path, even if it is much of a small
// credit.
TEST(RepairTest, ASmallRestOfCreditIsUsed) {
  DeviceConfig narrow;
  narrow.path_credit = Bytes{2500};
  Hand w(wire::Mode::kIrn, narrow);
  ASSERT_TRUE(w.b.device.destroy_qp(w.qb));
  const auto send = [&](std::uint32_t length) {
    w.post(w.request(WrOpcode::kWrite, 0, length, 0));
    const Frames sent = w.from(w.a);
    w.qa = w.a.create();
    w.qb = w.b.create();
    w.connect(w.qa, w.qb);
    return sent;
  };
  send(1024);  // to nobody
  const Frames others = send(1280);
  EXPECT_TRUE(send(512).empty());
  w.to(w.b, others);
  w.to(w.a, w.from(w.b));
  EXPECT_EQ(w.from(w.a).size(), 2U);
}

}  // namespace
}  // namespace weft
