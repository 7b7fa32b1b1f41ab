// Shared receive queues (docs/protocol/verbs.md#shared-receive-queues): queue pairs draw from one, in order,
// in every mode.
#include "core/transport/shared_receive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/transport/two_devices.h"

namespace weft {
namespace {

class SharedReceiveTest : public ::testing::TestWithParam<wire::Mode> {};

struct Shared : TwoDevices {
  explicit Shared(wire::Mode m) : TwoDevices(m) {
    srq = *b.device.create_srq(b.pd, {16, 1, 0});
    for (int i = 0; i < 2; ++i) {
      mine[i] = a.create();
      theirs[i] = b.create(srq);
      connect(mine[i], theirs[i]);
    }
  }
  void send(int queue, std::uint32_t length, std::uint8_t fill) {
    std::fill_n(a.bytes().begin() + fill * 512, length, fill);
    ASSERT_TRUE(a.device.post_send(mine[queue], request(WrOpcode::kSend, fill * 512U, length, 0)));
  }
  SrqId srq{};
  Qpn mine[2];
  Qpn theirs[2];
};

TEST_P(SharedReceiveTest, QueuePairsShareReceives) {
  int sent = 0;
  for (int lost = 0; lost <= sent; ++lost) {
    SCOPED_TRACE("lost packet " + std::to_string(lost));
    Shared w(GetParam());
    w.lose_packet = lost;
    for (std::uint64_t i = 0; i < 8; ++i)
      ASSERT_TRUE(w.b.device.post_srq_recv(w.srq, w.receive(w.b, 8192 + i * 512, 512, i)));
    for (int i = 0; i < 8; ++i) w.send(i % 2, 300, static_cast<std::uint8_t>(1 + i));
    w.run();
    EXPECT_EQ(w.a.completions().size(), 8U);
    std::vector<std::uint8_t> seen[2];
    for (const Completion& c : w.b.completions()) {
      ASSERT_EQ(c.status, WcStatus::kSuccess);
      ASSERT_EQ(c.byte_len, 300U);
      const std::uint8_t* at = w.b.bytes().data() + 8192 + c.wr_id * 512;
      EXPECT_TRUE(std::all_of(at, at + 300, [&](std::uint8_t v) { return v == at[0]; }));
      seen[c.qpn == w.theirs[0] ? 0 : 1].push_back(at[0]);
    }
    EXPECT_THAT(seen[0], ::testing::ElementsAre(1, 3, 5, 7));
    EXPECT_THAT(seen[1], ::testing::ElementsAre(2, 4, 6, 8));
    if (lost == 0) sent = w.sent;
  }
  EXPECT_GT(sent, 16);
}

TEST_P(SharedReceiveTest, AnEmptySharedQueueMakesTheSenderWait) {
  Shared w(GetParam());
  w.send(0, 300, 1);
  w.run(milliseconds(1));
  EXPECT_TRUE(w.a.completions().empty());
  ASSERT_TRUE(w.b.device.post_srq_recv(w.srq, w.receive(w.b, 8192, 512, 0)));
  w.run();
  const std::vector<Completion> done = w.a.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, WcStatus::kSuccess);
  EXPECT_GT(w.a.device.counters().get(Counter::nak_rnr), 0U);
}

TEST_P(SharedReceiveTest, TheLimitIsToldOnce) {
  Shared w(GetParam());
  for (std::uint64_t i = 0; i < 6; ++i)
    ASSERT_TRUE(w.b.device.post_srq_recv(w.srq, w.receive(w.b, 8192 + i * 512, 512, i)));
  ASSERT_TRUE(w.b.device.set_srq_limit(w.srq, 4));
  for (int i = 0; i < 5; ++i) w.send(0, 8, static_cast<std::uint8_t>(1 + i));
  w.run();
  const std::vector<DeviceEvent> events = w.b.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, DeviceEventKind::kSrqLimit);
  EXPECT_EQ(events[0].srq, w.srq);
  EXPECT_EQ(w.b.device.query_srq(w.srq)->limit, 0U);
}

// A program sets the limit while others take receives: if they were faster, it hears of it all the same.
TEST_P(SharedReceiveTest, ALimitThatComesTooLateIsToldAtOnce) {
  Shared w(GetParam());
  for (std::uint64_t i = 0; i < 6; ++i)
    ASSERT_TRUE(w.b.device.post_srq_recv(w.srq, w.receive(w.b, 8192 + i * 512, 512, i)));
  for (int i = 0; i < 6; ++i) w.send(0, 8, static_cast<std::uint8_t>(1 + i));
  w.run();
  ASSERT_TRUE(w.b.device.set_srq_limit(w.srq, 4));
  const std::vector<DeviceEvent> events = w.b.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, DeviceEventKind::kSrqLimit);
  EXPECT_EQ(w.b.device.query_srq(w.srq)->limit, 0U);
  ASSERT_TRUE(w.b.device.set_srq_limit(w.srq, 0));
  EXPECT_TRUE(w.b.events().empty()) << "0 is no limit";
}

TEST_P(SharedReceiveTest, AFailedQueuePairLeavesTheSharedQueueAlone) {
  Shared w(GetParam());
  for (std::uint64_t i = 0; i < 3; ++i)
    ASSERT_TRUE(w.b.device.post_srq_recv(w.srq, w.receive(w.b, 8192 + i * 512, 512, i)));
  QpAttr broken;
  broken.state = QpState::kErr;
  ASSERT_TRUE(w.b.device.modify_qp(w.theirs[0], broken, kAttrState, w.now));
  EXPECT_TRUE(w.b.completions().empty());
  const std::vector<DeviceEvent> events = w.b.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, DeviceEventKind::kLastWqeReached);
  for (int i = 0; i < 3; ++i) w.send(1, 8, static_cast<std::uint8_t>(1 + i));
  w.run();
  EXPECT_EQ(w.b.completions().size(), 3U);
  EXPECT_EQ(w.b.device.destroy_srq(w.srq).error(), Errc::kBusy);
  ASSERT_TRUE(w.b.device.destroy_qp(w.theirs[0]));
  ASSERT_TRUE(w.b.device.destroy_qp(w.theirs[1]));
  EXPECT_TRUE(w.b.device.destroy_srq(w.srq));
}

TEST_P(SharedReceiveTest, AQueuePairOnASharedQueueHasNoReceivesOfItsOwn) {
  Shared w(GetParam());
  EXPECT_FALSE(w.b.device.post_recv(w.theirs[0], w.receive(w.b, 0, 8, 1)));
}

TEST(SharedReceive, AProtectionDomainLivesAsLongAsItsSharedQueue) {
  Side s(1, DeviceConfig{});
  const PdId pd = *s.device.alloc_pd();
  const SrqId srq = *s.device.create_srq(pd, {});
  EXPECT_EQ(s.device.dealloc_pd(pd).error(), Errc::kBusy);
  ASSERT_TRUE(s.device.destroy_srq(srq));
  EXPECT_TRUE(s.device.dealloc_pd(pd));
}

// What a queue pair holds of a shared queue is not a ring that its user asked for.
TEST(SharedReceive, SmallRingsAreNoObstacle) {
  DeviceConfig small;
  small.max_ring = 2;
  Side s(1, small);
  QpInit init;
  init.pd = s.pd;
  init.send_cq = init.recv_cq = s.cq;
  init.caps.max_send_wr = 2;
  init.srq = *s.device.create_srq(s.pd, {2, 1, 0});
  EXPECT_TRUE(s.device.create_qp(init));
}

INSTANTIATE_TEST_SUITE_P(Modes, SharedReceiveTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
