// Completion queues that are too small (docs/protocol/verbs.md#completion-queues).
#include "core/transport/completion_queue.h"

#include <gtest/gtest.h>

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
  const std::vector<Event> events = w.b.events();
  const auto count = [&](EventKind kind) {
    return std::count_if(events.begin(), events.end(), [&](const Event& e) { return e.kind == kind; });
  };
  EXPECT_EQ(count(EventKind::kCqError), 1);
  EXPECT_EQ(count(EventKind::kCompletion), 1);
  EXPECT_EQ(w.b.device.counters().get(Counter::cq_overflow), kMany - 1U);
}

}  // namespace
}  // namespace weft
