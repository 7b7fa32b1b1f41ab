// The detailed NIC between two hosts on one link: what an idle NIC takes is the sum of its stages; what
// waits, waits where the design says; and queue pairs overtake each other, never themselves.
#include "sim/nic/detailed_nic.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/verbs/ladder.h"
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
  explicit Pair(const Design& design, std::uint32_t qps, wire::Mode mode = wire::Mode::kRoce,
                Duration delay = kDelay, const DeviceConfig& wanted = {})
      : out0(fabric, {kRate, delay, {}, {}, 1}, Prng(1)),
        out1(fabric, {kRate, delay, {}, {}, 1}, Prng(2)),
        config(device(qps, wanted)),
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
  static DeviceConfig device(std::uint32_t qps, DeviceConfig c) {
    c.max_qp = qps + 4;
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

// Messages of a burst each. A cache of WQEs for each queue pair keeps what a turn does not use, so that every
// WQE is fetched once: this is what its memory buys (SRNIC §4.3.1, challenge 3).
TEST(DetailedNic, ACacheOfWqesForEachQueuePairKeepsWhatATurnDoesNotUse) {
  for (const std::uint32_t cache : {0U, 8U}) {
    Design d;
    d.scheduler.burst = {4224};
    d.wqe.send_cache = cache;
    Pair p(d, 2);
    for (int i = 0; i < 16; ++i) p.post(static_cast<std::uint32_t>(i) % 2, WrOpcode::kWrite, 4096);
    p.a.ring();
    p.run();
    const NicCounters a = p.a.counters();
    EXPECT_EQ(p.programs.done[0].size(), 16U);
    EXPECT_EQ(a.dma.of(Dma::kSendWqe), 64 * a.wqes_fetched);
    if (cache == 0) {
      EXPECT_GT(a.wqes_fetched, 16U);
    } else {
      EXPECT_EQ(a.wqes_fetched, 16U);
    }
  }
}

// 32 queue pairs with one packet in flight each at most, 20 us of round trip, one turn at a time.
struct OfCredit {
  OfCredit(Picks picks, std::uint32_t send_cache) {
    Design d;
    d.scheduler.picks = picks;
    d.scheduler.wqes = 1;
    d.scheduler.turns = 1;
    d.wqe.send_cache = send_cache;
    DeviceConfig c;
    c.bdp_cap = 1;
    Pair p(d, 32, wire::Mode::kIrn, microseconds(10), c);
    for (std::uint32_t n = 0; n < 8; ++n) {
      for (std::uint32_t q = 0; q < 32; ++q) p.post(q, WrOpcode::kWrite, 512);
    }
    p.a.ring();
    p.run();
    EXPECT_EQ(p.programs.done[0].size(), 256U);
    counted = p.a.counters();
    took = p.programs.done[0].back().at - Time{};
  }
  NicCounters counted;
  Duration took{};
};

// SRNIC §4.3.1, challenge 1. The credit test wastes nothing: one turn and one WQE a request. A blind
// scheduler pays for turns in which nothing can leave: each has fetched a WQE, which is dropped, and a queue
// pair with credit waits for its turn behind them. WQE caches save the bytes, and not the time.
TEST(DetailedNic, ABlindSchedulerWastesTurnsBytesAndTime) {
  const OfCredit ready(Picks::kReady, 0);
  EXPECT_EQ(ready.counted.empty_turns, 0U);
  EXPECT_EQ(ready.counted.turns, 256U);
  EXPECT_EQ(ready.counted.wqes_fetched, 256U);

  const OfCredit blind(Picks::kBlind, 0);
  EXPECT_GT(blind.counted.empty_turns, 128U);
  EXPECT_EQ(blind.counted.turns, 256U + blind.counted.empty_turns);
  EXPECT_EQ(blind.counted.wqes_fetched, blind.counted.turns);
  EXPECT_EQ(blind.counted.dma.of(Dma::kSendWqe) - ready.counted.dma.of(Dma::kSendWqe),
            64 * blind.counted.empty_turns);
  EXPECT_GT(blind.took, ready.took + ready.took / 5);

  const OfCredit cached(Picks::kBlind, 8);
  EXPECT_GT(cached.counted.empty_turns, 128U);
  EXPECT_EQ(cached.counted.wqes_fetched, 256U);
}

// A connection that waits for nothing is the same to both.
TEST(DetailedNic, ABlindSchedulerWithCreditForAllWastesNothing) {
  for (const Picks picks : {Picks::kReady, Picks::kBlind}) {
    Design d;
    d.scheduler.picks = picks;
    Pair p(d, 4);
    for (std::uint32_t i = 0; i < 16; ++i) p.post(i % 4, WrOpcode::kSend, 1000);
    p.a.ring();
    p.run();
    EXPECT_EQ(p.programs.done[0].size(), 16U);
    EXPECT_EQ(p.a.counters().empty_turns, 0U);
    EXPECT_EQ(p.a.counters().wqes_fetched, 16U);
  }
}

// Two queue pairs for datagrams, and an address handle from the first to the second.
struct Datagrams {
  static constexpr std::uint32_t kQkey = 77;
  static constexpr std::uint32_t kGrh = 40;

  explicit Datagrams(const Design& design) : pair(design, 2) {
    for (const std::size_t h : {0U, 1U}) qpn[h] = create(h);
    other = create(0);
    DetailedNic& a = pair.a;
    const auto path = a.device().open_path({pair.b.address()});
    to_b = *a.device().create_ah(a.domain(), *path);
    const Sge piece{pair.memory[1].address, 4096, pair.memory[1].lkey};
    const RecvWr receive{0, {&piece, 1}};
    for (int n = 0; n < 32; ++n) EXPECT_TRUE(pair.b.post_recv(qpn[1], {&receive, 1}).refused);
  }
  Qpn create(std::size_t h) {
    DetailedNic& nic = h == 0 ? pair.a : pair.b;
    QpInit init;
    init.type = QpType::kUd;
    init.pd = nic.domain();
    init.send_cq = init.recv_cq = pair.programs.cq[h];
    init.caps = {64, 64, 1, 1, 0};
    const Qpn made = *nic.device().create_qp(init);
    QpAttr attr;
    attr.qkey = kQkey;
    EXPECT_TRUE(climb(QpType::kUd, attr, [&](const QpAttr& a, std::uint32_t mask) {
      return nic.device().modify_qp(made, a, mask, nic.endpoint().now());
    }));
    return made;
  }
  void post(Qpn from, std::uint32_t length) {
    const Sge piece{pair.memory[0].address, length, pair.memory[0].lkey};
    SendWr w;
    w.sges = {&piece, 1};
    w.flags = kSendSignaled;
    w.ah = to_b;
    w.remote_qpn = qpn[1];
    w.remote_qkey = kQkey;
    EXPECT_TRUE(pair.a.post_send(from, {&w, 1}).refused);
  }
  // From a post to the receiver's completion.
  Duration one(Qpn from) {
    pair.programs.done[1].clear();
    const Time posted = pair.fabric.timeline.now();
    post(from, 1);
    pair.a.ring();
    pair.run();
    EXPECT_EQ(pair.programs.done[1].size(), 1U);
    return pair.programs.done[1].back().at - posted;
  }
  Pair pair;
  Qpn qpn[2];
  Qpn other;  // at a
  AhId to_b{};
};

// UD through the parts: WQEs in turns of eight, payload, a receive for each datagram, its GRH beside the
// payload, completions at both sides, and no answer. What was sent is complete when it has been read.
TEST(DetailedNic, CarriesDatagramsAndCountsTheirBytes) {
  Design d;
  d.context.send_window = 4;
  Datagrams w(d);
  for (int i = 0; i < 20; ++i) w.post(w.qpn[0], 512);
  w.pair.a.ring();
  w.pair.run();
  const NicCounters a = w.pair.a.counters();
  const NicCounters b = w.pair.b.counters();
  EXPECT_EQ(a.turns, 3U);
  EXPECT_EQ(a.empty_turns, 0U);
  EXPECT_EQ(a.packets_out, 20U);
  EXPECT_EQ(a.wqes_used, 20U);
  EXPECT_EQ(a.dma.of(Dma::kSendWqe), 20 * 64U);
  EXPECT_EQ(a.dma.of(Dma::kPayloadRead), 20 * 512U);
  EXPECT_EQ(b.dma.of(Dma::kReceiveWqe), 20 * 64U);
  EXPECT_EQ(b.dma.of(Dma::kPayloadWrite), 20 * (512U + Datagrams::kGrh));
  EXPECT_EQ(b.control_out, 0U);
  ASSERT_EQ(w.pair.programs.done[0].size(), 20U);
  EXPECT_EQ(w.pair.programs.done[1].size(), 20U);
  // Doorbell, WQEs, payload and completion: each crosses PCIe.
  const Pcie idle(d.pcie);
  const Duration least = idle.doorbell_latency(8) + idle.read_latency(64) + idle.read_latency(512) +
                         idle.write_latency(d.wqe.completion_bytes);
  EXPECT_GE(w.pair.programs.done[0][0].at - Time{}, least);
}

// csRNA Figure 1c: a datagram of one byte whose sender misses its context takes one read of a context longer.
TEST(DetailedNic, ADatagramWhoseContextIsMissingTakesOneReadLonger) {
  for (const ContextPolicy policy : {ContextPolicy::kFcfs, ContextPolicy::kNonBlocking}) {
    Datagrams w(cached(policy, 1));
    w.one(w.qpn[0]);
    const Duration there = w.one(w.qpn[0]);
    w.one(w.other);  // takes the place of the first one's context
    const Duration missing = w.one(w.qpn[0]);
    const Pcie idle(w.pair.a.design().pcie);
    const Duration read = idle.read_latency(w.pair.a.design().context.bytes);
    EXPECT_GE(missing, there + read);
    // What left its place was changed, and is written back on the way.
    EXPECT_LE(missing, there + read + nanoseconds(100));
  }
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
