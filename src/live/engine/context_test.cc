// Two soft NICs in one process, on two loopback addresses of its own, over real sockets with real threads:
// WRITE, SEND and READ in roce and irn, with and without loss, every byte checked; a target that sleeps;
// events; teardown. The sanitizer build runs the same tests.
#include "live/engine/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "live/engine/nic_state.h"
#include "live/engine/sleepers.h"
#include "live/engine/two_ends.h"

namespace weft::live {
namespace {

using ::testing::HasSubstr;
struct World {
  wire::Mode mode;
  std::uint32_t loss;  // millionths
  Duration delay;
  const char* name;
};

class LiveTest : public ::testing::TestWithParam<World> {
 protected:
  static Options options() {
    Options o;
    o.mode = GetParam().mode;
    o.impairments.loss = GetParam().loss;
    o.impairments.delay = GetParam().delay;
    o.seed = 12345;
    return o;
  }
};

void expect_success(const std::vector<Completion>& got, std::size_t count) {
  ASSERT_EQ(got.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(got[i].status, WcStatus::kSuccess) << i;
    EXPECT_EQ(got[i].wr_id, i);
  }
}

// Messages of many sizes around packet and train borders are written to the other end's memory and
// read back from there; both copies equal the original.
TEST_P(LiveTest, WritesAndReadsBackEveryByte) {
  End a(1, options());
  End b(2, options());
  a.connect(b);
  b.connect(a);
  const std::vector<std::uint32_t> sizes = {1,    7,    8,      63,     64,      4095,
                                            4096, 4097, 65'000, 65'536, 300'001, 1'000'000};
  std::size_t at = 0;
  std::uint64_t id = 0;
  a.fill(0, 2U << 20U, 99);
  for (const std::uint32_t size : sizes) {
    a.post(WrOpcode::kWrite, id++, at, size, b, at);
    at += size;
  }
  expect_success(a.wait(sizes.size()), sizes.size());
  EXPECT_EQ(std::memcmp(a.memory.data(), b.memory.data(), at), 0);
  const std::size_t half = 2U << 20U;
  at = 0;
  id = 0;
  for (const std::uint32_t size : sizes) {
    a.post(WrOpcode::kRead, id++, half + at, size, b, at);
    at += size;
  }
  expect_success(a.wait(sizes.size()), sizes.size());
  EXPECT_EQ(std::memcmp(a.memory.data(), a.memory.data() + half, at), 0);
}

// Four hundred SENDs of 5000 bytes in both directions at once, receives posted again as they
// complete: every message arrives once, in order, intact.
TEST_P(LiveTest, SendsBothWaysInOrder) {
  End a(1, options());
  End b(2, options());
  a.connect(b);
  b.connect(a);
  constexpr std::uint64_t kMessages = 400;
  constexpr std::uint32_t kSize = 5000;
  constexpr std::uint64_t kDepth = 32;
  constexpr std::size_t kInbox = 2U << 20U;
  struct Side {
    End* self;
    End* peer;
    std::uint64_t sent = 0, completed = 0, received = 0;
  } sides[2] = {{&a, &b}, {&b, &a}};
  for (Side& s : sides) {
    for (std::uint64_t i = 0; i < kDepth; ++i) s.self->post_receive(i, kInbox + i * kSize, kSize);
  }
  const auto end = SteadyClock::now() + kPatience;
  const auto done = [&] {
    return sides[0].received + sides[1].received == 2 * kMessages &&
           sides[0].completed + sides[1].completed == 2 * kMessages;
  };
  while (!done() && SteadyClock::now() < end) {
    for (Side& s : sides) {
      while (s.sent < kMessages && s.sent - s.completed < kDepth) {
        const std::size_t at = (s.sent % kDepth) * kSize;
        std::memset(&s.self->memory[at], static_cast<int>(s.sent % 251), kSize);
        s.self->post(WrOpcode::kSend, s.sent++, at, kSize, *s.peer, 0);
      }
      Completion c[8];
      const std::uint32_t n = s.self->context->poll_cq(s.self->cq, c);
      for (std::uint32_t i = 0; i < n; ++i) {
        ASSERT_EQ(c[i].status, WcStatus::kSuccess);
        if (c[i].opcode == WcOpcode::kSend) {
          ASSERT_EQ(c[i].wr_id, s.completed++);
          continue;
        }
        ASSERT_EQ(c[i].byte_len, kSize);
        ASSERT_EQ(c[i].wr_id, s.received % kDepth);
        const std::size_t at = kInbox + c[i].wr_id * kSize;
        for (std::size_t k = 0; k < kSize; ++k) ASSERT_EQ(s.self->memory[at + k], s.received % 251);
        std::memset(&s.self->memory[at], 0xFF, kSize);
        s.self->post_receive(c[i].wr_id, at, kSize);
        ++s.received;
      }
    }
  }
  EXPECT_TRUE(done()) << sides[0].received << ' ' << sides[1].received;
}

// The target's program never calls into the library after connecting: the background thread places
// WRITEs and answers READs for it.
TEST_P(LiveTest, ServesOneSidedOperationsWhileTheTargetSleeps) {
  End a(1, options());
  End b(2, options());
  a.connect(b);
  b.connect(a);
  ASSERT_TRUE(stays(others_asleep));  // b's thread, on its socket
  a.fill(0, 100'000, 5);
  a.post(WrOpcode::kWrite, 0, 0, 100'000, b, 0);
  expect_success(a.wait(1), 1);
  EXPECT_EQ(std::memcmp(a.memory.data(), b.memory.data(), 100'000), 0);
  a.post(WrOpcode::kRead, 0, 200'000, 100'000, b, 0);
  expect_success(a.wait(1), 1);
  EXPECT_EQ(std::memcmp(a.memory.data(), a.memory.data() + 200'000, 100'000), 0);
}

// A byte that the peer writes, as a program sees it that only watches its memory. The thread sanitizer knows
// no memory that hardware writes, so it does not look here.
__attribute__((no_sanitize("thread"))) std::uint8_t look(const volatile std::uint8_t* at) { return *at; }

// A program that posts and then only watches its memory gets everything, although it never polls.
TEST_P(LiveTest, DeliversWhenNobodyPolls) {
  End a(1, options());
  End b(2, options());
  a.connect(b);
  b.connect(a);
  for (std::uint64_t i = 0; i < 64; ++i) {
    std::memset(&a.memory[i * 1000], static_cast<int>(i + 1), 1000);
    a.post(WrOpcode::kWrite, i, i * 1000, 1000, b, i * 1000, 0);
  }
  const auto end = SteadyClock::now() + kPatience;
  const std::uint8_t* last = &b.memory[63'999];
  while (look(last) != 64 && SteadyClock::now() < end) std::this_thread::yield();
  ASSERT_EQ(look(last), 64);
}

// A program asleep on a completion channel is woken by each message, and only by armed queues.
TEST_P(LiveTest, WakesProgramsThroughTheCompletionChannel) {
  CompletionChannel* channel = nullptr;
  End a(1, options());
  End b(2, options(), &channel);
  a.connect(b);
  b.connect(a);
  for (std::uint64_t i = 0; i < 8; ++i) {
    b.post_receive(i, i * 100, 100);
    ASSERT_TRUE(b.context->request_notify(b.cq, false).has_value());
    a.post(WrOpcode::kSend, i, 0, 100, b, 0);
    pollfd p{b.context->channel_fd(channel), POLLIN, 0};
    ASSERT_EQ(poll(&p, 1, 20'000), 1) << i;
    ASSERT_EQ(b.context->get_cq_event(channel), b.cq);
    EXPECT_EQ(b.cq->cookie, &b);
    EXPECT_EQ(b.wait(1).size(), 1U);
    EXPECT_EQ(a.wait(1).size(), 1U);
  }
  // Not armed: a message comes and the descriptor stays quiet.
  b.post_receive(9, 0, 100);
  a.post(WrOpcode::kSend, 9, 0, 100, b, 0);
  EXPECT_EQ(b.wait(1).size(), 1U);
  pollfd p{b.context->channel_fd(channel), POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 0), 0);
  b.context->ack_cq_events(b.cq, 8);
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, LiveTest,
    ::testing::Values(World{wire::Mode::kRoce, 0, {}, "roce"}, World{wire::Mode::kIrn, 0, {}, "irn"},
                      World{wire::Mode::kRoce, 10'000, {}, "roce_1_percent_loss"},
                      World{wire::Mode::kIrn, 10'000, {}, "irn_1_percent_loss"},
                      World{wire::Mode::kRoce, 50'000, {}, "roce_5_percent_loss"},
                      World{wire::Mode::kIrn, 50'000, {}, "irn_5_percent_loss"},
                      World{wire::Mode::kRoce, 0, microseconds(50), "roce_50us"},
                      World{wire::Mode::kIrn, 10'000, microseconds(50), "irn_1_percent_50us"}),
    [](const auto& world) { return std::string(world.param.name); });

// The two ends may differ: each direction has the mode of its requester
// (docs/protocol/modes.md#half-connections).
TEST(Live, EachDirectionHasItsOwnMode) {
  Options roce;
  roce.mode = wire::Mode::kRoce;
  Options irn;
  irn.mode = wire::Mode::kIrn;
  End a(1, roce);
  End b(2, irn);
  a.connect(b);
  b.connect(a);
  a.fill(0, 50'000, 1);
  b.fill(100'000, 50'000, 2);
  a.post(WrOpcode::kWrite, 0, 0, 50'000, b, 0);
  b.post(WrOpcode::kWrite, 0, 100'000, 50'000, a, 100'000);
  expect_success(a.wait(1), 1);
  expect_success(b.wait(1), 1);
  EXPECT_EQ(std::memcmp(a.memory.data(), b.memory.data(), 50'000), 0);
  EXPECT_EQ(std::memcmp(a.memory.data() + 100'000, b.memory.data() + 100'000, 50'000), 0);
}

// Inline bytes are the program's again as soon as the call returns.
TEST(Live, CopiesInlineBytesWhenPosted) {
  End a(1);
  End b(2);
  a.connect(b);
  b.connect(a);
  for (std::uint8_t i = 0; i < 100; ++i) {
    std::memset(a.memory.data(), i, 48);
    a.post(WrOpcode::kWrite, i, 0, 48, b, i * 48U, kSendSignaled | kSendInline);
    std::memset(a.memory.data(), 0xEE, 48);
  }
  expect_success(a.wait(100), 100);
  for (std::size_t i = 0; i < 4800; ++i) ASSERT_EQ(b.memory[i], i / 48);
}

// A WRITE with a key that is not the region's fails at the requester, and the target's memory stays.
TEST(Live, RefusesAWrongKey) {
  End a(1);
  End b(2);
  a.connect(b);
  b.connect(a);
  b.mr.rkey.v ^= 0x55;
  std::memset(a.memory.data(), 1, 100);
  a.post(WrOpcode::kWrite, 0, 0, 100, b, 0);
  const auto got = a.wait(1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].status, WcStatus::kRemoteAccess);
  EXPECT_EQ(b.memory[0], 0);
  // The responder's side raised an asynchronous event; it is acknowledged before teardown.
  pollfd p{b.context->async_fd(), POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, 5'000), 1);
  AsyncEvent event;
  ASSERT_TRUE(b.context->get_async_event(event));
  EXPECT_EQ(event.qp, b.qp);
  b.context->ack_async_event(event);
}

// A peer that does not answer: the request fails with RETRY_EXC_ERR after its time-outs.
TEST(Live, ReportsAPeerThatIsGone) {
  End a(1);
  auto b = std::make_unique<End>(2);
  a.connect(*b);
  b->connect(a);
  QpAttr quick;
  quick.state = QpState::kRts;
  b->nic.reset();
  b->context.reset();  // closes the socket
  a.post(WrOpcode::kWrite, 0, 0, 100, *b, 0);
  const auto got = a.wait(1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].status, WcStatus::kRetryExceeded);
}

// How long a request takes to fail in a process of the lowest priority that sleeps: after its attempts are
// over.
SteadyClock::duration fails_after(std::uint8_t timeout, std::uint8_t retries) {
  CompletionChannel* channel = nullptr;
  Options roce;  // but for its probes it resends when a time-out is over, and then only
  roce.mode = wire::Mode::kRoce;
  End a(1, roce, &channel);
  auto b = std::make_unique<End>(2);
  a.connect(*b, kRemoteWrite, timeout, retries);
  b->connect(a);
  b->nic.reset();
  b->context.reset();
  EXPECT_TRUE(a.context->request_notify(a.cq, false).has_value());
  const auto since = SteadyClock::now();
  a.post(WrOpcode::kWrite, 0, 0, 100, *b, 0);
  pollfd p{a.context->channel_fd(channel), POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 60'000), 1);
  const auto took = SteadyClock::now() - since;
  EXPECT_EQ(a.wait(1).at(0).status, WcStatus::kRetryExceeded);
  const Counters& counted = a.nic->device().counters();
  EXPECT_EQ(counted.get(Counter::tx_packets) - counted.get(Counter::tx_probes), 1U + retries);
  EXPECT_EQ(a.context->get_cq_event(channel), a.cq);
  a.context->ack_cq_events(a.cq, 1);
  return took;
}

// Such a process is woken late, by a part of what it waited for. That is not taken for a machine that stood
// still: the request fails no later than the standard allows, which is four times the time-out for each
// attempt. Where others leave no processor to the lowest priority it is another thing, which is why the best
// of three counts.
TEST(Live, ALongTimeOutOfANicedProcessEndsInTime) {
  constexpr std::uint8_t kCode = 17;  // 0.54 s
  constexpr auto kNominal = std::chrono::microseconds((4096LL << kCode) / 1000) * 2;
  auto took = SteadyClock::duration::max();
  std::thread([&] {
    EXPECT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19), 0);
    for (int i = 0; i < 3 && took > kNominal * 4; ++i) took = fails_after(kCode, 1);
  }).join();
  EXPECT_GE(took, kNominal);
  EXPECT_LE(took, kNominal * 4);
}

// A receiver that leaves as soon as it has its message has acknowledged it all the same: a program's last
// poll owes no ACK to a call that never comes.
TEST(Live, AcknowledgesBeforeItLeaves) {
  for (int i = 0; i < 20; ++i) {
    End a(1);
    End b(2);
    a.connect(b);
    b.connect(a);
    b.post_receive(0, 0, 100);
    a.post(WrOpcode::kSend, 0, 0, 100, b, 0);
    ASSERT_EQ(b.wait(1).size(), 1U);
    ASSERT_TRUE(b.context->destroy_qp(b.qp).has_value());
    const auto got = a.wait(1);
    ASSERT_EQ(got.size(), 1U);
    ASSERT_EQ(got[0].status, WcStatus::kSuccess);
  }
}

// Everything is refused while in use, and goes in the order verbs asks for.
TEST(Live, DestroysInOrderAndRefusesOtherwise) {
  CompletionChannel* channel = nullptr;
  End a(1, {}, &channel);
  EXPECT_EQ(a.context->destroy_channel(channel).error(), Errc::kBusy);
  EXPECT_EQ(a.context->destroy_cq(a.cq).error(), Errc::kBusy);
  EXPECT_EQ(a.context->dealloc_pd(a.pd).error(), Errc::kBusy);
  EXPECT_TRUE(a.context->destroy_qp(a.qp).has_value());
  EXPECT_TRUE(a.context->destroy_cq(a.cq).has_value());
  EXPECT_TRUE(a.context->destroy_channel(channel).has_value());
  EXPECT_TRUE(a.context->deregister_mr(a.mr.lkey).has_value());
  EXPECT_FALSE(a.context->deregister_mr(a.mr.lkey).has_value());
  EXPECT_TRUE(a.context->dealloc_pd(a.pd).has_value());
}

// Two ends on one address, each with a NIC of its own, as two processes have them.
TEST(Live, TwoNicsOfOneAddressReachEachOther) {
  End a(1);
  End b(1);
  ASSERT_NE(a.qp->qpn.v >> 16U, b.qp->qpn.v >> 16U);
  a.connect(b);
  b.connect(a);
  b.memory[0] = 0;
  a.memory[0] = 42;
  a.post(WrOpcode::kWrite, 1, 0, 8, b, 0);
  const auto done = a.wait(1);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, WcStatus::kSuccess);
  EXPECT_EQ(b.memory[0], 42);
}

// What the device says about itself.
TEST(Live, DescribesItself) {
  End a(1);
  const Attributes& at = a.context->attributes();
  EXPECT_EQ(at.own.first, host(1));
  EXPECT_EQ(at.active_mtu, 4096U);
  EXPECT_GT(at.max_qp, 1000U);
  EXPECT_NE(at.guid, 0U);
}

}  // namespace
}  // namespace weft::live
