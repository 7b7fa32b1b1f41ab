// What the transport costs per packet, without bytes, sockets or checksums: `./dev bench transport [--json
// F]`.
//
// Two Devices face each other; headers are carried over by hand between the timed parts. A round posts
// WRITEs of 64 bytes in batches of 32, and each part of their way is timed by itself:
//
//   post       Device::post_send                      transmit   Device::poll_transmit
//   receive    Device::on_packets, in-order data      ack_out    Device::poll_control
//   ack_in     Device::on_packets, ACKs               complete   Device::poll_cq
//   timer      next_deadline and on_timer with nothing due
//
// "hot" is one queue pair; "10k" draws each batch's 32 queue pairs at random from 10 000 connected ones;
// "10k_single" gives their packets to on_packets one by one, so that it cannot prefetch. Key checks are in,
// decoding, copying and CRC are not. With a controller ("hot_dcqcn", ...) one packet of 64 is marked, so that
// windows and rates are at work; a paced queue pair's waits pass in virtual time, their cost is in transmit.
// Medians of nine rounds; the process pins itself to one core.
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "core/base/prng.h"
#include "core/transport/device.h"
#include "core/transport/engine.h"
#include "core/transport/queue_pair.h"

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
constexpr int kRounds = 9;
constexpr int kBatchesPerRound = 20'000;

class Stopwatch {
 public:
  void start() { began_ = now(); }
  void stop() { total_ += now() - began_; }
  double take() {
    const double t = static_cast<double>(total_);
    total_ = 0;
    return t;
  }

 private:
  static std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
  std::int64_t began_ = 0;
  std::int64_t total_ = 0;
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
  a.path = *e.device.open_path({address, 0, {}});
  a.dest_qpn = peer;
  a.state = QpState::kInit;
  (void)e.device.modify_qp(qpn, a, kAttrState | kAttrPkeyIndex | kAttrPort | kAttrAccess, Time{});
  a.state = QpState::kRtr;
  (void)e.device.modify_qp(
      qpn, a,
      kAttrState | kAttrPath | kAttrMtu | kAttrDestQpn | kAttrRqPsn | kAttrMaxDestRdAtomic | kAttrMinRnrTimer,
      Time{});
  a.state = QpState::kRts;
  (void)e.device.modify_qp(
      qpn, a, kAttrState | kAttrTimeout | kAttrRetryCount | kAttrRnrRetry | kAttrSqPsn | kAttrMaxRdAtomic,
      Time{});
}

using Row = std::map<std::string, double>;  // part -> ns per packet

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

  Row run() {
    std::map<std::string, std::vector<double>> rounds;
    for (int r = -1; r < kRounds; ++r) {  // the first warms up
      for (int i = 0; i < kBatchesPerRound; ++i) batch();
      for (auto& [part, watch] : watches_) {
        const double ns = watch.take() / (double{kBatchesPerRound} * kBatch);
        if (r >= 0) rounds[part].push_back(ns);
      }
    }
    Row row;
    for (auto& [part, values] : rounds) {
      std::sort(values.begin(), values.end());
      row[part] = values[values.size() / 2];
    }
    return row;
  }

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

  void batch() {
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
    post_.start();
    for (const Qpn q : chosen) (void)a_.device.post_send(q, w, now_);
    post_.stop();
    while (count_ < kBatch) {
      transmit_.start();
      const wire::Burst burst = a_.device.poll_transmit(now_, {64, 65000});
      transmit_.stop();
      if (burst.empty()) {
        const Time paced = a_.device.engine().pacing.next();
        if (paced == kNever) break;
        now_ = std::max(now_, paced);
      }
      carry(burst, kA);
    }
    deliver(b_, receive_);
    for (;;) {
      ack_out_.start();
      const wire::Burst burst = b_.device.poll_control(now_);
      ack_out_.stop();
      if (burst.empty()) break;
      carry(burst, kB);
    }
    deliver(a_, ack_in_);
    std::array<Completion, kBatch> done;
    complete_.start();
    (void)a_.device.poll_cq(a_.cq, done);
    complete_.stop();
    timer_.start();
    for (std::size_t i = 0; i < kBatch; ++i) {
      if (a_.device.next_deadline() <= now_) a_.device.on_timer(now_);
    }
    timer_.stop();
  }

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
  std::map<std::string, Stopwatch> watches_;
  Stopwatch& post_ = watches_["post"];
  Stopwatch& transmit_ = watches_["transmit"];
  Stopwatch& receive_ = watches_["receive"];
  Stopwatch& ack_out_ = watches_["ack_out"];
  Stopwatch& ack_in_ = watches_["ack_in"];
  Stopwatch& complete_ = watches_["complete"];
  Stopwatch& timer_ = watches_["timer"];
};

// Bytes that one connected queue pair takes, rings for one request and one receive included and apart.
Row memory() {
  constexpr std::uint32_t kQueuePairs = 4096;
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
  const double each = static_cast<double>(allocated - before) / kQueuePairs;
  const std::size_t rings = sizeof(SendWqe) + sizeof(RecvWqe) + 2 * sizeof(Sge) + sizeof(SendOperands) +
                            sizeof(ReadIssued) + sizeof(ReadServed);
  return {{"hot_bytes", sizeof(QueuePair)},
          {"all_but_rings_bytes", each - static_cast<double>(rings)},
          {"with_smallest_rings_bytes", each}};
}

void print(std::FILE* out, const std::map<std::string, Row>& rows) {
  std::fprintf(out, "{\n");
  for (auto row = rows.begin(); row != rows.end(); ++row) {
    std::fprintf(out, "  \"%s\": {", row->first.c_str());
    for (auto cell = row->second.begin(); cell != row->second.end(); ++cell)
      std::fprintf(out, "%s\"%s\": %.2f", cell == row->second.begin() ? "" : ", ", cell->first.c_str(),
                   cell->second);
    std::fprintf(out, "}%s\n", std::next(row) == rows.end() ? "" : ",");
  }
  std::fprintf(out, "}\n");
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  using namespace weft;
  const char* file = nullptr;
  if (argc == 3 && std::strcmp(argv[1], "--json") == 0) {
    file = argv[2];
  } else if (argc != 1) {
    std::fprintf(stderr, "bench transport: it takes --json FILE or nothing.\n");
    return 2;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  std::map<std::string, Row> rows;
  for (const wire::Mode mode : {wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic}) {
    const std::string name = mode == wire::Mode::kRoce ? "roce" : mode == wire::Mode::kIrn ? "irn" : "srnic";
    std::fprintf(stderr, "bench transport: %s ...\n", name.c_str());
    rows[name + "_hot_ns"] = Bench(mode, 1, false).run();
    rows[name + "_10k_ns"] = Bench(mode, 10'000, false).run();
    rows[name + "_10k_single_ns"] = Bench(mode, 10'000, true).run();
    for (const char* controller : {"aimd", "dctcp", "dcqcn", "timely"})
      rows[name + "_hot_" + controller + "_ns"] = Bench(mode, 1, false, controller).run();
  }
  rows["memory"] = memory();
  print(stdout, rows);
  if (file == nullptr) return 0;
  std::FILE* out = std::fopen(file, "w");
  if (out == nullptr) {
    std::fprintf(stderr, "bench transport: --json '%s' cannot be written.\n", file);
    return 2;
  }
  print(out, rows);
  std::fclose(out);
  return 0;
}
