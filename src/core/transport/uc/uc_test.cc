// The unreliable connected service: what arrives whole is delivered once and in order, what does not leaves
// no trace but a count, and nothing is ever sent in answer.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/prng.h"
#include "core/transport/two_devices.h"

namespace weft {
namespace {

constexpr std::uint32_t kLength = 900;  // four packets of 256
constexpr int kPacketsEach = 4;

bool consumes(WrOpcode op) { return op != WrOpcode::kWrite; }

struct UcTest : ::testing::Test {
  explicit UcTest(const DeviceConfig& config = DeviceConfig{})
      : w(wire::Mode::kIrn, config, QpType::kUc) {  // the mode does not matter
    for (std::size_t i = 0; i < w.a.bytes().size(); ++i)
      w.a.bytes()[i] = static_cast<std::uint8_t>(i * 7 + i / 256 + 1);
  }
  void receives(int n, std::uint32_t length = 1024) {
    for (int i = 0; i < n; ++i) {
      const auto k = static_cast<std::uint64_t>(i);
      ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 16384 + 1024 * k, length, 100 + k)));
    }
  }
  // Message i: from a's offset 1024 i; a WRITE's goes to b's offset 1024 i.
  void send(WrOpcode op, int i, std::uint32_t length = kLength, std::uint8_t flags = kSendSignaled) {
    const auto at = 1024 * static_cast<std::uint64_t>(i);
    SendWr r = w.request(op, at, length, at, flags);
    r.imm = 7000U + static_cast<std::uint32_t>(i);
    w.post(r);
  }
  bool arrived(int i, std::size_t at, std::uint32_t length = kLength) {
    const auto from = w.a.bytes().begin() + 1024 * i;
    return std::equal(from, from + length, w.b.bytes().begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::uint64_t counted(Side& s, Counter c) { return s.device.counters().get(c); }
  QpState state(Side& s, Qpn q) { return s.device.query_qp(q)->state; }

  TwoDevices w;
};

struct UcOpTest : UcTest, ::testing::WithParamInterface<WrOpcode> {};

TEST_P(UcOpTest, MessagesOfAnyLengthArriveAndNothingIsAnswered) {
  receives(8);
  constexpr std::uint32_t kLengths[] = {0, 1, 255, 256, 257, 512, 900, 1024};
  int packets = 0;
  for (int i = 0; i < 8; ++i) {
    send(GetParam(), i, kLengths[i]);
    packets += static_cast<int>(std::max(1U, (kLengths[i] + 255) / 256));
  }
  w.run();
  EXPECT_EQ(w.sent, packets);
  EXPECT_EQ(counted(w.b, Counter::tx_control), 0U);
  const auto done = w.a.completions();
  ASSERT_EQ(done.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(done[i].wr_id, i);
    EXPECT_EQ(done[i].status, WcStatus::kSuccess);
  }
  const auto got = w.b.completions();
  ASSERT_EQ(got.size(), consumes(GetParam()) ? 8U : 0U);
  const bool write = GetParam() == WrOpcode::kWrite || GetParam() == WrOpcode::kWriteImm;
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(arrived(i, static_cast<std::size_t>(write ? 1024 * i : 16384 + 1024 * i), kLengths[i]));
    if (got.empty()) continue;
    const Completion& c = got[static_cast<std::size_t>(i)];
    EXPECT_EQ(c.status, WcStatus::kSuccess);
    EXPECT_EQ(c.byte_len, kLengths[i]);
    EXPECT_EQ(c.opcode, write ? WcOpcode::kReceiveWriteImm : WcOpcode::kReceive);
    const bool imm = GetParam() != WrOpcode::kSend;
    EXPECT_EQ(c.flags, imm ? kWcWithImm : 0);
    EXPECT_EQ(c.imm, imm ? 7000U + static_cast<std::uint32_t>(i) : 0U);
  }
}

// Three messages of four packets, every subset of the first eight packets lost: a message is delivered if and
// only if all of it arrived, in order, into the next receive; the sender never knows.
TEST_P(UcOpTest, EveryPatternOfLossesCostsExactlyTheMessagesItHits) {
  for (std::uint64_t pattern = 0; pattern < 256; ++pattern) {
    SCOPED_TRACE("losses " + std::to_string(pattern));
    TwoDevices fresh(wire::Mode::kRoce, {}, QpType::kUc);
    fresh.lose_pattern = pattern;
    for (std::size_t i = 0; i < 4096; ++i)
      fresh.a.bytes()[i] = static_cast<std::uint8_t>(i * 11 + i / 256 + 1);
    for (std::uint64_t i = 0; i < 3; ++i)
      ASSERT_TRUE(fresh.b.device.post_recv(fresh.qb, fresh.receive(fresh.b, 16384 + 1024 * i, 1024, i)));
    for (std::uint64_t i = 0; i < 3; ++i) {
      SendWr r = fresh.request(GetParam(), 1024 * i, kLength, 8192 + 1024 * i);
      r.imm = static_cast<std::uint32_t>(i);
      fresh.post(r);
    }
    fresh.run();
    ASSERT_EQ(fresh.a.completions().size(), 3U);
    std::vector<std::uint32_t> whole;
    for (std::uint32_t i = 0; i < 3; ++i) {
      if ((pattern >> (i * kPacketsEach) & 0xFU) == 0) whole.push_back(i);
    }
    const auto got = fresh.b.completions();
    ASSERT_EQ(got.size(), consumes(GetParam()) ? whole.size() : 0U);
    for (std::size_t k = 0; k < whole.size(); ++k) {
      const auto from = fresh.a.bytes().begin() + 1024 * whole[k];
      const bool send = GetParam() == WrOpcode::kSend || GetParam() == WrOpcode::kSendImm;
      const std::size_t at = send ? 16384 + 1024 * k : 8192 + 1024 * whole[k];
      ASSERT_TRUE(
          std::equal(from, from + kLength, fresh.b.bytes().begin() + static_cast<std::ptrdiff_t>(at)));
      if (got.empty()) continue;
      ASSERT_EQ(got[k].wr_id, k);
      ASSERT_EQ(got[k].imm, GetParam() == WrOpcode::kSend ? 0 : whole[k]);
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<WrOpcode>& i) {
  constexpr const char* kNames[] = {"write", "write_imm", "send", "send_imm"};
  return kNames[static_cast<int>(i.param)];
}
INSTANTIATE_TEST_SUITE_P(Operations, UcOpTest,
                         ::testing::Values(WrOpcode::kSend, WrOpcode::kSendImm, WrOpcode::kWrite,
                                           WrOpcode::kWriteImm),
                         name_of);

// A packet that the network duplicated, or that was overtaken, is not taken for a new message.
TEST_F(UcTest, OldNumbersAreNotDeliveredAgain) {
  receives(8);
  for (int i = 0; i < 4; ++i) send(WrOpcode::kSend, i, 100);
  const auto frames = w.intercept(w.a);
  ASSERT_EQ(frames.size(), 4U);
  for (const std::size_t i : {1U, 0U, 1U, 3U, 2U, 3U}) w.deliver(w.b, frames[i]);
  const auto got = w.b.completions();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_TRUE(arrived(1, 16384, 100));
  EXPECT_TRUE(arrived(3, 16384 + 1024, 100));
  EXPECT_EQ(counted(w.b, Counter::rx_duplicate), 4U);
}

// Any number that does not lie just behind is a new start, however long the outage was.
TEST_F(UcTest, ResynchronisesAtAnyNumber) {
  receives(40);
  std::uint32_t psn = 0xFFFFFE;
  send(WrOpcode::kSend, 0, 100);
  auto frame = w.intercept(w.a).at(0);
  for (const std::uint32_t jump : {0U, 1U, 5000U, 1U << 22U, 1U << 23U, (1U << 24U) - (1U << 17U)}) {
    psn = (psn + jump) & kPsnMask;
    frame.packet.header.psn = {psn};
    w.deliver(w.b, frame);
    EXPECT_EQ(w.b.completions().size(), 1U) << jump;
    psn = (psn + 1) & kPsnMask;
  }
}

TEST_F(UcTest, WithoutAReceiveAMessageIsDroppedAndTheNextIsNot) {
  send(WrOpcode::kSend, 0);
  w.run();
  EXPECT_EQ(counted(w.b, Counter::drop_no_receive), 1U);
  EXPECT_EQ(counted(w.b, Counter::drop_message), 3U);
  receives(1);
  send(WrOpcode::kSend, 1);
  w.run();
  ASSERT_EQ(w.b.completions().size(), 1U);
  EXPECT_TRUE(arrived(1, 16384));
  EXPECT_EQ(w.a.completions().size(), 2U);
}

TEST_F(UcTest, WhatDoesNotFitItsReceiveLeavesItToTheNext) {
  receives(1, 600);
  send(WrOpcode::kSend, 0);
  send(WrOpcode::kSend, 1, 600);
  w.run();
  const auto got = w.b.completions();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].wr_id, 100U);
  EXPECT_EQ(got[0].byte_len, 600U);
  EXPECT_TRUE(arrived(1, 16384, 600));
  EXPECT_EQ(counted(w.b, Counter::drop_too_long), 1U);
}

TEST_F(UcTest, AWriteThatItsKeyDoesNotAllowPlacesNothing) {
  const auto before = w.b.bytes();
  SendWr r = w.request(WrOpcode::kWrite, 0, kLength, w.b.bytes().size() - 500);
  w.post(r);
  r = w.request(WrOpcode::kWrite, 0, kLength, 0);
  r.rkey.v ^= 1;
  w.post(r);
  w.run();
  EXPECT_EQ(w.b.bytes(), before);
  EXPECT_EQ(counted(w.b, Counter::drop_refused), 2U);
  EXPECT_EQ(state(w.b, w.qb), QpState::kRts);
  EXPECT_EQ(w.a.completions().size(), 2U);
  send(WrOpcode::kWrite, 2);
  w.run();
  EXPECT_TRUE(arrived(2, 2048));
}

// The receive side fails as in any service: the receive says why, the queue pair is in ERR.
TEST_F(UcTest, AReceiveThatCannotBeWrittenFails) {
  w.b.receive_nowhere(w.qb, 5);
  receives(1);
  send(WrOpcode::kSend, 0);
  w.run();
  const auto got = w.b.completions();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].wr_id, 5U);
  EXPECT_EQ(got[0].status, WcStatus::kLocalProtection);
  EXPECT_EQ(got[1].status, WcStatus::kFlushed);
  EXPECT_EQ(state(w.b, w.qb), QpState::kErr);
}

// SQE: the failed request, what was posted behind it and what is posted now; receiving goes on, and RTS
// makes the queue work again.
TEST_F(UcTest, ARequestThatCannotBeSentStopsTheSendQueueAlone) {
  receives(4);
  ASSERT_TRUE(w.a.device.post_recv(w.qa, w.receive(w.a, 32768, 1024, 50)));
  send(WrOpcode::kSend, 0);
  SendWr bad = w.request(WrOpcode::kSend, 0, kLength, 0);
  Sge wrong[2] = {bad.sges[0], bad.sges[0]};
  wrong[0].length = wrong[1].length = 512;
  wrong[1].lkey.v ^= 1;  // in the middle: two packets of it have left by then
  bad.sges = wrong;
  w.post(bad);
  send(WrOpcode::kSend, 1);
  w.run();
  EXPECT_EQ(state(w.a, w.qa), QpState::kSqe);
  send(WrOpcode::kSend, 2);
  EXPECT_EQ(w.a.statuses(), (std::vector{WcStatus::kSuccess, WcStatus::kLocalProtection, WcStatus::kFlushed,
                                         WcStatus::kFlushed}));
  EXPECT_EQ(w.b.completions().size(), 1U);

  SendWr back = w.request(WrOpcode::kSend, 0, 64, 0);
  Sge from = {Side::kBase, 64, w.b.mr.lkey};
  back.sges = {&from, 1};
  ASSERT_TRUE(w.b.device.post_send(w.qb, back));
  w.run();
  EXPECT_EQ(w.a.completions().size(), 1U) << "it still receives";

  QpAttr t;
  t.state = QpState::kRts;
  t.current_state = QpState::kSqe;
  ASSERT_TRUE(w.a.device.modify_qp(w.qa, t, kAttrState | kAttrCurrentState, w.now));
  send(WrOpcode::kSend, 3);
  w.run();
  EXPECT_EQ(w.a.completions().size(), 1U);
  const auto got = w.b.completions();
  ASSERT_EQ(got.size(), 2U);  // the peer's own SEND, and this
  EXPECT_TRUE(arrived(3, 16384 + 1024));
}

// The world finds memory gone while it gathers: what it had gathered of the burst has left, the rest has not.
TEST_F(UcTest, AGatherThatFailsTakesItsMessageBack) {
  for (int i = 0; i < 3; ++i) send(WrOpcode::kSend, i);
  const wire::Burst burst = w.a.device.poll_transmit(w.now, {});
  ASSERT_EQ(burst.packets.size(), 4U);  // one frame size: the message's last packet ends the burst
  w.a.device.gather_failed(burst, 2, w.now);
  EXPECT_TRUE(w.intercept(w.a).empty());
  const auto done = w.a.completions();
  ASSERT_EQ(done.size(), 3U);
  EXPECT_EQ(done[0].status, WcStatus::kLocalProtection);
  EXPECT_EQ(done[1].status, WcStatus::kFlushed);
  EXPECT_EQ(state(w.a, w.qa), QpState::kSqe);
  w.a.device.check_invariants();
}

TEST_F(UcTest, ACompletionWaitsUntilTheBurstWasGathered) {
  send(WrOpcode::kSend, 0, 100);
  std::vector<Side::Frame> frames;
  w.a.collect(w.a.device.poll_transmit(w.now, {}), frames);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(w.a.completions().size(), 1U);
}

TEST_F(UcTest, InlineAndGatheredBytes) {
  receives(2);
  SendWr r = w.request(WrOpcode::kSend, 0, 60, 0, kSendSignaled | kSendInline);
  w.post(r);
  std::fill_n(w.a.bytes().begin(), 60, std::uint8_t{0});  // inline: read when it was posted
  const Sge pieces[3] = {{Side::kBase + 2000, 300, w.a.mr.lkey},
                         {Side::kBase + 1000, 0, w.a.mr.lkey},
                         {Side::kBase + 3000, 211, w.a.mr.lkey}};
  r = w.request(WrOpcode::kSend, 0, 0, 0);
  r.sges = pieces;
  w.post(r);
  w.run();
  EXPECT_EQ(w.b.completions().size(), 2U);
  for (std::size_t i = 0; i < 60; ++i)
    ASSERT_EQ(w.b.bytes()[16384 + i], static_cast<std::uint8_t>(i * 7 + 1));
  EXPECT_TRUE(
      std::equal(w.a.bytes().begin() + 2000, w.a.bytes().begin() + 2300, w.b.bytes().begin() + 17408));
  EXPECT_TRUE(
      std::equal(w.a.bytes().begin() + 3000, w.a.bytes().begin() + 3211, w.b.bytes().begin() + 17708));
}

TEST_F(UcTest, DrawsFromASharedReceiveQueue) {
  const SrqId srq = *w.b.device.create_srq(w.b.pd, {16, 2, 0});
  w.qa = w.a.create(kNoSrq, QpType::kUc);
  w.qb = w.b.create(srq, QpType::kUc);
  w.connect(w.qa, w.qb);
  send(WrOpcode::kSend, 0);
  w.run();
  EXPECT_EQ(counted(w.b, Counter::drop_no_receive), 1U);
  for (std::uint64_t i = 0; i < 3; ++i)
    ASSERT_TRUE(w.b.device.post_srq_recv(srq, w.receive(w.b, 16384 + 1024 * i, 1024, i)));
  for (int i = 1; i < 4; ++i) send(WrOpcode::kSend, i);
  w.lose_packet = w.sent + 6;  // of the second
  w.run();
  const auto got = w.b.completions();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_TRUE(arrived(1, 16384));
  EXPECT_TRUE(arrived(3, 16384 + 1024)) << "the receive of the message that was lost half way is used";
  EXPECT_EQ(got[1].wr_id, 1U);
}

TEST_F(UcTest, WhatNeedsAnAnswerIsRefused) {
  for (const WrOpcode op :
       {WrOpcode::kRead, WrOpcode::kCompareSwap, WrOpcode::kFetchAdd, WrOpcode::kSendInvalidate}) {
    const auto r = w.a.device.post_send(w.qa, w.request(op, 0, 8, 0));
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error(), Errc::kInvalid);
  }
}

// Memory windows need no answer: bound here, used by the peer's WRITEs, gone after local invalidate.
TEST_F(UcTest, MemoryWindowsWork) {
  const Key window = *w.b.device.alloc_window(w.b.pd, WindowType::k2);
  SendWr bind;
  bind.opcode = WrOpcode::kBindWindow;
  bind.flags = kSendSignaled;
  bind.bind = {{window.v ^ 5}, w.b.mr.rkey, Side::kBase + 4096, 2048, kRemoteWrite};
  ASSERT_TRUE(w.b.device.post_send(w.qb, bind));
  ASSERT_EQ(w.b.completions().size(), 1U);
  SendWr r = w.request(WrOpcode::kWrite, 0, kLength, 4096);
  r.rkey = bind.bind.window;
  w.post(r);
  w.run();
  EXPECT_TRUE(arrived(0, 4096));
  SendWr invalidate;
  invalidate.opcode = WrOpcode::kLocalInvalidate;
  invalidate.imm = bind.bind.window.v;
  ASSERT_TRUE(w.b.device.post_send(w.qb, invalidate));
  w.post(r);
  w.run();
  EXPECT_EQ(counted(w.b, Counter::drop_refused), 1U);
  ASSERT_TRUE(w.b.device.post_send(w.qb, invalidate));  // not bound any more
  const auto done = w.b.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, WcStatus::kBindError);
  EXPECT_EQ(state(w.b, w.qb), QpState::kSqe);
}

TEST_F(UcTest, DrainsWhatHasBegun) {
  DeviceConfig two;
  two.burst_packets = 2;
  TwoDevices d(wire::Mode::kRoce, two, QpType::kUc);
  for (std::uint64_t i = 0; i < 2; ++i) d.post(d.request(WrOpcode::kWrite, 0, kLength, 1024 * i));
  std::vector<Side::Frame> frames;
  d.a.collect(d.a.device.poll_transmit(d.now, {}), frames);
  ASSERT_EQ(frames.size(), 2U);
  QpAttr t;
  t.state = QpState::kSqd;
  t.sqd_notify = true;
  ASSERT_TRUE(d.a.device.modify_qp(d.qa, t, kAttrState | kAttrSqdNotify, d.now));
  EXPECT_TRUE(d.a.events().empty());
  d.run();
  EXPECT_EQ(d.sent, 2) << "the first message's other half";
  ASSERT_EQ(d.a.completions().size(), 1U);
  const auto events = d.a.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, DeviceEventKind::kSqDrained);
  t.state = QpState::kRts;
  ASSERT_TRUE(d.a.device.modify_qp(d.qa, t, kAttrState, d.now));
  d.run();
  EXPECT_EQ(d.a.completions().size(), 1U);
}

// docs/protocol/verbs.md#attributes, the rows of UC: what RC needs and UC has not is refused.
TEST_F(UcTest, AttributeMasksAreThoseOfUc) {
  const Qpn q = w.a.create(kNoSrq, QpType::kUc);
  QpAttr t;
  t.access = kRemoteWrite;
  t.path = *w.a.device.open_path({w.b.address});
  t.mtu = 256;
  EXPECT_FALSE(w.a.step(q, t, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrQkey));
  EXPECT_TRUE(w.a.step(q, t, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccess));
  constexpr std::uint32_t kRtr = kAttrPath | kAttrMtu | kAttrDestQpn | kAttrRqPsn;
  EXPECT_FALSE(w.a.step(q, t, QpState::kRtr, kRtr | kAttrMaxDestRdAtomic | kAttrMinRnrTimer));
  EXPECT_FALSE(w.a.step(q, t, QpState::kRtr, kRtr & ~kAttrRqPsn));
  EXPECT_TRUE(w.a.step(q, t, QpState::kRtr, kRtr));
  EXPECT_FALSE(w.a.step(q, t, QpState::kRts, kAttrSqPsn | kAttrTimeout));
  EXPECT_FALSE(w.a.step(q, t, QpState::kRts, 0));
  EXPECT_TRUE(w.a.step(q, t, QpState::kRts, kAttrSqPsn));
  EXPECT_FALSE(w.a.step(q, t, QpState::kRts, kAttrMinRnrTimer));
  EXPECT_TRUE(w.a.step(q, t, QpState::kRts, kAttrAccess));
  EXPECT_TRUE(w.a.step(q, t, QpState::kErr, 0));
  EXPECT_TRUE(w.a.step(q, t, QpState::kReset, 0));
}

// Path credit: at most so much counts as in flight, and comes back by itself.
TEST_F(UcTest, PathCreditComesBackAfterThePresumedFlight) {
  DeviceConfig c;
  c.path_credit = {2048};
  c.presumed_flight = microseconds(70);
  TwoDevices d(wire::Mode::kRoce, c, QpType::kUc);
  for (std::uint64_t i = 0; i < 16; ++i) d.post(d.request(WrOpcode::kWrite, 0, 1024, 1024 * i));
  const PathId path = *d.a.device.open_path({d.b.address});
  while (d.turn()) EXPECT_LE(d.a.device.path_in_flight(path).n, 2048U);
  EXPECT_EQ(d.sent, 8);
  const Time began = d.now;
  d.run();
  EXPECT_EQ(d.sent, 64);
  EXPECT_EQ(d.a.completions().size(), 16U);
  EXPECT_GE((d.now - began).ps, microseconds(7 * 70 - 20).ps) << "seven more rounds of 2048 bytes";
  EXPECT_EQ(d.a.device.path_in_flight(path).n, 0U);
  EXPECT_EQ(d.a.device.next_deadline(), kNever);
}

// A reliable connection that shares the path gets what the unreliable one's packets gave back, even if that
// one is gone.
TEST_F(UcTest, CreditOfADestroyedQueuePairIsNotLost) {
  DeviceConfig c;
  c.path_credit = {2048};
  TwoDevices d(wire::Mode::kRoce, c, QpType::kRc);
  d.type = QpType::kUc;
  const Qpn x = d.a.create(kNoSrq, QpType::kUc);
  const Qpn y = d.b.create(kNoSrq, QpType::kUc);
  d.connect(x, y);
  ASSERT_TRUE(d.a.post(x, d.request(WrOpcode::kWrite, 0, 8192, 0)));
  while (d.turn()) {
  }
  d.post(d.request(WrOpcode::kWrite, 0, 4096, 0));
  EXPECT_FALSE(d.turn());
  ASSERT_TRUE(d.a.device.destroy_qp(x));
  d.run();
  ASSERT_EQ(d.a.completions().size(), 1U);
}

// Packets as somebody hostile would make them: none writes outside what its key and rights allow, none makes
// the queue pair fail or answer.
TEST_F(UcTest, HostilePackets) {
  Prng random(4711);
  const MrInfo guarded = w.b.region(4096, kLocalWrite);  // no remote rights
  receives(16, 300);
  const auto before = w.b.memory.at(guarded.region.v);
  for (int i = 0; i < 200'000; ++i) {
    Side::Frame f;
    wire::Header& h = f.packet.header;
    h.opcode =
        static_cast<std::uint8_t>(random.below(8) == 0 ? random.below(256) : 0x20 + random.below(0x18));
    h.psn = {static_cast<std::uint32_t>(random.below(4) == 0 ? random.next()
                                                             : 0xFFFFFEU + static_cast<std::uint32_t>(i)) &
             kPsnMask};
    h.dest_qp = random.below(20) == 0 ? Qpn{w.qb.v ^ 1U} : w.qb;
    h.pkey = random.below(20) == 0 ? 0x1234 : 0xFFFF;
    h.rkey = random.below(2) == 0 ? guarded.rkey : Key{static_cast<std::uint32_t>(random.next())};
    h.va = random.below(2) == 0 ? Side::kBase + random.below(8192) : random.next();
    h.dma_len = static_cast<std::uint32_t>(random.below(3) == 0 ? random.next() : random.below(1200));
    h.mode = static_cast<wire::Mode>(random.below(10) == 0 ? random.below(3) : 0);
    f.packet.payload = static_cast<std::uint32_t>(random.below(3) == 0 ? 256 : random.below(400));
    f.payload.resize(f.packet.payload, 0xEE);
    f.packet.source = random.below(20) == 0 ? wire::Address::v4(10, 0, 0, 9) : w.a.address;
    w.deliver(w.b, f);
    if (i % 16 == 0) {
      for (const Completion& c : w.b.completions()) {
        ASSERT_EQ(c.status, WcStatus::kSuccess);
        ASSERT_LE(c.byte_len, 300U);
        ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 16384, 300, 1)));
      }
      w.b.device.check_invariants();
    }
  }
  EXPECT_EQ(w.b.memory.at(guarded.region.v), before);
  EXPECT_EQ(state(w.b, w.qb), QpState::kRts);
  EXPECT_EQ(w.b.device.peek_control(), kNoQpn);
  for (const Counter c : {Counter::rx_in_order, Counter::rx_duplicate, Counter::drop_message,
                          Counter::drop_too_long, Counter::drop_refused, Counter::drop_opcode,
                          Counter::drop_source, Counter::drop_pkey, Counter::drop_no_qp})
    EXPECT_GT(counted(w.b, c), 0U) << kCounterInfo[static_cast<std::size_t>(c)].name;
}

}  // namespace
}  // namespace weft
