// roce's tail probe: what a go-back-N receiver cannot report (the end of a message, an ACK or a NAK that was
// lost) is asked for after a measured time, long before the verbs time-out; it costs no retry.
#include <gtest/gtest.h>

#include "core/transport/long_path.h"

namespace weft {
namespace {

using wire::Mode;

struct Probing : ::testing::Test {
  LongPath w{Mode::kRoce, LongPath::live(), 14};  // 67 ms
  int lost = 0;

  void SetUp() override {
    w.delay = microseconds(50);
    for (int i = 0; i < 5; ++i) {
      w.writes(1, 4);
      EXPECT_EQ(w.complete(1), 1U);
    }
  }
  void lose(std::uint8_t opcode, int count, int skip = 0) {
    lost = -skip;
    w.loses = [this, opcode, count](const wire::Header& h) {
      return h.opcode == opcode && lost++ < count && lost > 0;
    };
  }
  // How long a request takes that needs it.
  Duration takes(WrOpcode opcode, std::uint32_t packets) {
    const Time since = w.now;
    w.post(w.request(opcode, 0, 256 * packets, 0));
    EXPECT_EQ(w.complete(1), 1U);
    return w.now - since;
  }
  void expect_no_charge() {
    EXPECT_EQ(w.count(Counter::retries_charged), 0U);
    EXPECT_EQ(w.count(Counter::timeout_high), 0U);
    EXPECT_GE(w.count(Counter::tx_probes), 1U);
  }
};

TEST_F(Probing, TheEndOfAMessage) {
  lose(wire::kWriteLast, 1);
  EXPECT_LE(takes(WrOpcode::kWrite, 4), microseconds(1300));
  EXPECT_EQ(w.count(Counter::tx_retransmitted), 1U);
  expect_no_charge();
}

// The probe alone is taken. The silence after its ACK says that nothing behind it was: the rest goes then,
// not after one more probe for each packet.
TEST_F(Probing, AWholeMessage) {
  w.loses = [this](const wire::Header&) { return lost++ < 4; };
  EXPECT_LE(takes(WrOpcode::kWrite, 4), microseconds(3300));
  EXPECT_EQ(w.count(Counter::tx_retransmitted), 4U);
  expect_no_charge();
}

// A receiver that stood still answers late, one ACK after the other. The first covers the probed packet and
// nothing more, but the others follow: nothing was lost, and nothing but the probe goes out again.
TEST_F(Probing, LateAcksAreNotTakenForTheProbes) {
  w.spacing = microseconds(10);
  w.delay = milliseconds(2);
  w.writes(16, 1);
  EXPECT_EQ(w.complete(16), 16U);
  expect_no_charge();
  EXPECT_EQ(w.count(Counter::tx_retransmitted), w.count(Counter::tx_probes));
}

// It was about to ask when the peer refused the oldest packet: that is an answer, and nothing is asked any
// more.
TEST_F(Probing, ARefusalIsAnAnswer) {
  w.post(w.request(WrOpcode::kSend, 0, 256, 0));
  const QueuePair& q = *w.a.device.engine().find(w.qa);
  const std::vector<Side::Frame> sent = w.intercept(w.a);
  ASSERT_EQ(sent.size(), 1U);
  w.deliver(w.b, sent[0]);  // nobody has posted a receive
  while (q.requests_out.probe != Probe::kDue) {
    w.now = w.a.device.next_deadline();
    ASSERT_NE(w.now, kNever);
    w.a.device.on_timer(w.now);
  }
  std::vector<Side::Frame> refusal;
  w.b.collect(w.b.device.poll_control(w.now), refusal);
  ASSERT_EQ(refusal.size(), 1U);
  w.deliver(w.a, refusal[0]);
  ASSERT_EQ(w.count(Counter::nak_rnr), 1U);
  EXPECT_EQ(q.requests_out.probe, Probe::kNone);
}

// What one probe was answered says nothing once more has left: the next probe needs an answer of its own.
TEST_F(Probing, TheAnswerOfAnOlderProbeIsForgotten) {
  bool deaf = true;
  bool mute = false;
  w.loses = [&](const wire::Header& h) { return h.opcode == wire::kAcknowledge ? mute : deaf; };
  w.writes(8, 1);
  while (w.step() && w.count(Counter::tx_probes) == 0) deaf = w.count(Counter::tx_packets) < 28;
  w.complete(1, milliseconds(1));  // the probe is taken, alone
  deaf = mute = true;
  w.writes(1, 1);  // and something leaves behind it
  while (w.step() && w.count(Counter::tx_probes) < 4) {
    EXPECT_EQ(w.count(Counter::tx_retransmitted), w.count(Counter::tx_probes));
  }
}

TEST_F(Probing, AnAckThatWasLost) {
  lose(wire::kAcknowledge, 1);
  EXPECT_LE(takes(WrOpcode::kWrite, 1), microseconds(1300));
  EXPECT_EQ(w.count(Counter::tx_retransmitted), 1U);
  expect_no_charge();
}

// The receiver says once that something is missing, and is then silent until it comes.
TEST_F(Probing, ANakThatWasLost) {
  bool first = true;
  w.loses = [&](const wire::Header& h) {
    if (h.opcode == wire::kWriteFirst && std::exchange(first, false)) return true;
    return h.opcode == wire::kAcknowledge && h.syndrome == wire::kSyndromeNakSequence && lost++ == 0;
  };
  EXPECT_LE(takes(WrOpcode::kWrite, 8), microseconds(3300));
  expect_no_charge();
}

TEST_F(Probing, ARepairThatWasLostAgain) {
  lose(wire::kWriteFirst, 2);
  EXPECT_LE(takes(WrOpcode::kWrite, 8), microseconds(3500));
  expect_no_charge();
}

// Of a READ, what is missing is asked for.
TEST_F(Probing, TheEndOfAnAnswer) {
  lose(wire::kReadResponseLast, 1);
  EXPECT_LE(takes(WrOpcode::kRead, 8), microseconds(1300));
  EXPECT_EQ(w.b.device.counters().get(Counter::tx_packets), 9U);
  expect_no_charge();
}

TEST_F(Probing, ARead) {
  lose(wire::kReadRequest, 1);
  EXPECT_LE(takes(WrOpcode::kRead, 8), microseconds(1300));
  expect_no_charge();
}

TEST_F(Probing, AnAtomicRunsOnce) {
  for (const std::uint8_t opcode : {wire::kFetchAdd, wire::kAtomicAcknowledge}) {
    lose(opcode, 1);
    w.b.atomics_executed = 0;
    const Time since = w.now;
    SendWr add = w.request(WrOpcode::kFetchAdd, 0, 8, 0);
    add.compare_or_add = 1;
    w.post(add);
    EXPECT_EQ(w.complete(1), 1U);
    EXPECT_LE(w.now - since, milliseconds(3));
    EXPECT_EQ(w.b.atomics_executed, 1);
  }
  expect_no_charge();
}

// Each waits twice as long as the one before, and the verbs time-out, its retries and the end are where they
// were.
TEST_F(Probing, RetriesAreCountedAsWithoutIt) {
  w.loses = [](const wire::Header&) { return true; };
  w.sent_by_a.clear();
  const Time since = w.now;
  w.writes(1, 1);
  std::vector<WcStatus> got;
  while (got.empty() && w.step()) got = w.a.statuses();
  ASSERT_EQ(got, std::vector{WcStatus::kRetryExceeded});
  const Duration timeout = nanoseconds(4096LL << 14);
  EXPECT_EQ(w.now - since, timeout * 8);
  EXPECT_EQ(w.count(Counter::retries_charged), 8U);
  // 1, 3, 7, 15, 31, 63 ms after each of eight copies.
  EXPECT_EQ(w.count(Counter::tx_probes), 48U);
}

TEST_F(Probing, ALongPathIsNotAsked) {
  w.delay = milliseconds(20);
  for (int i = 0; i < 20; ++i) {
    w.writes(1, 16);
    EXPECT_EQ(w.complete(1), 1U);
  }
  const std::uint64_t learnt = w.count(Counter::tx_probes);
  EXPECT_LE(learnt, 12U);
  for (int i = 0; i < 50; ++i) {
    w.writes(1, 16);
    EXPECT_EQ(w.complete(1), 1U);
  }
  EXPECT_EQ(w.count(Counter::tx_probes), learnt);
}

// Until a round trip was timed the first probe waits for a guess, as irn's first time-out does.
TEST(Probes, BeginWithAGuess) {
  LongPath w(Mode::kRoce, LongPath::live(), 20);
  w.delay = microseconds(50);
  int lost = 0;
  w.loses = [&](const wire::Header&) { return lost++ == 0; };
  const Time since = w.now;
  w.writes(1, 1);
  EXPECT_EQ(w.complete(1), 1U);
  EXPECT_GE(w.now - since, w.a.device.config().rto_initial);
  EXPECT_LE(w.now - since, w.a.device.config().rto_initial + milliseconds(1));
  EXPECT_EQ(w.count(Counter::tx_probes), 1U);
}

// Without the setting nothing is asked. Where time-outs do not follow the path there is no guess, so that
// nothing is asked before the first answer either.
TEST(Probes, NeedTheSettingAndARoundTripOrAGuess) {
  for (const bool on : {false, true}) {
    DeviceConfig c = LongPath::live();
    if (on) c.rto = Rto::kStatic;
    if (!on) c.tail_probe = {};
    LongPath w(Mode::kRoce, c, 14);
    if (!on) {
      w.writes(1, 1);
      w.complete(1);
    }
    int lost = 0;
    w.loses = [&](const wire::Header&) { return lost++ == 0; };
    const Time since = w.now;
    w.writes(1, 1);
    EXPECT_EQ(w.complete(1), 1U);
    EXPECT_GE(w.now - since, nanoseconds(4096LL << 14));
    EXPECT_EQ(w.count(Counter::tx_probes), 0U);
  }
}

// A send that its receiver refuses is asked about no sooner than the receiver said.
TEST_F(Probing, AnRnrDelayIsWaited) {
  w.post(w.request(WrOpcode::kSend, 0, 256, 0));
  for (int i = 0; i < 3; ++i) w.step();
  CHECK(w.b.device.post_recv(w.qb, w.receive(w.b, 0, 256, 1)));
  EXPECT_EQ(w.complete(1), 1U);
  EXPECT_EQ(w.count(Counter::tx_probes), 0U);
}

}  // namespace
}  // namespace weft
