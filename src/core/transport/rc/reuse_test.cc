// A queue pair's lives: what the end of one leaves to the next (docs/protocol/verbs.md#states). A number that
// is used again has a new peer, new sequence numbers and perhaps another mode; nothing of the old ones may
// reach them.
#include <gtest/gtest.h>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

class ReuseTest : public ::testing::TestWithParam<wire::Mode> {};

TEST(Reuse, AQueuePairMayEndBeforeThereIsAnyPath) {
  for (const QpState end : {QpState::kErr, QpState::kReset}) {
    Side s(1, DeviceConfig{});
    const Qpn q = s.create();
    ASSERT_TRUE(s.step(q, {}, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccess));
    ASSERT_TRUE(s.device.post_recv(q, {1, {}}));
    EXPECT_TRUE(s.step(q, {}, end, 0));
    EXPECT_EQ(s.statuses(), end == QpState::kErr ? Statuses{WcStatus::kFlushed} : Statuses{});
    EXPECT_TRUE(s.step(q, {}, QpState::kReset, 0));
    EXPECT_TRUE(s.device.destroy_qp(q));
  }
}

// An ACK of the former life would acknowledge numbers of the new one, and an error NAK would end it.
TEST_P(ReuseTest, WhatWasNotSentBeforeAResetIsNotSentAfterIt) {
  Hand w(GetParam());
  w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
  w.to(w.b, w.from(w.a));  // its ACK waits for its turn
  ASSERT_TRUE(w.b.step(w.qb, {}, QpState::kReset, 0));
  const Qpn other = w.a.create();
  w.connect(other, w.qb);
  EXPECT_TRUE(w.from(w.b).empty());
  ASSERT_TRUE(w.a.device.post_send(other, w.request(WrOpcode::kWrite, 0, 8, 0)));
  w.to(w.b, w.from(w.a));
  EXPECT_EQ(w.from(w.b).size(), 1U);
}

// Nor do its completions stay, of sends and of receives: a program that connects anew would take them for
// those of its new life. Another queue pair that reports to the same queue keeps its own.
TEST_P(ReuseTest, AResetForgetsCompletionsThatNobodyPolled) {
  Hand w(GetParam());
  const Qpn other_a = w.a.create();
  const Qpn other_b = w.b.create();
  w.connect(other_a, other_b);
  ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 0, 64, 1)));
  ASSERT_TRUE(w.b.device.post_recv(other_b, w.receive(w.b, 64, 64, 2)));
  w.post(w.request(WrOpcode::kSend, 0, 8, 0));
  ASSERT_TRUE(w.a.device.post_send(other_a, w.request(WrOpcode::kSend, 0, 8, 0)));
  w.play();
  ASSERT_TRUE(w.a.step(w.qa, {}, QpState::kReset, 0));
  ASSERT_TRUE(w.b.step(w.qb, {}, QpState::kReset, 0));
  for (const auto& [side, kept] : {std::pair{&w.a, other_a}, std::pair{&w.b, other_b}}) {
    const std::vector<Completion> left = side->completions();
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left[0].qpn, kept);
  }
}

TEST_P(ReuseTest, WhatWasNotSentBeforeADestructionIsNotSentAfterIt) {
  DeviceConfig one;
  one.max_qp = 1;  // the number comes back at once
  Hand w(GetParam(), one);
  w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
  w.to(w.b, w.from(w.a));
  ASSERT_TRUE(w.b.device.destroy_qp(w.qb));
  ASSERT_EQ(w.b.create(), w.qb);
  ASSERT_TRUE(w.a.step(w.qa, {}, QpState::kReset, 0));
  w.connect(w.qa, w.qb);
  EXPECT_TRUE(w.from(w.b).empty());
}

// The first accepted request fixes the mode (docs/protocol/modes.md#pinning), not a straggler of the former
// life that is answered by a NAK or dropped.
TEST_P(ReuseTest, ARequestThatIsNotAcceptedFixesNoMode) {
  const wire::Mode other = GetParam() == wire::Mode::kRoce ? wire::Mode::kIrn : wire::Mode::kRoce;
  Hand w(GetParam());
  w.post(w.request(WrOpcode::kSend, 0, 8, 0));
  const Frames sent = w.from(w.a);
  Frames far_ahead = sent;
  far_ahead[0].packet.header.mode = other;
  far_ahead[0].packet.header.psn.v = (sent[0].packet.header.psn.v + 100'000) & kPsnMask;
  Frames without_receive = sent;
  without_receive[0].packet.header.mode = other;
  w.to(w.b, far_ahead);
  w.to(w.b, without_receive);
  w.from(w.b);
  ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 0, 64, 1)));
  w.to(w.b, sent);
  EXPECT_EQ(statuses(w.b), Statuses{WcStatus::kSuccess});
  w.to(w.b, without_receive);  // a duplicate now, but in the wrong mode
  EXPECT_EQ(w.b.device.counters().get(Counter::drop_mode), 1U);
  w.play();
  EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
}

// A NIC may fetch between pick and transmit, and the queue pair be gone by then.
TEST(Reuse, APickedQueuePairThatIsDestroyedLeavesItsSuccessorFreeToBeQueued) {
  for (const bool put_back : {false, true}) {
    DeviceConfig one;
    one.max_qp = 1;
    Hand w(wire::Mode::kIrn, one);
    w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
    ASSERT_EQ(w.a.device.pick(w.now), w.qa);
    ASSERT_TRUE(w.a.device.destroy_qp(w.qa));
    if (put_back) {
      w.a.device.put_back(w.qa);
    } else {
      EXPECT_TRUE(w.a.device.transmit(w.qa, w.now, {}).empty());
    }
    ASSERT_EQ(w.a.create(), w.qa);
    ASSERT_TRUE(w.b.step(w.qb, {}, QpState::kReset, 0));
    w.connect(w.qa, w.qb);
    w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
    w.play();
    EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ReuseTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
