// The detailed NIC between two hosts on one link: what an idle NIC takes is the sum of its stages; what
// waits, waits where the design says; and queue pairs overtake each other, never themselves.
#include "sim/nic/detailed_nic.h"

#include <gtest/gtest.h>

#include <vector>

#include "sim/nic/explain.h"

namespace weft::sim {
namespace {

constexpr Duration kDelay = nanoseconds(250);
constexpr Rate kRate = gigabits(100);

struct Done {
  Qpn qpn;
  Time at;
};

// Polls both hosts whenever something is visible.
struct Programs final : NicObserver {
  void progressed(HostId host, Time now) override {
    Completion got[16];
    for (std::uint32_t n = nics[host.v]->poll(cq[host.v], got); n != 0;
         n = nics[host.v]->poll(cq[host.v], got)) {
      for (std::uint32_t i = 0; i < n; ++i) {
        EXPECT_EQ(got[i].status, WcStatus::kSuccess);
        done[host.v].push_back({got[i].qpn, now});
      }
    }
  }
  Nic* nics[2] = {};
  CqId cq[2];
  std::vector<Done> done[2];
};

struct Pair {
  explicit Pair(const Design& design, std::uint32_t qps, wire::Mode mode = wire::Mode::kRoce)
      : out0(fabric, {kRate, kDelay, {}, {}, 1}, Prng(1)),
        out1(fabric, {kRate, kDelay, {}, {}, 1}, Prng(2)),
        config(device(qps)),
        a(exchange, fabric, {0}, config, out0, Framing::kWire, &programs, design),
        b(exchange, fabric, {1}, config, out1, Framing::kWire, &programs, design) {
    out0.connect<&DetailedNic::arrive>(b, 0);
    out1.connect<&DetailedNic::arrive>(a, 0);
    DetailedNic* nics[2] = {&a, &b};
    for (int h = 0; h < 2; ++h) {
      programs.nics[h] = nics[h];
      programs.cq[h] = *nics[h]->create_cq(256);
      memory[h] = *nics[h]->allocate(65536, kLocalWrite | kRemoteWrite | kRemoteRead, MemoryKind::kCounted);
    }
    for (std::uint32_t i = 0; i < qps; ++i) {
      ConnectEnd ends[2];
      for (int h = 0; h < 2; ++h) {
        ends[h].address = nics[h]->address();
        ends[h].qpn = *nics[h]->create_qp({programs.cq[h], programs.cq[h], {64, 64, 1, 1, 0}, false});
        ends[h].terms.mode = mode;
      }
      EXPECT_TRUE(exchange.join(a, ends[0], b, ends[1]));
      qpn.push_back({ends[0].qpn, ends[1].qpn});
      const Sge piece{memory[1].address, 4096, memory[1].lkey};
      const RecvWr receive{0, {&piece, 1}};
      for (int n = 0; n < 32; ++n) EXPECT_TRUE(b.post_recv(ends[1].qpn, {&receive, 1}).refused);
    }
  }
  static DeviceConfig device(std::uint32_t qps) {
    DeviceConfig c;
    c.max_qp = qps + 2;
    return c;
  }
  void post(std::uint32_t pair, WrOpcode op, std::uint32_t length) {
    const Sge piece{memory[0].address, length, memory[0].lkey};
    SendWr w;
    w.sges = {&piece, 1};
    w.opcode = op;
    w.flags = kSendSignaled;
    w.remote_address = memory[1].address;
    w.rkey = memory[1].rkey;
    EXPECT_TRUE(a.post_send(qpn[pair].first, {&w, 1}).refused);
  }
  void run() {
    while (fabric.timeline.step(Time{} + milliseconds(50))) {
      a.contexts().check_invariants();
      b.contexts().check_invariants();
    }
    EXPECT_EQ(fabric.packets.in_use(), 0U);
    for (const DetailedNic* n : {&a, &b}) {
      const NicCounters c = n->counters();
      EXPECT_TRUE(c.turns_inside.balanced());
      EXPECT_TRUE(c.packets_inside.balanced());
      EXPECT_TRUE(c.arrivals_inside.balanced());
      EXPECT_TRUE(c.completions_inside.balanced());
    }
  }

  Fabric fabric;
  Exchange exchange;
  Programs programs;
  Port out0;
  Port out1;
  DeviceConfig config;
  DetailedNic a;
  DetailedNic b;
  PortMemory memory[2];
  std::vector<std::pair<Qpn, Qpn>> qpn;
};

Design cached(ContextPolicy policy, std::uint32_t cache) {
  Design d;
  d.context.policy = policy;
  d.context.cache = cache;
  d.context.access = {1, 3};
  return d;
}

std::vector<Design> idle_designs() {
  Design slow;
  slow.clock_mhz = 300;
  slow.pcie.round_trip = nanoseconds(1100);
  slow.pipelines = {{2, 4}, {3, 8}, {2, 24}, {5, 30}, {2, 9}, 32};
  Design pushed;
  pushed.wqe.pushed = true;
  pushed.wqe.inline_bytes = 128;
  pushed.wqe.receive_cache = 4;
  pushed.pcie.write_delay = nanoseconds(200);
  Design hides = cached(ContextPolicy::kNonBlocking, 4);
  hides.context.sq_table = 64;
  Design board = cached(ContextPolicy::kFcfs, 4);
  board.context.home = Home::kBoard;
  board.board.size = {1U << 20U};
  return {Design{}, slow, pushed, cached(ContextPolicy::kFcfs, 4), cached(ContextPolicy::kNonBlocking, 4),
          hides,    board};
}

// One message through two idle NICs takes what `weft nic explain` adds up, to the picosecond: with the
// context on the chip, with a miss at each side, with WQEs that ride on the doorbell.
TEST(DetailedNic, TakesTheSumOfItsStagesWhenIdle) {
  int n = 0;
  for (const Design& d : idle_designs()) {
    for (const WrOpcode op : {WrOpcode::kSend, WrOpcode::kWrite}) {
      for (const std::uint32_t bytes : {64U, 1000U}) {
        SCOPED_TRACE(testing::Message()
                     << "design " << n << " op " << static_cast<int>(op) << " bytes " << bytes);
        Pair p(d, 1);
        const bool chip = d.context.policy == ContextPolicy::kOnChip;
        if (chip) {  // the first message fills the cache of receives
          p.post(0, op, bytes);
          p.a.ring();
          p.run();
        }
        for (auto& done : p.programs.done) done.clear();
        const Time posted = p.fabric.timeline.now();
        p.post(0, op, bytes);
        p.a.ring();
        p.run();
        MessageLoad load;
        load.op = op;
        load.bytes = bytes;
        load.miss = chip ? 0 : 1;
        const Explanation e = explain(d, load);
        // Where a context and WQEs are read side by side, one waits for the other's bytes on the link.
        const std::int64_t shared = !chip && d.context.sq_table != 0 ? 3'000 : 0;
        ASSERT_EQ(p.programs.done[0].size(), 1U);
        const Duration there = (p.programs.done[0][0].at - posted) - e.completion - kDelay * 2;
        EXPECT_TRUE(0 <= there.ps && there.ps <= shared) << there.ps;
        if (op == WrOpcode::kSend) {
          ASSERT_EQ(p.programs.done[1].size(), 1U);
          const Duration here = (p.programs.done[1][0].at - posted) - e.latency - kDelay;
          EXPECT_TRUE(0 <= here.ps && here.ps <= shared) << here.ps;
        }
      }
    }
    ++n;
  }
}

// Six messages of one queue pair are fetched by one turn; each crosses PCIe once, and nothing is left.
TEST(DetailedNic, CountsEveryByteOfPcie) {
  Pair p(Design{}, 1);
  for (int i = 0; i < 6; ++i) p.post(0, WrOpcode::kSend, 512);
  p.a.ring();
  p.run();
  const NicCounters a = p.a.counters();
  const NicCounters b = p.b.counters();
  EXPECT_EQ(a.doorbells, 1U);
  EXPECT_EQ(a.turns, 1U);
  EXPECT_EQ(a.dma.of(Dma::kSendWqe), 6 * 64U);
  EXPECT_EQ(a.dma.of(Dma::kPayloadRead), 6 * 512U);
  EXPECT_EQ(b.dma.of(Dma::kReceiveWqe), 6 * 64U);
  EXPECT_EQ(b.dma.of(Dma::kPayloadWrite), 6 * 512U);
  EXPECT_EQ(a.dma.of(Dma::kCompletion), 6 * 64U);
  EXPECT_EQ(b.dma.of(Dma::kCompletion), 6 * 64U);
  EXPECT_EQ(p.programs.done[1].size(), 6U);
}

// Messages larger than a burst: the WQEs that a turn does not use are dropped and fetched again, and every
// request is carried out once (SRNIC §4.3.1).
TEST(DetailedNic, DropsWqesThatATurnDoesNotUse) {
  Design d;
  d.scheduler.burst = {4224};
  Pair p(d, 1);
  for (int i = 0; i < 8; ++i) p.post(0, WrOpcode::kWrite, 4096);
  p.a.ring();
  p.run();
  const NicCounters a = p.a.counters();
  EXPECT_EQ(p.programs.done[0].size(), 8U);
  EXPECT_GT(a.wqes_fetched, 8U + 7U);
  EXPECT_EQ(a.dma.of(Dma::kPayloadRead), 8 * 4096U);
}

// Two queue pairs, the first without its context on the chip: a NIC that serves contexts as they come holds
// the second up, one with csRNA's store does not (csRNA §3, Figure 2).
TEST(DetailedNic, LetsOtherQueuePairsPassWhoseContextIsThere) {
  const auto first_done = [](ContextPolicy policy) {
    Pair p(cached(policy, 1), 2);
    p.post(1, WrOpcode::kWrite, 64);  // brings its context in
    p.a.ring();
    p.run();
    p.programs.done[0].clear();
    p.post(0, WrOpcode::kWrite, 64);
    p.post(1, WrOpcode::kWrite, 64);
    p.a.ring();
    p.run();
    EXPECT_EQ(p.programs.done[0].size(), 2U);
    return p.programs.done[0][0].qpn == p.qpn[0].first ? 0 : 1;
  };
  EXPECT_EQ(first_done(ContextPolicy::kFcfs), 0);
  EXPECT_EQ(first_done(ContextPolicy::kNonBlocking), 1);
}

// A completion is not polled before its entry has crossed PCIe, and an event waits with it.
TEST(DetailedNic, ShowsACompletionWhenItsEntryIsInMemory) {
  Pair p(Design{}, 1);
  ASSERT_TRUE(p.a.arm(p.programs.cq[0], false));
  p.post(0, WrOpcode::kWrite, 64);
  p.a.ring();
  PortEvent event;
  bool hidden = false;
  while (p.fabric.timeline.step(Time{} + milliseconds(50))) {
    if (p.programs.done[0].empty() && p.a.device().completions_waiting(p.programs.cq[0]) != 0) {
      hidden = true;
      Completion got;
      EXPECT_EQ(p.a.poll(p.programs.cq[0], {&got, 1}), 0U);
      EXPECT_FALSE(p.a.poll_event(event));
    }
  }
  EXPECT_TRUE(hidden);
  EXPECT_EQ(p.programs.done[0].size(), 1U);
  EXPECT_TRUE(p.a.poll_event(event));
  EXPECT_EQ(event.kind, PortEventKind::kCompletion);
  EXPECT_FALSE(p.a.poll_event(event));
}

}  // namespace
}  // namespace weft::sim
