// Which call moves packets, without sockets, threads or time: two soft NICs over a wire in memory, driven by
// polls alone. Whatever a poll receives may let something leave, and that leaves in the next poll at the
// latest; nothing waits for a timer, for there is none (timeout 0).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/transport/cc/controller.h"
#include "live/engine/by_hand.h"
#include "live/engine/sizing.h"

namespace weft::live {
namespace {

using by_hand::End;

class DrivingTest : public ::testing::TestWithParam<wire::Mode> {
 protected:
  DrivingTest() {
    a.wire->peer = b.wire;
    b.wire->peer = a.wire;
    qa = a.create();
    qb = b.create();
    a.connect(qa, b, qb);
    b.connect(qb, a, qa);
  }
  // Both ends poll in turn until a has that many completions; how often, or nothing.
  int polls_until(std::size_t completions, std::size_t most = 16) {
    std::size_t got = 0;
    for (int i = 1; i <= 2000; ++i) {
      got += a.poll(most);
      if (got >= completions) return i;
      b.poll();
    }
    return 0;
  }
  End a{1, GetParam()};
  End b{2, GetParam()};
  Qp* qa = nullptr;
  Qp* qb = nullptr;
};

// Eight of them may be under way, and every answer makes room for the next.
TEST_P(DrivingTest, ReadsBehindTheLimitFollowWithoutATimer) {
  for (const std::size_t most : {1U, 16U}) {
    for (int i = 0; i < 24; ++i) a.post(qa, WrOpcode::kRead, b, 4096);
    EXPECT_GT(polls_until(24, most), 0) << most;
  }
}

// More than the path's credit: what an ACK frees is for the first in line, which may be another queue pair.
TEST_P(DrivingTest, WhoWaitsForThePathFollowsWithoutATimer) {
  Qp* more_a = a.create();
  Qp* more_b = b.create();
  a.connect(more_a, b, more_b);
  b.connect(more_b, a, more_a);
  for (int i = 0; i < 8; ++i) {
    a.post(qa, WrOpcode::kWrite, b, 1U << 19U);
    a.post(more_a, WrOpcode::kWrite, b, 1U << 19U);
  }
  EXPECT_GT(polls_until(16, 1), 0);
}

// A queue pair that is destroyed gives its path credit to those in line, and they send at once: the last poll
// may be over.
TEST_P(DrivingTest, AQueuePairThatGoesLetsOthersSend) {
  Qp* more_a = a.create();
  Qp* more_b = b.create();
  a.connect(more_a, b, more_b);
  b.connect(more_b, a, more_a);
  for (int i = 0; i < 4; ++i) a.post(qa, WrOpcode::kWrite, b, 1U << 19U);
  a.post(more_a, WrOpcode::kWrite, b, 4096);
  const int before = a.wire->sent;
  EXPECT_TRUE(a.context->destroy_qp(qa).has_value());
  EXPECT_GT(a.wire->sent, before);
  EXPECT_GT(polls_until(1), 0);
}

// A window is many trains. What comes back for the first is seen before the last has left, and a NAK makes
// the rest of them needless.
TEST_P(DrivingTest, ANakIsHeardBeforeTheWindowHasLeft) {
  constexpr int kTrains = (1U << 20U) / 4096 / 15;
  a.wire->lose = 1;
  a.post(qa, WrOpcode::kWrite, b, 1U << 20U);
  for (int i = 0; i < 100 && a.poll() == 0; ++i) {
    for (int k = 0; k < 4; ++k) b.poll();  // a train each: it keeps up
  }
  EXPECT_GT(a.wire->sent, kTrains);
  EXPECT_LE(a.wire->sent, kTrains + 8);
}

// A program may post for long before it polls, and what it posts shares trains all the same. It is another
// thing if the machine took the core away between two posts, which is why the best of some attempts counts.
TEST_P(DrivingTest, PostsOfAProgramThatHasNotPolledForLongShareTrains) {
  constexpr int kPosts = 60;
  int least = kPosts;
  for (int attempt = 0; attempt < 20; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const int before = a.wire->sent;
    for (int i = 0; i < kPosts; ++i) a.post(qa, WrOpcode::kWrite, b, 64);
    least = std::min(least, a.wire->sent - before);
    EXPECT_GT(polls_until(kPosts), 0);
  }
  EXPECT_LE(least, 1 + kPosts / 2);  // the first goes alone
}

// On a long path throughput is what may be in flight. That is the path's credit in every mode, at every path
// MTU.
TEST_P(DrivingTest, TheCreditOfThePathIsWhatMayBeInFlight) {
  for (const std::uint32_t mtu : {256U, 1024U, 4096U}) {
    End x{3, GetParam()};
    End y{4, GetParam()};
    Qp* const to = y.create();
    Qp* const from = x.create();
    x.connect(from, y, to, mtu);
    x.post(from, WrOpcode::kWrite, y, 1U << 20U);
    for (int i = 0; i < 200; ++i) x.poll();
    const WireFacts& f = x.wire->facts();
    const std::uint64_t credit = size_device(f, 1).path_credit.n;
    EXPECT_GE(x.wire->frames * (mtu + 768) * 10, credit * 9) << mtu;
  }
}

// A receiver that leaves as soon as it has its message has acknowledged it, and more than once: nobody will
// be there to say it again.
TEST_P(DrivingTest, AnyOneOfTheLastAcksIsEnough) {
  for (int lost = 0; lost < 3; ++lost) {
    End x{8, GetParam()};
    End y{9, GetParam()};
    x.wire->peer = y.wire;
    y.wire->peer = x.wire;
    Qp* const from = x.create();
    Qp* const to = y.create();
    x.connect(from, y, to);
    y.connect(to, x, from);
    y.receive(to);
    y.wire->lose_frames = lost;
    x.post(from, WrOpcode::kSend, y, 64);
    EXPECT_EQ(y.poll(), 1U);
    EXPECT_TRUE(y.context->destroy_qp(to).has_value());
    std::size_t done = 0;
    for (int i = 0; i < 10 && done == 0; ++i) done = x.poll();
    EXPECT_EQ(done, 1U) << lost;
  }
}

// The program chooses the DSCP of what it sends. Whether switches may mark it is the controller's to say:
// marks that nobody listens to would only keep packets from being dropped.
TEST_P(DrivingTest, WhatAControllerListensForMayBeMarked) {
  for (const auto& [name, ecn] :
       {std::pair{"none", 0}, {"dctcp", wire::kEcnEct0}, {"dcqcn", wire::kEcnEct0}, {"timely", 0}}) {
    Options o;
    o.controller = find_controller(name).value();
    End x{5, GetParam(), o};
    End y{6, GetParam()};
    x.wire->peer = y.wire;
    y.wire->peer = x.wire;
    Qp* const to = y.create();
    Qp* const from = x.create();
    x.connect(from, y, to, 4096, 0xB8 | wire::kEcnCe);
    y.connect(to, x, from, 4096, 0x20);
    x.post(from, WrOpcode::kWrite, y, 64);
    EXPECT_EQ(x.wire->traffic_class, 0xB8 | ecn) << name;
    y.poll();
    y.poll();
    EXPECT_EQ(y.wire->sent, 1);
    EXPECT_EQ(y.wire->traffic_class, 0x20) << name << ": of an ACK";
  }
}

// A program that only knows IP says with the DSCP whose turn comes first.
TEST_P(DrivingTest, TheServiceLevelIsThatOfTheDscpWhereConfigured) {
  for (const bool dscp : {false, true}) {
    Options o;
    o.level_from_dscp = dscp;
    End x{7, GetParam(), o};
    Qp* const q = x.create();
    x.connect(q, a, qa, 4096, 0xB8);
    EXPECT_EQ(x.context->query_qp(q)->service_level, dscp ? 0xB8 >> 5 : 9);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, DrivingTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft::live
