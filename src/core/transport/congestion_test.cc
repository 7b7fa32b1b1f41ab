// What the wires of two Devices show of congestion control: who is told of a mark, how often, and what
// pacing and windows do to a queue pair's turns.
#include "core/transport/congestion.h"

#include <gtest/gtest.h>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

std::uint8_t row(const char* name) { return *find_controller(name); }

struct Marked : TwoDevices {
  explicit Marked(wire::Mode m, const char* controller, const DeviceConfig& c = {})
      : TwoDevices(m, with(c, controller)) {}
  static DeviceConfig with(DeviceConfig c, const char* controller) {
    c.controller = row(controller);
    return c;
  }
  // Of `a` while so many turns pass.
  std::uint32_t least_window(int turns) {
    const QueuePair& q = *a.device.engine().find(qa);
    std::uint32_t least = q.window;
    for (int i = 0; i < turns; ++i) {
      turn();
      least = std::min(least, q.window);
    }
    return least;
  }
  std::uint64_t at_a(Counter c) const { return a.device.counters().get(c); }
  std::uint64_t at_b(Counter c) const { return b.device.counters().get(c); }
};

class CongestionTest : public ::testing::TestWithParam<wire::Mode> {};

// 16 packets, all marked, within 40 us: one notification, for the next is due 50 us after the first. Each
// mark is echoed once; in roce only packets that ask for an ACK bring one, so what came before shares it.
TEST_P(CongestionTest, MarksAreEchoedAndNotifiedOncePerInterval) {
  Marked w(GetParam(), "dcqcn");
  w.mark_all = true;
  w.post(w.request(WrOpcode::kWrite, 0, 256 * 16, 0));
  w.run();
  EXPECT_EQ(w.at_b(Counter::rx_marked), 16U);
  EXPECT_EQ(w.at_b(Counter::tx_cnp), 1U);
  EXPECT_EQ(w.at_a(Counter::rx_cnp), 1U);
  EXPECT_EQ(w.at_a(Counter::rx_echo), 16U);
  EXPECT_EQ(w.a.completions().size(), 1U);
}

TEST_P(CongestionTest, NotificationsKeepComingWhileMarksDo) {
  Marked w(GetParam(), "dcqcn");
  w.mark_all = true;
  const Time began = w.now;
  for (int i = 0; i < 200; ++i) {
    if (i % 10 == 0) w.post(w.request(WrOpcode::kWrite, 0, 256, 0));
    w.turn();
  }
  const std::int64_t most = 1 + (w.now - began).ps / microseconds(50).ps;
  EXPECT_GE(w.at_a(Counter::rx_cnp), 3U);
  EXPECT_LE(w.at_a(Counter::rx_cnp), static_cast<std::uint64_t>(most));
}

TEST_P(CongestionTest, NoNotificationWithoutAMarkAndNoneWhenSwitchedOff) {
  Marked clean(GetParam(), "dcqcn");
  clean.post(clean.request(WrOpcode::kWrite, 0, 4096, 0));
  clean.run();
  EXPECT_EQ(clean.at_b(Counter::tx_cnp), 0U);
  EXPECT_EQ(clean.at_a(Counter::rx_echo), 0U);
  DeviceConfig c;
  c.send_cnp = false;
  Marked off(GetParam(), "dcqcn", c);
  off.mark_all = true;
  off.post(off.request(WrOpcode::kWrite, 0, 4096, 0));
  off.run();
  EXPECT_EQ(off.at_b(Counter::tx_cnp), 0U);
}

// After the first CNP the rate is half of 1 Gb/s: a packet of 256 bytes and headers takes some 5 us, and no
// turn is spent on waiting.
TEST_P(CongestionTest, APacedQueuePairSendsAtItsRate) {
  DeviceConfig c;
  c.line_rate = gigabits(1);
  Marked w(GetParam(), "dcqcn", c);
  w.mark_all = true;
  w.post(w.request(WrOpcode::kWrite, 0, 256, 0));
  for (int i = 0; i < 5; ++i) w.turn();  // not run(): time-outs would pass, and the rate come back
  ASSERT_EQ(w.at_a(Counter::rx_cnp), 1U);
  w.mark_all = false;
  w.a.completions();
  QueuePair& q = *w.a.device.engine().find(w.qa);
  const Rate rate = controllers()[q.controller_row]->permit(q.controller, w.now).rate;
  ASSERT_GT(rate.bps, 0U);
  ASSERT_LE(rate, megabits(760));
  const std::uint64_t turns = w.at_a(Counter::paced);
  const Time began = w.now;
  w.post(w.request(WrOpcode::kWrite, 0, 256 * 12, 0));
  w.run();
  EXPECT_EQ(w.a.completions().size(), 1U);
  const Duration least = gigabits(1).time_for(Bytes{11 * 256});
  EXPECT_GT(w.now - began, least);
  EXPECT_GE(w.at_a(Counter::paced) - turns, 10U);
  EXPECT_LE(w.at_a(Counter::paced) - turns, 13U);
  EXPECT_TRUE(w.a.device.engine().pacing.empty());
  EXPECT_TRUE(w.a.device.engine().ready_queue.empty());
}

// A window bounds what is in flight; in roce every packet then asks for an ACK.
TEST_P(CongestionTest, AWindowBoundsWhatIsInFlight) {
  DeviceConfig c;
  c.bdp_cap = 4;
  c.ack_every = 64;
  Marked w(GetParam(), "dctcp", c);
  w.post(w.request(WrOpcode::kWrite, 0, 256 * 32, 0));
  const QueuePair& q = *w.a.device.engine().find(w.qa);
  for (int i = 0; i < 100; ++i) {
    w.turn();
    ASSERT_LE(q.requests_out.in_flight(), 4U);
  }
  w.run();
  EXPECT_EQ(w.a.completions().size(), 1U);
  EXPECT_EQ(w.at_a(Counter::tx_retransmitted), 0U);
}

// A READ responder is a sender: the marks of its packets, told by READ ACKs or CNPs, slow it down.
TEST_P(CongestionTest, AReadResponderSlowsDown) {
  Marked w(GetParam(), "dcqcn");
  w.mark_all = true;
  w.post(w.request(WrOpcode::kRead, 0, 256 * 16, 0));
  w.run();
  EXPECT_GE(w.at_a(Counter::tx_cnp), 1U);
  EXPECT_EQ(w.at_b(Counter::rx_cnp), w.at_a(Counter::tx_cnp));
  EXPECT_EQ(w.at_b(Counter::rx_echo), GetParam() == wire::Mode::kRoce ? 0U : 16U);
  EXPECT_NE(w.b.device.engine().find(w.qb)->next_send, Time{});
}

// In roce nobody acknowledges READ responses.
TEST(Congestion, AReadResponderMeasuresItsRoundTrip) {
  Marked w(wire::Mode::kIrn, "timely");
  QueuePair& q = *w.b.device.engine().find(w.qb);
  const ControllerState before = q.controller;
  w.post(w.request(WrOpcode::kRead, 0, 256 * 16, 0));
  w.run();
  EXPECT_NE(std::memcmp(before.bytes, q.controller.bytes, sizeof before.bytes), 0);
}

// Once per recovery, not once per NACK: aimd halves its window for each.
TEST_P(CongestionTest, ALossIsToldOncePerRecovery) {
  Marked w(GetParam(), "aimd");
  w.lose_packet = 7;  // data in either mode
  w.post(w.request(WrOpcode::kWrite, 0, 256 * 30, 0));
  const std::uint32_t full = w.a.device.engine().find(w.qa)->window;
  const std::uint32_t least = w.least_window(60);
  w.run();
  EXPECT_EQ(least, full / 2);
  EXPECT_EQ(w.a.completions().size(), 1U);
}

// NACKs that are only counted, until as many came as recovery takes, tell of reordering as well as of a loss.
TEST_P(CongestionTest, NacksBelowTheThresholdTellOfNoLoss) {
  DeviceConfig c;
  c.nack_threshold = 3;
  Marked w(GetParam(), "aimd", c);
  w.lose_packet = 7;
  w.post(w.request(WrOpcode::kWrite, 0, 256 * 30, 0));
  const std::uint32_t full = w.a.device.engine().find(w.qa)->window;
  const std::uint32_t least = w.least_window(60);
  EXPECT_EQ(least, full / 2);
}

// What is refused was not lost, and neither was what came behind it: its NACKs begin no recovery.
TEST_P(CongestionTest, ARefusalIsNoLoss) {
  Hand w(GetParam(), Marked::with({}, "aimd"));
  w.post(w.request(WrOpcode::kSend, 0, 256, 0));
  w.post(w.request(WrOpcode::kWrite, 0, 256 * 30, 0));
  const QueuePair& q = *w.a.device.engine().find(w.qa);
  const std::uint32_t full = q.window;
  const Frames sent = w.from(w.a);
  ASSERT_EQ(sent.size(), 31U);
  w.to(w.b, sent);
  w.to(w.a, w.from(w.b));
  const auto at_a = [&](Counter c) { return w.a.device.counters().get(c); };
  ASSERT_EQ(at_a(Counter::nak_rnr), 1U);
  EXPECT_EQ(at_a(Counter::nak_sequence), GetParam() == wire::Mode::kRoce ? 0U : 30U);
  EXPECT_EQ(q.window, full);
  EXPECT_FALSE(q.requests_out.recovering());
  ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 0, 256, 7)));
  w.play();
  EXPECT_EQ(w.a.completions().size(), 2U);
  EXPECT_EQ(q.window, full);
}

// roce: the mark of a packet that brings no ACK of its own goes into the next one: of a READ's request, of
// what came ahead of a gap, of a copy that asks for nothing.
TEST(Congestion, AMarkWithoutAnAckWaitsForTheNextOne) {
  for (const int which : {0, 1, 2}) {
    Hand w(wire::Mode::kRoce, Marked::with({}, "dcqcn"));
    w.post(w.request(WrOpcode::kWrite, 0, 256 * 3, 0));
    Frames sent = w.from(w.a);
    ASSERT_EQ(sent.size(), 3U);
    Side::Frame& marked = sent[which == 0 ? 0 : 1];
    if (which == 0) {  // a copy of the first, after it
      w.to(w.b, {sent[0]});
    }
    if (which == 2) {
      w.to(w.b, sent);
      w.to(w.a, w.from(w.b));
      w.post(w.request(WrOpcode::kRead, 0, 256, 0));
      sent = w.from(w.a);
    }
    Side::Frame first = which == 2 ? sent[0] : marked;
    first.packet.tos = wire::kEcnCe;
    w.to(w.b, {first});
    if (which == 0) sent.erase(sent.begin());
    if (which == 2) sent.clear();
    w.to(w.b, sent);
    w.to(w.a, w.from(w.b));
    if (which == 2) {
      w.post(w.request(WrOpcode::kWrite, 0, 256, 0));
      w.play();
    }
    EXPECT_EQ(w.a.device.counters().get(Counter::rx_echo), 1U) << which;
  }
}

// Failing, resetting or destroying a queue pair that waits for its rate leaves nothing behind.
TEST_P(CongestionTest, APacedQueuePairMayGoAtAnyTime) {
  for (const bool destroy : {false, true}) {
    DeviceConfig c;
    c.line_rate = gigabits(1);
    Marked w(GetParam(), "dcqcn", c);
    w.mark_all = true;
    w.post(w.request(WrOpcode::kWrite, 0, 256, 0));
    for (int i = 0; i < 5; ++i) w.turn();
    w.post(w.request(WrOpcode::kWrite, 0, 256 * 12, 0));
    w.turn();
    Engine& e = w.a.device.engine();
    ASSERT_FALSE(e.pacing.empty());
    if (destroy) {
      ASSERT_TRUE(w.a.device.destroy_qp(w.qa));
    } else {
      QpAttr t;
      t.state = QpState::kReset;
      ASSERT_TRUE(w.a.device.modify_qp(w.qa, t, kAttrState, w.now));
      EXPECT_FALSE(e.find(w.qa)->has(kQueued));
    }
    EXPECT_TRUE(e.pacing.empty());
    EXPECT_EQ(w.a.device.pick(w.now.after(seconds(1))), kNoQpn);
  }
}

// Told of congestion all the time, it sends at 100 Mb/s: a packet takes 26 us, and the message longer than
// the time-out of 1.05 ms. The ACK that keeps it from running out must be asked for before the last packet.
TEST(Congestion, ASlowQueuePairAsksForAnAckInTime) {
  DeviceConfig c;
  c.line_rate = megabits(200);
  c.ack_every = 1000;
  Marked w(wire::Mode::kRoce, "dcqcn", c);
  w.mark_all = true;
  w.post(w.request(WrOpcode::kWrite, 0, 256 * 200, 0));
  w.run();
  EXPECT_GT(w.now - Time{}, milliseconds(4));
  EXPECT_EQ(w.a.statuses(), std::vector<WcStatus>{WcStatus::kSuccess});
  EXPECT_EQ(w.at_a(Counter::tx_retransmitted), 0U);
  EXPECT_LE(w.at_b(Counter::tx_control) - w.at_b(Counter::tx_cnp), 20U);  // and no more often than it must
}

// A packet takes several time-outs at this rate, and requests go between: the answer leaves late, but
// as often as it would without a rate, before the responder falls silent.
TEST(Congestion, AnswersThatWaitForTheirRateAreNotUnanswered) {
  DeviceConfig c;
  c.line_rate = megabits(200);
  c.rto_low = c.rto_high = microseconds(3);
  Marked w(wire::Mode::kIrn, "dcqcn", c);
  w.mark_all = true;
  w.post(w.request(WrOpcode::kRead, 0, 256, 0));
  for (int i = 0; i < 4; ++i) w.turn();  // after this b has a rate
  ASSERT_EQ(w.at_b(Counter::rx_cnp), 1U);
  w.post(w.request(WrOpcode::kRead, 0, 256, 0));
  for (const Side::Frame& f : w.intercept(w.a)) w.deliver(w.b, f);
  SendWr other = w.request(WrOpcode::kWrite, 0, 2048, 0);
  const Sge from{Side::kBase, 2048, w.b.mr.lkey};
  other.sges = {&from, 1};
  other.rkey = w.a.mr.rkey;
  int answers = 0;  // none of them gets through, nor do the requests
  for (Time end = w.now + milliseconds(1); w.now < end; w.now = std::max(w.now, w.b.device.next_deadline())) {
    w.b.device.on_timer(w.now);
    for (const Side::Frame& f : w.intercept(w.b)) {
      if (f.packet.header.opcode == wire::kReadResponseOnly) ++answers;
    }
    if (answers == 1 && w.at_b(Counter::tx_packets) == 2) {
      ASSERT_TRUE(w.b.post(w.qb, other).has_value());
    }
  }
  EXPECT_EQ(answers, 5);
}

// The attribute names the row; without it the device's configuration does; what does not exist is refused.
TEST(Congestion, TheControllerIsAnAttribute) {
  DeviceConfig c;
  c.controller = row("aimd");
  TwoDevices w(wire::Mode::kIrn, c);
  EXPECT_EQ(w.a.device.engine().find(w.qa)->controller_row, row("aimd"));
  const Qpn other = w.a.create();
  QpAttr t;
  const auto [init, rtr, rts] = ladder(QpType::kRc);
  ASSERT_TRUE(w.a.step(other, t, init));
  t.path = *w.a.device.open_path({w.b.address});
  t.controller = static_cast<std::uint8_t>(controllers().size());
  EXPECT_EQ(w.a.step(other, t, rtr).error(), Errc::kUnsupported);
  t.controller = row("timely");
  ASSERT_TRUE(w.a.step(other, t, rtr));
  EXPECT_EQ(w.a.device.engine().find(other)->controller_row, row("timely"));
}

INSTANTIATE_TEST_SUITE_P(Modes, CongestionTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
