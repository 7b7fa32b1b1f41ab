// What the transport costs per packet, without bytes, sockets or checksums: `./dev bench transport [--json
// F]`. The rows of wire_bench.cc (icrc_gbps, decode_ns, …) come along.
//
// Two Devices face each other; headers are carried over by hand between the timed parts. An iteration posts
// 32 WRITEs of 64 bytes, and each part of their way is timed by itself, in nanoseconds per packet:
//
//   post_ns     Device::post_send                    tx_data_ns  Device::poll_transmit
//   rx_data_ns  Device::on_packets, in-order data    ack_out_ns  Device::poll_control
//   ack_ns      Device::on_packets, ACKs             poll_cq_ns  Device::poll_cq
//   timer_ns    next_deadline and on_timer with nothing due
//   rx_ooo_ns   Device::on_packets, in recovery: the first of 32 was lost
//
// "hot" is one queue pair; "10k" draws each batch's 32 queue pairs at random from 10 000 connected ones;
// "10k_unbatched" gives their packets to on_packets one by one, so that it cannot prefetch. Key checks are
// in, decoding, copying and CRC are not. With a controller ("hot_dcqcn", …) one packet of 64 is marked, so
// that windows and rates are at work; a paced queue pair's waits pass in virtual time, their cost is in
// tx_data_ns. What reading the clock costs is measured first and taken off each timed part; a part in which
// the core was taken away does not count, the others stand for it. Medians of nine repetitions; the process
// pins itself to one core.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/prng.h"
#include "core/transport/device.h"
#include "core/transport/engine.h"
#include "core/transport/queue_pair.h"
#include "core/verbs/ladder.h"
#include "tests/bench/program.h"

namespace {
std::size_t allocated = 0;  // bytes ever asked for
}

void* operator new(std::size_t n) {
  allocated += n;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t n, std::align_val_t a) {
  allocated += n;
  if (void* p = std::aligned_alloc(static_cast<std::size_t>(a), (n + 63) / 64 * 64)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace weft {
namespace {

constexpr std::size_t kBatch = 32;
constexpr int kRepetitions = 9;
constexpr int kBatches = 20'000;
constexpr int kWarmUp = 2'000;

std::int64_t clock_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// What an empty start and stop read.
double clock_cost() {
  static const double cost = [] {
    std::array<double, 101> medians{};
    for (double& m : medians) {
      constexpr int kReads = 1000;
      std::int64_t sum = 0;
      for (int i = 0; i < kReads; ++i) {
        const std::int64_t t = clock_ns();
        sum += clock_ns() - t;
      }
      m = static_cast<double>(sum) / kReads;
    }
    std::sort(medians.begin(), medians.end());
    return medians[medians.size() / 2];
  }();
  return cost;
}

class Stopwatch {
 public:
  // More than four times what any part takes: the core was taken away meanwhile.
  static constexpr std::int64_t kInterrupted = 40'000;
  void start() { began_ = clock_ns(); }
  void stop() {
    const std::int64_t took = clock_ns() - began_;
    ++parts_;
    if (took > kInterrupted) return;
    total_ += took;
    ++counted_;
  }
  void reset() { total_ = parts_ = counted_ = 0; }
  double ns() const {
    if (counted_ == 0) return 0;
    const double each = static_cast<double>(total_) / static_cast<double>(counted_) - clock_cost();
    return std::max(0.0, each) * static_cast<double>(parts_);
  }

 private:
  std::int64_t began_ = 0;
  std::int64_t total_ = 0;
  std::int64_t parts_ = 0;
  std::int64_t counted_ = 0;
};

struct End {
  explicit End(const DeviceConfig& c) : device(c) {
    pd = *device.alloc_pd();
    cq = *device.create_cq(1U << 16U);
    mr = *device.register_mr(pd, 0x10000, 1U << 20U, kLocalWrite | kRemoteWrite);
  }
  Qpn create() {
    QpInit init;
    init.pd = pd;
    init.send_cq = init.recv_cq = cq;
    init.caps = {64, 1, 1, 1, 0};
    return *device.create_qp(init);
  }
  Device device;
  PdId pd{};
  CqId cq{};
  MrInfo mr;
};

void connect(End& e, Qpn qpn, Qpn peer, const wire::Address& address, wire::Mode mode) {
  QpAttr a;
  a.mode = mode;
  a.access = kRemoteWrite;
  a.mtu = 1024;
  a.path = *e.device.open_path({address});
  a.dest_qpn = peer;
  CHECK(climb(QpType::kRc, a, [&](const QpAttr& at, std::uint32_t mask) {
    return e.device.modify_qp(qpn, at, mask, Time{}).has_value();
  }));
}

class Bench {
 public:
  Bench(wire::Mode mode, std::uint32_t queue_pairs, bool single, const char* controller = "none")
      : config_(make(queue_pairs, controller)),
        a_(config_),
        b_(config_),
        single_(single),
        marks_(config_.controller != 0) {
    for (std::uint32_t i = 0; i < queue_pairs; ++i) {
      qa_.push_back(a_.create());
      qb_.push_back(b_.create());
    }
    for (std::uint32_t i = 0; i < queue_pairs; ++i) {
      connect(a_, qa_[i], qb_[i], kB, mode);
      connect(b_, qb_[i], qa_[i], kA, mode);
    }
  }

  // One batch from posting to completion. `lossy`: its first packet is lost once.
  void batch(bool lossy = false) {
    now_ = now_.after(microseconds(1));
    const Sge piece{0x10000, 64, a_.mr.lkey};
    SendWr w;
    w.sges = {&piece, 1};
    w.opcode = WrOpcode::kWrite;
    w.flags = kSendSignaled;
    w.remote_address = 0x10000;
    w.rkey = b_.mr.rkey;
    std::array<Qpn, kBatch> chosen;
    for (Qpn& q : chosen) q = qa_[random_.below(qa_.size())];
    post.start();
    for (const Qpn q : chosen) (void)a_.device.post_send(q, w);
    post.stop();
    transmit_all();
    if (lossy && count_ == kBatch) {
      std::copy(packets_.begin() + 1, packets_.begin() + static_cast<std::ptrdiff_t>(count_--),
                packets_.begin());
      deliver(b_, rx_ooo);
      acknowledge();
      while (a_.device.next_deadline() != kNever && poll_cq() != kBatch) {
        transmit_all();
        if (count_ == 0) now_ = std::max(now_, a_.device.next_deadline());
        a_.device.on_timer(now_);
        deliver(b_, ignored);
        acknowledge();
      }
      done_ = 0;
      return;
    }
    deliver(b_, rx_data);
    acknowledge();
    poll_cq_watch.start();
    (void)a_.device.poll_cq(a_.cq, completions_);
    poll_cq_watch.stop();
    timer.start();
    for (std::size_t i = 0; i < kBatch; ++i) {
      if (a_.device.next_deadline() <= now_) a_.device.on_timer(now_);
    }
    timer.stop();
  }
  void forget() {
    for (Stopwatch* w : {&post, &tx_data, &rx_data, &rx_ooo, &ack_out, &ack, &poll_cq_watch, &timer})
      w->reset();
  }

  Stopwatch post, tx_data, rx_data, rx_ooo, ack_out, ack, poll_cq_watch, timer, ignored;

 private:
  static constexpr wire::Address kA = wire::Address::v4(10, 0, 0, 1);
  static constexpr wire::Address kB = wire::Address::v4(10, 0, 0, 2);

  static DeviceConfig make(std::uint32_t queue_pairs, const char* controller) {
    DeviceConfig c;
    c.controller = *find_controller(controller);
    c.max_qp = queue_pairs + 2;
    c.qpn_bits = 16;
    return c;
  }

  void carry(const wire::Burst& burst, const wire::Address& from) {
    for (const wire::TxPacket& t : burst.packets) {
      wire::RxPacket& p = packets_[count_++];
      p.header = t.header;
      p.source = from;
      p.payload = t.payload;
      p.tos = marks_ && t.payload != 0 && ++carried_ % 64 == 0 ? wire::kEcnCe : std::uint8_t{0};
    }
  }
  void deliver(End& to, Stopwatch& watch) {
    NullSink sink;
    watch.start();
    if (single_) {
      for (std::size_t i = 0; i < count_; ++i) to.device.on_packets(now_, {&packets_[i], 1}, sink);
    } else {
      to.device.on_packets(now_, {packets_.data(), count_}, sink);
    }
    watch.stop();
    count_ = 0;
  }

  void transmit_all() {
    while (count_ < kBatch) {
      tx_data.start();
      const wire::Burst burst = a_.device.poll_transmit(now_, {64, 65000});
      tx_data.stop();
      if (burst.empty()) {
        const Time paced = a_.device.engine().pacing.next();
        if (paced == kNever) break;
        now_ = std::max(now_, paced);
      }
      carry(burst, kA);
    }
  }
  void acknowledge() {
    for (;;) {
      ack_out.start();
      const wire::Burst burst = b_.device.poll_control(now_);
      ack_out.stop();
      if (burst.empty()) break;
      carry(burst, kB);
    }
    deliver(a_, ack);
  }
  std::size_t poll_cq() { return done_ += a_.device.poll_cq(a_.cq, completions_); }

  DeviceConfig config_;
  End a_;
  End b_;
  bool single_;
  bool marks_;
  std::uint32_t carried_ = 0;
  std::vector<Qpn> qa_;
  std::vector<Qpn> qb_;
  Prng random_{7};
  Time now_{};
  std::array<wire::RxPacket, 2 * kBatch> packets_{};
  std::size_t count_ = 0;
  std::array<Completion, kBatch> completions_;
  std::size_t done_ = 0;  // of a batch with a loss
};

void parts(benchmark::State& state, wire::Mode mode, std::uint32_t queue_pairs, bool single,
           const char* controller) {
  const auto bench = std::make_unique<Bench>(mode, queue_pairs, single, controller);
  for (int i = 0; i < kWarmUp; ++i) bench->batch();
  bench->forget();
  for (auto _ : state) bench->batch();
  const double packets = static_cast<double>(state.iterations()) * kBatch;
  state.counters["post_ns"] = bench->post.ns() / packets;
  state.counters["tx_data_ns"] = bench->tx_data.ns() / packets;
  state.counters["rx_data_ns"] = bench->rx_data.ns() / packets;
  state.counters["ack_out_ns"] = bench->ack_out.ns() / packets;
  state.counters["ack_ns"] = bench->ack.ns() / packets;
  state.counters["poll_cq_ns"] = bench->poll_cq_watch.ns() / packets;
  state.counters["timer_ns"] = bench->timer.ns() / packets;
}

void recovery(benchmark::State& state, wire::Mode mode) {
  const auto bench = std::make_unique<Bench>(mode, 1, false);
  for (int i = 0; i < kWarmUp; ++i) bench->batch(true);
  bench->forget();
  for (auto _ : state) bench->batch(true);
  state.counters["rx_ooo_ns"] = bench->rx_ooo.ns() / (static_cast<double>(state.iterations()) * (kBatch - 1));
}

// Bytes that one connected queue pair takes: its hot part, and all but its rings.
void memory(benchmark::State& state) {
  constexpr std::uint32_t kQueuePairs = 4096;
  double each = 0;
  for (auto _ : state) {
    DeviceConfig c;
    c.max_qp = kQueuePairs + 2;
    End e(c);
    const wire::Address peer = wire::Address::v4(10, 0, 0, 2);
    const std::size_t before = allocated;
    for (std::uint32_t i = 0; i < kQueuePairs; ++i) {
      QpInit init;
      init.pd = e.pd;
      init.send_cq = init.recv_cq = e.cq;
      init.caps = {1, 1, 1, 1, 0};
      const Qpn q = *e.device.create_qp(init);
      connect(e, q, q, peer, wire::Mode::kIrn);
    }
    each = static_cast<double>(allocated - before) / kQueuePairs;
  }
  const std::size_t rings = sizeof(SendWqe) + sizeof(RecvWqe) + 2 * sizeof(Sge) + sizeof(SendOperands) +
                            sizeof(ReadIssued) + sizeof(ReadServed);
  state.counters["bytes_per_qp_hot"] = sizeof(QueuePair);
  state.counters["bytes_per_qp_total"] = each - static_cast<double>(rings);
}

void register_all() {
  const auto add = [](const std::string& name, auto function) {
    return benchmark::RegisterBenchmark(name.c_str(), function)
        ->Repetitions(kRepetitions)
        ->ReportAggregatesOnly();
  };
  for (const wire::Mode mode : {wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic}) {
    const std::string name = mode == wire::Mode::kRoce  ? "roce/"
                             : mode == wire::Mode::kIrn ? "irn/"
                                                        : "srnic/";
    const auto row = [&](const std::string& what, std::uint32_t queue_pairs, bool single,
                         const char* controller) {
      add(name + what, [=](benchmark::State& s) {
        parts(s, mode, queue_pairs, single, controller);
      })->Iterations(kBatches);
    };
    row("hot", 1, false, "none");
    row("10k", 10'000, false, "none");
    row("10k_unbatched", 10'000, true, "none");
    for (const char* controller : {"aimd", "dctcp", "dcqcn", "timely"})
      row(std::string("hot_").append(controller), 1, false, controller);
    add(name + "recovery", [=](benchmark::State& s) { recovery(s, mode); })->Iterations(kBatches);
  }
  benchmark::RegisterBenchmark("memory", memory)->Iterations(1);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  return weft::bench::program("weft-bench-transport", argc, argv, weft::register_all);
}
