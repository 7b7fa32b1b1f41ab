// A completion queue of several shards is one queue to the program (docs/ARCHITECTURE.md#shards): what wakes
// it, what it holds, and what happens when it is too small.
#include <gtest/gtest.h>
#include <poll.h>

#include "live/engine/shard_hosts.h"

namespace weft::live {
namespace {

// A program arms, every shard gets an entry, and there is one event. A poll that asks for enough then finds
// all entries, for a program that gets less takes the queue for empty and sleeps.
TEST(Shards, WakeAProgramOnceForEachArming) {
  Host a(1);
  Host b(2);
  for (std::uint32_t i = 0; i < kShards; ++i) join(a, b, i, i);
  for (std::uint64_t round = 0; round < 20; ++round) {
    for (Qp* const qp : b.qps) b.receive_apart(qp, round, 64);
    ASSERT_TRUE(b.context->request_notify(b.cq, false).has_value());
    for (Qp* const qp : a.qps) ASSERT_TRUE(a.send(qp, WrOpcode::kSend, round, 0, 64));
    ASSERT_EQ(a.wait(kShards).size(), kShards);
    ASSERT_TRUE(b.filled(b.cq, 1));
    ASSERT_TRUE(b.told_within(20'000));
    EXPECT_EQ(b.take_event(), b.cq);
    EXPECT_FALSE(b.told_within(0)) << "a second event for one arming";
    Completion c[16];
    EXPECT_EQ(b.context->poll_cq(b.cq, c), kShards);
  }
}

// The shard that did not tell stays armed for any entry; a program that then asks for solicited ones is not
// woken by others.
TEST(Shards, ForgetWhatAnEarlierArmingAskedFor) {
  Host a(1);
  Host b(2);
  for (std::uint32_t i = 0; i < kShards; ++i) join(a, b, i, i);
  for (Qp* const qp : b.qps) {
    for (std::uint64_t i = 0; i < 8; ++i) b.receive_apart(qp, i, 64);
  }
  const auto send = [&](std::size_t q, std::uint8_t flags) {
    ASSERT_TRUE(a.send(a.qps[q], WrOpcode::kSend, 0, 0, 64, nullptr, 0, flags));
    ASSERT_EQ(a.wait(1).size(), 1U);
  };
  ASSERT_TRUE(b.context->request_notify(b.cq, false).has_value());
  send(0, 0);
  ASSERT_TRUE(b.told_within(20'000));
  b.take_event();
  ASSERT_EQ(b.wait(1).size(), 1U);
  ASSERT_TRUE(b.context->request_notify(b.cq, true).has_value());
  send(1, 0);
  ASSERT_EQ(b.wait(1).size(), 1U);
  EXPECT_FALSE(b.told_within(0));
  send(1, kSendSolicited);
  EXPECT_TRUE(b.told_within(20'000));
}

// Armed before its shard had a queue pair of this queue.
TEST(Shards, WakeForAQueuePairThatIsMadeLater) {
  Host a(1);
  Host b(2);
  join(a, b, 0, 0);
  ASSERT_TRUE(b.context->request_notify(b.cq, false).has_value());
  join(a, b, 1, 1);
  b.receive_apart(b.qps[1], 5, 64);
  ASSERT_TRUE(a.send(a.qps[1], WrOpcode::kSend, 0, 0, 64));
  ASSERT_TRUE(b.told_within(20'000));
  b.take_event();
  Completion c[4];
  ASSERT_EQ(b.context->poll_cq(b.cq, c), 1U);
  EXPECT_EQ(c[0].wr_id, 5U);
}

// A smaller queue keeps what waits in all shards, and is refused if that is too much.
TEST(Shards, ResizeAQueueAsAWhole) {
  Host a(1);
  Host b(2);
  for (std::uint32_t i = 0; i < kShards; ++i) join(a, b, i, i);
  for (Qp* const qp : b.qps) {
    for (std::uint64_t i = 0; i < 3; ++i) b.receive_apart(qp, i, 64);
    for (std::uint64_t i = 0; i < 3; ++i)
      ASSERT_TRUE(a.send(a.qps[qp == b.qps[0] ? 0 : 1], WrOpcode::kSend, i, 0, 64));
  }
  ASSERT_EQ(a.wait(3 * kShards).size(), 3 * kShards);
  ASSERT_TRUE(b.filled(b.cq, 3));
  EXPECT_FALSE(b.context->resize_cq(b.cq, 3 * kShards - 1).has_value());
  EXPECT_FALSE(b.context->resize_cq(b.cq, 0).has_value());
  ASSERT_TRUE(b.context->resize_cq(b.cq, 3 * kShards).has_value());
  EXPECT_EQ(b.cq->entries, 3 * kShards);
  ASSERT_TRUE(b.context->resize_cq(b.cq, 4096).has_value());
  EXPECT_EQ(b.wait(3 * kShards).size(), 3 * kShards);
}

// Whose queue runs over in every shard hears of it once.
TEST(Shards, TellOfAnOverrunOnce) {
  Host a(1);
  Host b(2);
  Cq* const small = b.new_cq(1);
  for (std::uint32_t i = 0; i < kShards; ++i) {
    Qp* const x = a.make(i);
    Qp* const y = b.make(i, small);
    ASSERT_TRUE(connect(a, x, b, y) && connect(b, y, a, x));
    for (std::uint64_t m = 0; m < 3; ++m) b.receive_apart(y, m, 64);
  }
  for (int m = 0; m < 3; ++m) {
    for (Qp* const qp : a.qps) static_cast<void>(a.send(qp, WrOpcode::kSend, 0, 0, 64));
  }
  // Each end of a connection fails: three requests and no answer for the last.
  ASSERT_EQ(a.wait(3 * kShards).size(), 3 * kShards);
  int overruns = 0;
  int failures = 0;
  const auto end = SteadyClock::now() + kPatience;
  while (failures < static_cast<int>(kShards) && SteadyClock::now() < end) {
    pollfd fd{b.context->async_fd(), POLLIN, 0};
    if (::poll(&fd, 1, 100) != 1) continue;
    AsyncEvent e;
    ASSERT_TRUE(b.context->get_async_event(e));
    b.context->ack_async_event(e);
    overruns += e.kind == DeviceEventKind::kCqError ? 1 : 0;
    failures += e.kind == DeviceEventKind::kQpFatal ? 1 : 0;
  }
  EXPECT_EQ(overruns, 1);
  EXPECT_EQ(failures, static_cast<int>(kShards));
  EXPECT_TRUE(small->overran.load());
}

}  // namespace
}  // namespace weft::live
