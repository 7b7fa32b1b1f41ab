// Completion queues that are too small (docs/protocol/verbs.md#completion-queues).
#include "core/transport/completion_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

// The user is told once. Whoever waits for another queue's entry must hear of it, however many are lost here.
TEST(CompletionQueue, AnOverflowIsToldOnceAndHidesNoOtherEvent) {
  Hand w(wire::Mode::kRoce);
  QpInit init;
  init.pd = w.b.pd;
  init.send_cq = init.recv_cq = *w.b.device.create_cq(1);
  const Qpn q = *w.b.device.create_qp(init);
  ASSERT_TRUE(w.b.step(q, {}, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccess));
  ASSERT_TRUE(w.b.step(q, {}, QpState::kErr, 0));
  constexpr int kMany = 20'000;  // more than the device keeps events
  for (int i = 0; i < kMany; ++i) ASSERT_TRUE(w.b.device.post_recv(q, {1, {}}));
  ASSERT_TRUE(w.b.device.request_notify(w.b.cq, false));
  ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 0, 64, 1)));
  w.post(w.request(WrOpcode::kSend, 0, 8, 0));
  w.play();
  const std::vector<DeviceEvent> events = w.b.events();
  const auto count = [&](DeviceEventKind kind) {
    return std::count_if(events.begin(), events.end(), [&](const DeviceEvent& e) { return e.kind == kind; });
  };
  EXPECT_EQ(count(DeviceEventKind::kCqError), 1);
  EXPECT_EQ(count(DeviceEventKind::kCompletion), 1);
  EXPECT_EQ(w.b.device.counters().get(Counter::cq_overflow), kMany - 1U);
}

// The ring has gone round, so what stays moves across its end.
TEST(CompletionQueue, ForgetsOneQueuePairAndKeepsTheOrderOfTheOthers) {
  CompletionQueue cq(5);
  std::array<Completion, 5> out;
  const auto push = [&](std::uint64_t id, std::uint32_t qpn) {
    Completion c;
    c.wr_id = id;
    c.qpn = {qpn};
    ASSERT_EQ(cq.push(c, false), CompletionQueue::Push::kQuiet);
  };
  for (std::uint64_t id = 0; id < 3; ++id) push(id, 1);
  ASSERT_EQ(cq.poll(out), 3U);
  push(3, 1);
  push(4, 2);
  push(5, 1);
  push(6, 2);
  push(7, 1);
  cq.forget({1});
  EXPECT_EQ(cq.size(), 2U);
  for (std::uint64_t id = 8; id < 11; ++id) push(id, 3);
  ASSERT_EQ(cq.poll(out), 5U);
  std::vector<std::uint64_t> ids;
  for (const Completion& c : out) ids.push_back(c.wr_id);
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{4, 6, 8, 9, 10}));
}

class OverrunTest : public ::testing::TestWithParam<wire::Mode> {
 protected:
  // A pair whose end at b reports to these.
  static Qpn pair(Hand& w, CqId send, CqId receive, Qpn& at_a) {
    QpInit init;
    init.pd = w.b.pd;
    init.send_cq = send;
    init.recv_cq = receive;
    const Qpn at_b = *w.b.device.create_qp(init);
    at_a = w.a.create();
    w.connect(at_a, at_b);
    return at_b;
  }
  static std::vector<DeviceEventKind> kinds(const std::vector<DeviceEvent>& events) {
    std::vector<DeviceEventKind> out;
    for (const DeviceEvent& e : events) out.push_back(e.kind);
    return out;
  }
};

// Every queue pair that reports to it fails, whether or not it had an entry for it; its user hears of the
// queue and of each queue pair, and who waited for an event gets one. What could not be reported is not
// acknowledged.
TEST_P(OverrunTest, FailsTheQueuePairsThatReportToIt) {
  using K = DeviceEventKind;
  Hand w(GetParam());
  const CqId small = *w.b.device.create_cq(2);
  Qpn busy_a;
  Qpn idle_a;
  const Qpn busy = pair(w, w.b.cq, small, busy_a);
  const Qpn idle = pair(w, small, w.b.cq, idle_a);
  ASSERT_TRUE(w.b.device.post_recv(busy, w.receive(w.b, 4096, 64, 1)));
  ASSERT_TRUE(w.b.device.post_recv(busy, w.receive(w.b, 4096, 64, 2)));
  ASSERT_TRUE(w.b.device.post_recv(busy, w.receive(w.b, 4096, 64, 3)));
  ASSERT_TRUE(w.b.device.post_recv(idle, w.receive(w.b, 4096, 64, 9)));
  w.qa = busy_a;
  w.post(w.request(WrOpcode::kSend, 0, 8, 0));
  w.post(w.request(WrOpcode::kSend, 0, 8, 0));
  w.play();
  ASSERT_TRUE(w.b.device.request_notify(small, false));
  w.post(w.request(WrOpcode::kSend, 0, 8, 0));
  w.play();
  EXPECT_EQ(statuses(w.a), (Statuses{WcStatus::kSuccess, WcStatus::kSuccess, WcStatus::kRetryExceeded}));
  const std::vector<DeviceEvent> events = w.b.events();
  ASSERT_EQ(kinds(events), (std::vector{K::kCqError, K::kCompletion, K::kQpFatal, K::kQpFatal}));
  EXPECT_EQ(events[0].cq, small);
  EXPECT_EQ(w.b.device.query_qp(busy)->state, QpState::kErr);
  EXPECT_EQ(w.b.device.query_qp(idle)->state, QpState::kErr);
  EXPECT_EQ(w.b.device.query_qp(w.qb)->state, QpState::kRts) << "it reports elsewhere";
  EXPECT_EQ(statuses(w.b), Statuses{WcStatus::kFlushed}) << "the other queue of the idle one is whole";

  Completion got[4];
  EXPECT_EQ(w.b.device.poll_cq(small, got), 2U);
  EXPECT_EQ(w.b.device.poll_cq(small, got), 0U);
  EXPECT_FALSE(w.b.device.request_notify(small, false));
  EXPECT_FALSE(w.b.device.resize_cq(small, 16));
}

// The requester's side, in the middle of completing several requests at once.
TEST_P(OverrunTest, OfRequestsEndsTheirQueuePair) {
  Hand w(GetParam());
  const CqId small = *w.b.device.create_cq(2);
  Qpn at_a;
  const Qpn at_b = pair(w, small, w.b.cq, at_a);
  ASSERT_TRUE(w.b.device.post_recv(at_b, w.receive(w.b, 4096, 64, 9)));
  for (int i = 0; i < 4; ++i) {
    SendWr write = w.request(WrOpcode::kWrite, 0, 8, 0);
    const Sge from{Side::kBase, 8, w.b.mr.lkey};
    write.sges = {&from, 1};
    write.rkey = w.a.mr.rkey;
    ASSERT_TRUE(w.b.device.post_send(at_b, write));
  }
  w.play();
  EXPECT_EQ(w.b.device.query_qp(at_b)->state, QpState::kErr);
  EXPECT_EQ(kinds(w.b.events()), (std::vector{DeviceEventKind::kCqError, DeviceEventKind::kQpFatal}));
  EXPECT_EQ(statuses(w.b), Statuses{WcStatus::kFlushed});
  w.b.device.check_invariants();
}

// Several messages of one batch share an ACK. One that waits to leave when the queue runs over never does: it
// would acknowledge what was never reported.
TEST_P(OverrunTest, TakesBackTheAckThatOthersOfTheBatchAskedFor) {
  DeviceConfig config;
  config.ack_coalesce = true;
  Hand w(GetParam(), config);
  const CqId small = *w.b.device.create_cq(2);
  Qpn at_a;
  const Qpn at_b = pair(w, w.b.cq, small, at_a);
  w.qa = at_a;
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(w.b.device.post_recv(at_b, w.receive(w.b, 4096, 64, i)));
    w.post(w.request(WrOpcode::kSend, 0, 8, 0));
  }
  w.to(w.b, w.from(w.a));
  EXPECT_EQ(w.b.device.query_qp(at_b)->state, QpState::kErr);
  EXPECT_TRUE(w.from(w.b).empty()) << "nothing is acknowledged any more";
  w.play();
  EXPECT_EQ(statuses(w.a),
            (Statuses{WcStatus::kRetryExceeded, WcStatus::kFlushed, WcStatus::kFlushed, WcStatus::kFlushed}));
  w.b.device.check_invariants();
}

INSTANTIATE_TEST_SUITE_P(Modes, OverrunTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
