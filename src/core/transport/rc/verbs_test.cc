// The verbs beyond SEND, WRITE and READ, in every mode: atomics, invalidation and windows, draining. Where a
// packet may be lost, each one is, in turn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/transport/two_devices.h"

namespace weft {
namespace {

class VerbsTest : public ::testing::TestWithParam<wire::Mode> {
 protected:
  // Runs `play` losing no packet, then once for each packet of that run, losing this one.
  template <class Play>
  void with_every_loss(Play play) {
    int sent = 0;
    {
      TwoDevices w(GetParam());
      play(w);
      sent = w.sent;
    }
    ASSERT_GT(sent, 0);
    for (int lost = 1; lost <= sent; ++lost) {
      SCOPED_TRACE("lost packet " + std::to_string(lost));
      TwoDevices w(GetParam());
      w.lose_packet = lost;
      play(w);
    }
  }
};

SendWr atomic(TwoDevices& w, WrOpcode opcode, std::uint64_t result, std::uint64_t target, std::uint64_t x,
              std::uint64_t y = 0) {
  SendWr r = w.request(opcode, result, 8, target);
  r.compare_or_add = x;
  r.swap = y;
  return r;
}

void expect_success(Side& s, std::vector<std::uint64_t> ids) {
  const std::vector<Completion> got = s.completions();
  ASSERT_EQ(got.size(), ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(got[i].wr_id, ids[i]);
    EXPECT_EQ(got[i].status, WcStatus::kSuccess);
  }
}

void expect_failure(Side& s, WcStatus status) {
  const std::vector<Completion> got = s.completions();
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(got[0].status, status);
}

TEST_P(VerbsTest, AtomicsHappenOnceWhateverIsLost) {
  with_every_loss([](TwoDevices& w) {
    w.b.set_word(w.b.mr.region, 64, 100);
    w.post(atomic(w, WrOpcode::kFetchAdd, 0, 64, 5));          // 100 -> 105
    w.post(atomic(w, WrOpcode::kCompareSwap, 8, 64, 105, 7));  // 105 -> 7
    w.post(atomic(w, WrOpcode::kCompareSwap, 16, 64, 1, 9));   // stays 7
    w.post(w.request(WrOpcode::kRead, 24, 8, 64));
    w.post(atomic(w, WrOpcode::kFetchAdd, 32, 64, 1));  // 7 -> 8
    w.run();
    expect_success(w.a, {0, 1, 2, 3, 4});
    EXPECT_EQ(w.a.word(w.a.mr.region, 0), 100U);
    EXPECT_EQ(w.a.word(w.a.mr.region, 8), 105U);
    EXPECT_EQ(w.a.word(w.a.mr.region, 16), 7U);
    EXPECT_EQ(w.a.word(w.a.mr.region, 32), 7U);
    EXPECT_EQ(w.b.word(w.b.mr.region, 64), 8U);
    EXPECT_EQ(w.b.atomics_executed, 4);
    EXPECT_EQ(w.a.device.loss_blocks_in_use(), 0U);
    EXPECT_EQ(w.b.device.loss_blocks_in_use(), 0U);
  });
}

TEST_P(VerbsTest, AnAtomicNeedsItsRightAndItsAlignment) {
  {
    TwoDevices w(GetParam());
    w.post(atomic(w, WrOpcode::kFetchAdd, 0, 12, 1));
    w.run();
    expect_failure(w.a, WcStatus::kRemoteInvalidRequest);
  }
  TwoDevices w(GetParam());
  const MrInfo other = w.b.region(4096, kLocalWrite | kRemoteWrite);
  SendWr r = atomic(w, WrOpcode::kFetchAdd, 0, 0, 1);
  r.rkey = other.rkey;
  w.post(r);
  w.run();
  expect_failure(w.a, WcStatus::kRemoteAccess);
  EXPECT_EQ(w.b.atomics_executed, 0);
}

TEST_P(VerbsTest, AnAtomicsAnswerMayBeScattered) {
  TwoDevices w(GetParam());
  w.b.set_word(w.b.mr.region, 0, 0x0102030405060708);
  const Sge pieces[2] = {{Side::kBase, 3, w.a.mr.lkey}, {Side::kBase + 100, 5, w.a.mr.lkey}};
  SendWr r = atomic(w, WrOpcode::kFetchAdd, 0, 0, 0);
  r.sges = pieces;
  w.post(r);
  w.run();
  expect_success(w.a, {0});
  EXPECT_THAT(std::vector<int>(w.a.bytes().begin(), w.a.bytes().begin() + 4),
              ::testing::ElementsAre(8, 7, 6, 0));
  EXPECT_THAT(std::vector<int>(w.a.bytes().begin() + 100, w.a.bytes().begin() + 105),
              ::testing::ElementsAre(5, 4, 3, 2, 1));
}

TEST_P(VerbsTest, AFenceWaitsForAtomics) {
  with_every_loss([](TwoDevices& w) {
    w.b.set_word(w.b.mr.region, 0, 1);
    w.post(atomic(w, WrOpcode::kFetchAdd, 0, 0, 41));
    // Sends what the atomic brought, so it must not be gathered before.
    w.post(w.request(WrOpcode::kWrite, 0, 8, 512, kSendSignaled | kSendFence));
    w.run();
    expect_success(w.a, {0, 1});
    EXPECT_EQ(w.b.word(w.b.mr.region, 512), 1U);
  });
}

TEST_P(VerbsTest, NothingIsExecutedBehindAnAtomicThatFailed) {
  TwoDevices w(GetParam());
  w.post(atomic(w, WrOpcode::kFetchAdd, 0, 64, 1));
  w.post(atomic(w, WrOpcode::kFetchAdd, 8, 64, 1));
  w.post(w.request(WrOpcode::kWrite, 0, 8, 512));
  w.b.atomics_fail = true;
  w.a.set_word(w.a.mr.region, 0, 77);
  w.run();
  const std::vector<Completion> got = w.a.completions();
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(got[0].status, WcStatus::kRemoteOperation);
  EXPECT_EQ(got[1].status, WcStatus::kFlushed);
  EXPECT_EQ(w.b.word(w.b.mr.region, 512), 0U);
}

TEST_P(VerbsTest, NoReceiveCompletesBehindAnAtomicThatFailed) {
  with_every_loss([](TwoDevices& w) {
    ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 4096, 64, 9)));
    w.post(atomic(w, WrOpcode::kFetchAdd, 0, 64, 1));
    w.post(w.request(WrOpcode::kSend, 0, 8, 0));
    w.b.atomics_fail = true;
    w.run();
    expect_failure(w.b, WcStatus::kFlushed);
  });
}

// --- windows and invalidation ---

Key other_tag(Key k, std::uint8_t tag) { return {(k.v & 0xFFFFFF00U) | tag}; }

SendWr bind(TwoDevices& w, Key window, std::uint64_t offset, std::uint64_t length, std::uint8_t access) {
  SendWr r;
  r.wr_id = w.next_id++;
  r.opcode = WrOpcode::kBindWindow;
  r.flags = kSendSignaled;
  r.bind = {window, w.b.mr.lkey, Side::kBase + offset, length, access};
  return r;
}
void post_at_b(TwoDevices& w, const SendWr& r) { ASSERT_TRUE(w.b.device.post_send(w.qb, r)); }

// A WRITE of eight bytes with this key.
void write_through(TwoDevices& w, Key key, std::uint64_t at) {
  SendWr r = w.request(WrOpcode::kWrite, 0, 8, at);
  r.rkey = key;
  w.post(r);
  w.run();
}

TEST_P(VerbsTest, AWindowOpensItsRangeAndNoMore) {
  for (const WindowType type : {WindowType::k1, WindowType::k2}) {
    TwoDevices w(GetParam());
    const Key key = other_tag(*w.b.device.alloc_window(w.b.pd, type), 77);
    post_at_b(w, bind(w, key, 256, 64, kRemoteWrite));
    expect_success(w.b, {0});
    EXPECT_EQ(w.b.device.deregister_mr(w.b.mr.lkey).error(), Errc::kBusy);
    w.a.bytes()[0] = 0xAB;
    SendWr inside = w.request(WrOpcode::kWrite, 0, 8, 256);
    inside.rkey = key;
    w.post(inside);
    w.run();
    expect_success(w.a, {1});
    EXPECT_EQ(w.b.bytes()[256], 0xAB);
    write_through(w, key, 256 + 60);
    expect_failure(w.a, WcStatus::kRemoteAccess);
  }
}

TEST_P(VerbsTest, AWindowGrantsOnlyItsRights) {
  TwoDevices w(GetParam());
  const Key key = *w.b.device.alloc_window(w.b.pd, WindowType::k2);
  post_at_b(w, bind(w, key, 0, 64, kRemoteRead));
  write_through(w, key, 0);
  expect_failure(w.a, WcStatus::kRemoteAccess);
}

TEST_P(VerbsTest, AWindowOfAnotherQueuePairIsClosed) {
  TwoDevices w(GetParam());
  const Key key = *w.b.device.alloc_window(w.b.pd, WindowType::k2);
  const Qpn xa = w.a.create();
  const Qpn xb = w.b.create();
  w.connect(xa, xb);
  ASSERT_TRUE(w.b.device.post_send(xb, bind(w, key, 0, 64, kRemoteWrite)));
  write_through(w, key, 0);
  expect_failure(w.a, WcStatus::kRemoteAccess);
}

TEST_P(VerbsTest, LocalInvalidateClosesAWindowInTheQueuesOrder) {
  TwoDevices w(GetParam());
  const Key key = *w.b.device.alloc_window(w.b.pd, WindowType::k2);
  post_at_b(w, bind(w, key, 0, 64, kRemoteWrite));
  SendWr close;
  close.wr_id = 50;
  close.opcode = WrOpcode::kLocalInvalidate;
  close.flags = kSendSignaled;
  close.imm = key.v;
  post_at_b(w, close);
  expect_success(w.b, {0, 50});
  EXPECT_TRUE(w.b.device.deregister_mr(w.b.mr.lkey));
}

TEST_P(VerbsTest, ABindThatIsNotAllowedEndsTheConnectionAfterEarlierRequests) {
  with_every_loss([](TwoDevices& w) {
    const Key key = *w.a.device.alloc_window(w.a.pd, WindowType::k2);
    w.post(w.request(WrOpcode::kWrite, 0, 1000, 0));
    SendWr r = bind(w, key, 0, 1U << 30U, kRemoteWrite);  // larger than the region
    r.bind.region = w.a.mr.lkey;
    w.post(r);
    w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
    w.run();
    const std::vector<Completion> got = w.a.completions();
    ASSERT_EQ(got.size(), 3U);
    EXPECT_EQ(got[0].status, WcStatus::kSuccess);
    EXPECT_EQ(got[1].status, WcStatus::kBindError);
    EXPECT_EQ(got[2].status, WcStatus::kFlushed);
  });
}

TEST_P(VerbsTest, LocalRequestsBetweenOthersKeepTheOrderWhateverIsLost) {
  with_every_loss([](TwoDevices& w) {
    const Key key = *w.a.device.alloc_window(w.a.pd, WindowType::k1);
    w.post(w.request(WrOpcode::kWrite, 0, 700, 0));
    SendWr r = bind(w, key, 0, 64, kRemoteWrite);
    r.bind.region = w.a.mr.lkey;
    w.post(r);
    w.post(w.request(WrOpcode::kRead, 0, 600, 0));
    SendWr fenced = bind(w, key, 64, 64, kRemoteWrite);
    fenced.bind.region = w.a.mr.lkey;
    fenced.flags |= kSendFence;
    w.post(fenced);
    w.post(w.request(WrOpcode::kWrite, 0, 300, 0));
    w.run();
    expect_success(w.a, {0, 1, 2, 3, 4});
  });
}

TEST_P(VerbsTest, SendWithInvalidateClosesThePeersWindow) {
  with_every_loss([](TwoDevices& w) {
    const Key key = *w.b.device.alloc_window(w.b.pd, WindowType::k2);
    post_at_b(w, bind(w, key, 0, 64, kRemoteWrite));
    w.b.completions();
    ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 4096, 1024, 9)));
    SendWr r = w.request(WrOpcode::kSendInvalidate, 0, 600, 0);
    r.imm = key.v;
    w.post(r);
    w.run();
    expect_success(w.a, {1});
    const std::vector<Completion> got = w.b.completions();
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].status, WcStatus::kSuccess);
    EXPECT_EQ(got[0].flags, kWcWithInvalidate);
    EXPECT_EQ(got[0].imm, key.v);
    EXPECT_TRUE(w.b.device.deregister_mr(w.b.mr.lkey));  // nothing is bound to it any more
  });
}

TEST_P(VerbsTest, AnInvalidationThatIsNotAllowedFailsTheReceive) {
  TwoDevices w(GetParam());
  ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 4096, 1024, 9)));
  SendWr r = w.request(WrOpcode::kSendInvalidate, 0, 8, 0);
  r.imm = w.b.mr.rkey.v;  // a region of the program's is not the peer's to invalidate
  w.post(r);
  w.run();
  expect_failure(w.b, WcStatus::kRemoteInvalidRequest);
  EXPECT_EQ(w.b.device.query_qp(w.qb)->state, QpState::kErr);
}

// --- writes beyond their region ---

// srnic's packets carry no length of their message: those that lie inside are placed before one is refused.
TEST_P(VerbsTest, OfAWriteThatEndsOutsideItsRegionNothingIsPlaced) {
  TwoDevices w(GetParam());
  std::fill(w.a.bytes().begin(), w.a.bytes().end(), 0xAB);
  w.post(w.request(WrOpcode::kWrite, 0, 1000, w.b.bytes().size() - 900));
  w.run();
  expect_failure(w.a, WcStatus::kRemoteAccess);
  if (GetParam() == wire::Mode::kSrnic) return;
  EXPECT_TRUE(std::all_of(w.b.bytes().begin(), w.b.bytes().end(), [](std::uint8_t v) { return v == 0; }));
}

// --- order in memory ---

// A program that watches the last byte of a WRITE must find everything before it in place.
TEST_P(VerbsTest, StrictlyOrderedWritesShowTheirLastByteLast) {
  DeviceConfig config;
  config.strict_write_order = true;
  for (int lost = 1; lost <= 8; ++lost) {
    SCOPED_TRACE("lost packet " + std::to_string(lost));
    TwoDevices w(GetParam(), config);
    w.lose_packet = lost;
    std::fill(w.a.bytes().begin(), w.a.bytes().end(), 0xAB);
    w.post(w.request(WrOpcode::kWrite, 0, 2000, 0));
    struct : Onlooker {
      void arrived() override {
        const auto hole = std::find(seen->begin(), seen->begin() + 2000, 0);
        EXPECT_TRUE(std::all_of(hole, seen->begin() + 2000, [](std::uint8_t v) { return v == 0; }));
      }
      const std::vector<std::uint8_t>* seen = nullptr;
    } in_order;
    in_order.seen = &w.b.bytes();
    w.onlooker = &in_order;
    w.run();
    expect_success(w.a, {0});
    EXPECT_EQ(w.b.bytes()[1999], 0xAB);
    EXPECT_EQ(w.b.device.loss_blocks_in_use(), 0U);
  }
}

// --- end-to-end credits ---

// A peer that counts receives says so in its ACKs; we read the ACK, and promise no number ourselves.
TEST_P(VerbsTest, AcksWithCreditsAreAcks) {
  TwoDevices w(GetParam());
  ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 0, 1024, 0)));
  struct : Onlooker {
    void arrives(wire::Header& h) override {
      if (h.opcode != wire::kAcknowledge) return;
      EXPECT_EQ(h.syndrome, wire::kSyndromeAck);
      h.syndrome = 0x05;
      seen = true;
    }
    bool seen = false;
  } credits;
  w.onlooker = &credits;
  w.post(w.request(WrOpcode::kSend, 0, 600, 0));
  w.run();
  expect_success(w.a, {0});
  EXPECT_TRUE(credits.seen);
  EXPECT_EQ(w.a.device.counters().get(Counter::tx_retransmitted), 0U);
}

// --- receiver not ready ---

// In irn what follows the refused SEND is kept, and the NACK for it must not make the sender forget the SEND.
TEST_P(VerbsTest, ARefusedSendGoesOutAgainThoughLaterPacketsArrived) {
  with_every_loss([](TwoDevices& w) {
    w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
    w.post(w.request(WrOpcode::kSend, 0, 4, 0));
    w.post(w.request(WrOpcode::kRead, 0, 3000, 0));
    w.post(w.request(WrOpcode::kWrite, 0, 600, 0));
    w.run(microseconds(300));
    ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 4096, 64, 1)));
    w.run();
    expect_success(w.a, {0, 1, 2, 3});
    expect_success(w.b, {1});
  });
}

TEST_P(VerbsTest, AReceiverThatIsNeverReadyIsGivenUp) {
  TwoDevices w(GetParam());
  w.rnr_retry = 2;
  w.qa = w.a.create();
  w.qb = w.b.create();
  w.connect(w.qa, w.qb);
  w.post(w.request(WrOpcode::kSend, 0, 4, 0));
  w.run();
  expect_failure(w.a, WcStatus::kRnrRetryExceeded);
  EXPECT_EQ(w.a.device.counters().get(Counter::nak_rnr), 3U);
}

// ... and a READ before it, whose answer is still on its way or lost, completes all the same.
TEST_P(VerbsTest, AReadBeforeARefusedSendCompletesFirst) {
  int sent = 1;
  for (int lost = 0; lost <= sent; ++lost) {
    SCOPED_TRACE("lost packet " + std::to_string(lost));
    TwoDevices w(GetParam());
    w.rnr_retry = 0;
    w.qa = w.a.create();
    w.qb = w.b.create();
    w.connect(w.qa, w.qb);
    w.lose_packet = lost;
    w.post(w.request(WrOpcode::kRead, 0, 1500, 0));
    w.post(w.request(WrOpcode::kSend, 0, 4, 0));
    w.post(w.request(WrOpcode::kWrite, 0, 4, 0));
    w.run();
    const std::vector<Completion> got = w.a.completions();
    ASSERT_EQ(got.size(), 3U);
    EXPECT_EQ(got[0].status, WcStatus::kSuccess);
    EXPECT_EQ(got[1].status, WcStatus::kRnrRetryExceeded);
    EXPECT_EQ(got[2].status, WcStatus::kFlushed);
    if (lost == 0) sent = w.sent;
  }
}

// Its fence was open when it first went out; a READ behind it may not hold up its repair.
TEST_P(VerbsTest, ARefusedSendWithAFenceGoesOutAgain) {
  with_every_loss([](TwoDevices& w) {
    w.post(w.request(WrOpcode::kSend, 0, 4, 0, kSendSignaled | kSendFence));
    w.post(w.request(WrOpcode::kRead, 0, 3000, 0));
    w.run(microseconds(300));
    ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 4096, 64, 1)));
    w.run();
    expect_success(w.a, {0, 1});
  });
}

// --- draining ---

QpAttr to(QpState state, bool notify = false) {
  QpAttr t;
  t.state = state;
  t.sqd_notify = notify;
  return t;
}

TEST_P(VerbsTest, DrainingFinishesWhatHadBegunAndHoldsTheRest) {
  with_every_loss([](TwoDevices& w) {
    w.post(w.request(WrOpcode::kWrite, 0, 256 * 100, 0));  // takes several turns
    w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
    w.turn();
    ASSERT_TRUE(w.a.device.modify_qp(w.qa, to(QpState::kSqd, true), kAttrState | kAttrSqdNotify, w.now));
    EXPECT_TRUE(w.a.device.query_qp(w.qa)->sq_draining);
    EXPECT_TRUE(w.a.events().empty());
    w.post(w.request(WrOpcode::kRead, 0, 8, 0));
    w.run();
    expect_success(w.a, {0});
    EXPECT_FALSE(w.a.device.query_qp(w.qa)->sq_draining);
    const std::vector<DeviceEvent> events = w.a.events();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].kind, DeviceEventKind::kSqDrained);
    ASSERT_TRUE(w.a.device.modify_qp(w.qa, to(QpState::kRts), kAttrState, w.now));
    w.run();
    expect_success(w.a, {1, 2});
    EXPECT_TRUE(w.a.events().empty());
  });
}

TEST_P(VerbsTest, AnIdleQueueIsDrainedAtOnce) {
  TwoDevices w(GetParam());
  ASSERT_TRUE(w.a.device.modify_qp(w.qa, to(QpState::kSqd, true), kAttrState | kAttrSqdNotify, w.now));
  ASSERT_EQ(w.a.events().size(), 1U);
  QpAttr more;
  more.max_rd_atomic = 1;
  more.timeout = 10;
  ASSERT_TRUE(w.a.device.modify_qp(w.qa, more, kAttrMaxRdAtomic | kAttrTimeout, w.now));
  ASSERT_TRUE(w.a.device.modify_qp(w.qa, to(QpState::kRts), kAttrState, w.now));
  w.post(w.request(WrOpcode::kRead, 0, 600, 0));
  w.post(w.request(WrOpcode::kRead, 0, 600, 0));
  w.run();
  expect_success(w.a, {0, 1});
}

INSTANTIATE_TEST_SUITE_P(Modes, VerbsTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
