// Several shards in one process, over real sockets with real threads (docs/ARCHITECTURE.md#shards): where
// queue pairs are made, and what all shards share (completion queues: shard_queues_test.cc). Two processes'
// worth of them talk to each other; unmodified programs do so in tests/interop.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "live/engine/shard_hosts.h"

namespace weft::live {
namespace {

struct World {
  wire::Mode mode;
  std::uint32_t loss;  // millionths
  const char* name;
};

TEST(Shards, TakeTurnsAndEachHasItsOwnNumbers) {
  Host h(1);
  ASSERT_EQ(h.nic->shards().size(), kShards);
  std::set<std::uint32_t> slots;
  for (int i = 0; i < 6; ++i) slots.insert(slot_of(*h.make()));
  EXPECT_EQ(slots.size(), kShards);
  EXPECT_NE(slot_of(*h.qps[0]), slot_of(*h.qps[1]));
  EXPECT_EQ(slot_of(*h.qps[0]), slot_of(*h.qps[2]));
  // Who asks for a shard gets it.
  EXPECT_EQ(slot_of(*h.make(1)), slot_of(*h.make(1)));
  EXPECT_NE(slot_of(*h.make(1)), slot_of(*h.make(0)));
}

class ShardsIn : public ::testing::TestWithParam<World> {};

// Queue pairs of every shard to queue pairs of every shard, all on one completion queue each: SENDs arrive in
// the order in which their queue pair sent them, and WRITEs and READs carry every byte.
TEST_P(ShardsIn, EveryQueuePairsMessagesArriveInItsOrder) {
  Host a(1, with_shards(GetParam().mode, GetParam().loss));
  Host b(2, with_shards(GetParam().mode, GetParam().loss));
  for (std::uint32_t i = 0; i < 4; ++i) join(a, b, i % 2, i / 2);
  constexpr std::uint64_t kMessages = 40;
  constexpr std::uint32_t kBytes = 6000;
  Prng prng(1);
  for (std::size_t i = 0; i < 4U * kBytes; ++i) a.memory[i] = static_cast<std::uint8_t>(prng.next());
  for (std::uint64_t m = 0; m < kMessages; ++m) {
    for (std::size_t q = 0; q < 4; ++q) b.receive(b.qps[q], m, q * kBytes, kBytes);
  }
  for (std::uint64_t m = 0; m < kMessages; ++m) {
    for (std::size_t q = 0; q < 4; ++q)
      ASSERT_TRUE(a.send(a.qps[q], WrOpcode::kSend, m, q * kBytes, kBytes).has_value());
  }
  std::thread sender([&] {
    const auto sent = a.wait(4 * kMessages);
    ASSERT_EQ(sent.size(), 4 * kMessages);
    for (const Completion& c : sent) EXPECT_EQ(c.status, WcStatus::kSuccess);
  });
  std::map<std::uint32_t, std::uint64_t> next;
  const auto received = b.wait(4 * kMessages);
  sender.join();
  ASSERT_EQ(received.size(), 4 * kMessages);
  for (const Completion& c : received) {
    EXPECT_EQ(c.status, WcStatus::kSuccess);
    EXPECT_EQ(c.wr_id, next[c.qpn.v]++);
  }
  EXPECT_EQ(next.size(), 4U);
  EXPECT_TRUE(std::equal(a.memory.begin(), a.memory.begin() + 4 * kBytes, b.memory.begin()));
  // Back by READ, from another place.
  constexpr std::size_t kElsewhere = 500'000;
  for (std::size_t q = 0; q < 4; ++q) {
    ASSERT_TRUE(a.send(a.qps[q], WrOpcode::kWrite, 0, q * kBytes, kBytes, &b, kElsewhere + q * kBytes));
    ASSERT_TRUE(
        a.send(a.qps[q], WrOpcode::kRead, 1, kElsewhere + q * kBytes, kBytes, &b, kElsewhere + q * kBytes));
  }
  for (const Completion& c : a.wait(8)) EXPECT_EQ(c.status, WcStatus::kSuccess);
  EXPECT_TRUE(std::equal(a.memory.begin(), a.memory.begin() + 4 * kBytes, a.memory.begin() + kElsewhere));
}

INSTANTIATE_TEST_SUITE_P(Worlds, ShardsIn,
                         ::testing::Values(World{wire::Mode::kRoce, 0, "roce"},
                                           World{wire::Mode::kRoce, 10'000, "roce_loss"},
                                           World{wire::Mode::kIrn, 0, "irn"},
                                           World{wire::Mode::kIrn, 10'000, "irn_loss"}),
                         [](const auto& i) { return i.param.name; });

// A region is registered once; queue pairs of every shard reach it, and none any more when it is gone.
TEST(Shards, KnowAKeyAllOrNone) {
  Host a(1);
  Host b(2);
  for (std::uint32_t i = 0; i < kShards; ++i) join(a, b, i, i);
  for (std::size_t i = 0; i < kShards; ++i)  // each to a place of its own, for two threads receive them
    ASSERT_TRUE(a.send(a.qps[i], WrOpcode::kWrite, 7, 0, 100, &b, 200 * (i + 1)));
  for (const Completion& c : a.wait(kShards)) EXPECT_EQ(c.status, WcStatus::kSuccess);
  ASSERT_TRUE(b.context->deregister_mr(b.mr.lkey).has_value());
  for (Qp* const qp : a.qps) ASSERT_TRUE(a.send(qp, WrOpcode::kWrite, 7, 0, 100, &b, 200));
  const auto refused = a.wait(kShards);
  ASSERT_EQ(refused.size(), kShards);
  for (const Completion& c : refused) EXPECT_EQ(c.status, WcStatus::kRemoteAccess);
  // Registering goes on: all shards still draw the same keys.
  for (int i = 0; i < 100; ++i) {
    const auto mr = b.context->register_mr(b.pd, b.memory.data(), 4096, 0, kLocalWrite);
    ASSERT_TRUE(mr.has_value());
    if (i % 3 != 0) {
      ASSERT_TRUE(b.context->deregister_mr(mr->lkey).has_value());
    }
  }
}

// Used in one shard is used.
TEST(Shards, LetADomainAndAQueueGoWhenNoneUsesThem) {
  Host h(1);
  const PdId pd = *h.context->alloc_pd();
  Cq* const cq = h.new_cq();
  QpInit init = h.init(cq);
  init.pd = pd;
  Qp* const qp = *h.context->create_qp(init, nullptr, 1);
  EXPECT_EQ(h.context->dealloc_pd(pd).error(), Errc::kBusy);
  EXPECT_EQ(h.context->destroy_cq(cq).error(), Errc::kBusy);
  // Nothing was taken away in the shards that do not use them.
  const auto other = h.context->create_qp(init, nullptr, 0);
  ASSERT_TRUE(other.has_value());
  ASSERT_TRUE(h.context->destroy_qp(qp).has_value());
  EXPECT_EQ(h.context->dealloc_pd(pd).error(), Errc::kBusy);
  EXPECT_EQ(h.context->destroy_cq(cq).error(), Errc::kBusy);
  ASSERT_TRUE(h.context->destroy_qp(*other).has_value());
  EXPECT_TRUE(h.context->destroy_cq(cq).has_value());
  EXPECT_TRUE(h.context->dealloc_pd(pd).has_value());
}

// A shared receive queue is in one shard, and so is whatever draws from it, whatever else was asked for.
TEST(Shards, HaveASharedReceiveQueueAndItsQueuePairsTogether) {
  Host a(1);
  Host b(2);
  std::array<Srq*, kShards> srqs{};
  for (std::uint32_t s = 0; s < kShards; ++s) srqs[s] = *b.context->create_srq(b.pd, {32, 1, 0}, nullptr, s);
  EXPECT_NE(srqs[0]->id, srqs[1]->id);
  for (std::uint32_t i = 0; i < 4; ++i) {
    QpInit init = b.init();
    init.srq = srqs[i / 2]->id;
    Qp* const y = *b.context->create_qp(init, nullptr, i % 2);
    Qp* const x = a.make(i % 2);
    ASSERT_TRUE(connect(a, x, b, y) && connect(b, y, a, x));
    b.qps.push_back(y);
  }
  EXPECT_EQ(slot_of(*b.qps[0]), slot_of(*b.qps[1]));
  EXPECT_EQ(slot_of(*b.qps[2]), slot_of(*b.qps[3]));
  EXPECT_NE(slot_of(*b.qps[0]), slot_of(*b.qps[2]));
  EXPECT_FALSE(b.context->destroy_srq(srqs[1]).has_value());
  for (std::uint64_t i = 0; i < 16; ++i) {
    for (std::uint32_t s = 0; s < kShards; ++s) {
      const Sge sge = b.piece(s * kOfEachShard, 64);
      ASSERT_TRUE(b.context->post_srq_receive(srqs[s], {i, {&sge, 1}}).has_value());
    }
  }
  for (int m = 0; m < 8; ++m) {
    for (Qp* const qp : a.qps) ASSERT_TRUE(a.send(qp, WrOpcode::kSend, 0, 0, 64));
  }
  const auto got = b.wait(32);
  EXPECT_EQ(got.size(), 32U);
  for (const Completion& c : got) EXPECT_EQ(c.status, WcStatus::kSuccess);
  // What no shard has, is refused.
  QpInit wrong = b.init();
  for (const std::uint32_t number : {5U, 1U << 24U | 5U, 7U << 24U}) {
    wrong.srq = SrqId{number};
    EXPECT_EQ(b.context->create_qp(wrong, nullptr).error(), Errc::kInvalid);
  }
}

// An address handle is good for datagrams of every shard, to a queue pair of any.
TEST(Shards, SendDatagramsByOneHandle) {
  Host a(1);
  Host b(2);
  const auto datagrams = [](Host& h, std::uint32_t shard) {
    QpInit init = h.init();
    init.type = QpType::kUd;
    Qp* const qp = *h.context->create_qp(init, nullptr, shard);
    QpAttr attr;
    attr.qkey = 77;
    CHECK(climb(QpType::kUd, attr, [&](const QpAttr& at, std::uint32_t mask) {
      return h.context->modify_qp(qp, at, mask).has_value();
    }));
    h.qps.push_back(qp);
  };
  for (std::uint32_t s = 0; s < kShards; ++s) datagrams(a, s);
  for (std::uint32_t s = 0; s < kShards; ++s) datagrams(b, s);
  const AhId ah = *a.context->create_ah(a.pd, {b.context->attributes().own.first});
  // They may be lost, so they go until each has arrived.
  std::set<std::pair<std::uint32_t, std::uint32_t>> arrived;
  const auto end = SteadyClock::now() + kPatience;
  while (arrived.size() < std::size_t{kShards} * kShards && SteadyClock::now() < end) {
    for (Qp* const to : b.qps) {
      for (int i = 0; i < 4; ++i) b.receive_apart(to, 0, 256);
      for (Qp* const from : a.qps) {
        const Sge sge = a.piece(0, 64);
        SendWr wr;
        wr.sges = {&sge, 1};
        wr.flags = kSendSignaled;
        wr.ah = ah;
        wr.remote_qpn = to->qpn;
        wr.remote_qkey = 77;
        {
          Posting posting(*a.context, from);
          ASSERT_TRUE(posting.send(wr).has_value());
        }
        ASSERT_EQ(a.wait(1).size(), 1U);
      }
      Completion c[16];
      for (int look = 0; look < 1000; ++look) {
        const std::uint32_t n = b.context->poll_cq(b.cq, c);
        for (std::uint32_t i = 0; i < n; ++i) arrived.insert({c[i].src_qp.v, c[i].qpn.v});
        if (n == kShards) break;
      }
    }
    for (Qp* const to : b.qps) {  // what is left of the receives goes
      QpAttr reset;
      ASSERT_TRUE(b.context->modify_qp(to, reset, kAttrState).has_value());
      QpAttr attr;
      attr.qkey = 77;
      ASSERT_TRUE(climb(QpType::kUd, attr, [&](const QpAttr& at, std::uint32_t mask) {
        return b.context->modify_qp(to, at, mask).has_value();
      }));
    }
  }
  EXPECT_EQ(arrived.size(), std::size_t{kShards} * kShards);
  ASSERT_TRUE(a.context->destroy_ah(ah).has_value());
  EXPECT_EQ(a.context->destroy_ah(ah).error(), Errc::kNotFound);
}

// A window would be bound in one shard only.
TEST(Shards, HaveNoWindows) {
  Host h(1);
  EXPECT_EQ(h.context->attributes().max_mw, 0U);
  EXPECT_EQ(h.context->alloc_window(h.pd, WindowType::k1).error(), Errc::kUnsupported);
}

// Every process may send to a socket what one shard alone might.
TEST(Shards, DivideTheCreditOfAPeer) {
  Host h(1);
  End alone(2);
  const std::uint64_t whole = alone.nic->device().config().path_credit.n;
  for (Nic* const n : h.nic->shards()) {
    EXPECT_LE(n->device().config().path_credit.n, std::max<std::uint64_t>(whole / kShards, 64U << 10U));
  }
}

// A program as shards are made for: a thread with a queue of its own for each shard, at both ends, while
// another thread registers memory and makes and destroys queue pairs.
TEST(Shards, ServeAThreadEach) {
  Host a(1);
  Host b(2);
  constexpr std::uint64_t kMessages = 300;
  std::array<Cq*, kShards> a_cq{};
  std::array<Cq*, kShards> b_cq{};
  for (std::uint32_t s = 0; s < kShards; ++s) {
    a_cq[s] = a.new_cq();
    b_cq[s] = b.new_cq();
    Qp* const x = a.make(s, a_cq[s]);
    Qp* const y = b.make(s, b_cq[s]);
    ASSERT_TRUE(connect(a, x, b, y) && connect(b, y, a, x));
  }
  std::atomic<bool> done{false};
  std::atomic<std::uint32_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t s = 0; s < kShards; ++s) {
    for (Host* const h : {&a, &b}) {
      threads.emplace_back([&, s, h] {
        Cq* const cq = h == &a ? a_cq[s] : b_cq[s];
        Host& peer = h == &a ? b : a;
        const std::size_t at = 4096U * (s + 1U);
        for (std::uint64_t m = 0; m < kMessages; ++m) {
          if (!h->send(h->qps[s], WrOpcode::kWrite, m, at, 1024, &peer, at + 512'000)) ++wrong;
          const auto got = h->wait(1, cq);
          if (got.size() != 1 || got[0].wr_id != m || got[0].status != WcStatus::kSuccess) ++wrong;
        }
      });
    }
  }
  std::thread churn([&] {
    while (!done.load()) {
      const auto mr = a.context->register_mr(a.pd, a.memory.data(), 4096, 0, kLocalWrite);
      const auto qp = a.context->create_qp(a.init(), nullptr);
      if (!mr || !qp || !a.context->destroy_qp(*qp) || !a.context->deregister_mr(mr->lkey)) ++wrong;
      std::this_thread::yield();
    }
  });
  for (std::thread& t : threads) t.join();
  done = true;
  churn.join();
  EXPECT_EQ(wrong.load(), 0U);
}

}  // namespace
}  // namespace weft::live
