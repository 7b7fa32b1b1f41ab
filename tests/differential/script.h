// What the two programs of a differential run do, and the log of what they saw: the same object drives a
// Device wherever it lives. Each end has one queue pair and a plan of messages drawn from the seed; it keeps
// a few outstanding, and receives what the other end SENDs.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/prng.h"
#include "core/transport/cc/controller.h"
#include "core/transport/device.h"
#include "core/verbs/ladder.h"

namespace weft::differential {

inline constexpr std::uint64_t kMemoryAt = 0x4000'0000;
inline constexpr std::uint32_t kMemory = 1U << 20U;
inline constexpr std::uint32_t kSlot = 8192;   // bytes of one message's place at either end
inline constexpr std::uint32_t kDepth = 4;     // messages outstanding
inline constexpr std::uint32_t kReceives = 8;  // posted at first; each is posted again when it completes

// Where each end's memory holds what: offsets from its start.
inline constexpr std::uint32_t kSources = 0;
inline constexpr std::uint32_t kWritten = kSources + kDepth * kSlot;  // by the peer
inline constexpr std::uint32_t kRead = kWritten + kDepth * kSlot;     // from the peer
inline constexpr std::uint32_t kReceived = kRead + kDepth * kSlot;    // SENT by the peer
inline constexpr std::uint32_t kCounters =
    kReceived + kReceives * kSlot;  // for atomics: nothing else writes here

struct Message {
  WrOpcode op{};
  std::uint32_t length = 0;
};

struct Plan {
  wire::Mode mode{};
  std::uint32_t mtu = 1024;
  std::uint32_t loss = 0;  // millionths, each direction
  std::uint32_t mark = 0;  // for congestion, the same
  std::array<DeviceConfig, 2> devices;
  std::array<std::vector<Message>, 2> messages;
};

inline Plan make_plan(std::uint64_t seed, wire::Mode mode) {
  Prng r(seed);
  Plan p;
  p.mode = mode;
  constexpr std::uint32_t kMtus[] = {256, 512, 1024, 4096};
  p.mtu = kMtus[r.below(4)];
  p.loss = r.below(4) == 0 ? 0 : static_cast<std::uint32_t>(r.between(1'000, 80'000));
  DeviceConfig d;
  d.max_qp = 8;
  d.qpn_bits = 4;
  d.burst_packets = 1;
  d.loss_blocks = static_cast<std::uint32_t>(r.below(3) == 0 ? r.below(2) : 16);
  d.bdp_cap = static_cast<std::uint32_t>(r.between(4, 64));
  d.window_packets = 64;
  d.read_chunk = r.below(2) == 0 ? 0 : 2048;
  d.roce_window = r.below(2) == 0 ? 0 : 32;
  // Each end has odd picoseconds of its own. Otherwise a packet sent at one end's time-out might arrive
  // exactly at the other's; which of the two comes first is not tested here.
  d.rto_low = microseconds(40) + picoseconds(1);
  d.rto_high = microseconds(130) + picoseconds(3);
  p.devices = {d, d};
  p.devices[1].rto_low += picoseconds(70);
  p.devices[1].rto_high += picoseconds(1100);
  // Two plans of three have controllers: windows, rates and CNPs must be the same in both worlds, too.
  Prng c = Prng(seed).fork(1);
  if (c.below(3) != 0) {
    p.mark = static_cast<std::uint32_t>(c.below(4) == 0 ? 0 : c.between(10'000, 400'000));
    for (DeviceConfig& each : p.devices) {
      each.controller = static_cast<std::uint8_t>(c.below(controllers().size()));
      each.line_rate = Rate{c.between(1'000'000'000, 100'000'000'000)};
      each.pacing_quantum =
          c.below(2) == 0 ? Duration{} : microseconds(static_cast<std::int64_t>(c.below(20)));
    }
  }
  constexpr WrOpcode kOps[] = {WrOpcode::kWrite,   WrOpcode::kWriteImm, WrOpcode::kSend,
                               WrOpcode::kSendImm, WrOpcode::kRead,     WrOpcode::kCompareSwap,
                               WrOpcode::kFetchAdd};
  for (auto& plan : p.messages) {
    plan.resize(r.between(5, 40));
    for (Message& m : plan) {
      m.op = kOps[r.below(7)];
      const bool atomic = m.op == WrOpcode::kCompareSwap || m.op == WrOpcode::kFetchAdd;
      m.length = atomic ? 8 : static_cast<std::uint32_t>(r.below(3) == 0 ? r.below(64) : r.below(kSlot));
    }
  }
  return p;
}

class Script {
 public:
  explicit Script(const Plan& plan) : plan_(plan) {}

  // Devices of both ends, before anything runs.
  void set_up(std::array<Device*, 2> devices, std::array<wire::Address, 2> addresses) {
    devices_ = devices;
    for (std::size_t h = 0; h < 2; ++h) {
      End& e = ends_[h];
      e.pd = *devices[h]->alloc_pd();
      e.cq = *devices[h]->create_cq(256);
      e.mr = *devices[h]->register_mr(e.pd, kMemoryAt, kMemory,
                                      kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic);
      QpInit init;
      init.pd = e.pd;
      init.send_cq = init.recv_cq = e.cq;
      init.caps = {16, 16, 1, 1, 0};
      e.qpn = *devices[h]->create_qp(init);
    }
    for (std::size_t h = 0; h < 2; ++h) connect(h, addresses[1 - h]);
    for (std::size_t h = 0; h < 2; ++h) {
      for (std::uint32_t i = 0; i < kReceives; ++i) receive(h);
    }
  }

  // Polls, and posts what there is room for. True: something was posted.
  bool act(std::size_t h, Time now) {
    End& e = ends_[h];
    bool posted = false;
    std::array<Completion, 16> got;
    while (const std::uint32_t n = devices_[h]->poll_cq(e.cq, got)) {
      for (std::uint32_t i = 0; i < n; ++i) {
        const Completion& c = got[i];
        log(h, now,
            "completion " + std::to_string(c.wr_id) + " status " +
                std::to_string(static_cast<int>(c.status)) + " bytes " + std::to_string(c.byte_len) +
                " imm " + std::to_string(c.imm));
        if (static_cast<int>(c.opcode) >= static_cast<int>(WcOpcode::kReceive)) {
          if (c.status == WcStatus::kSuccess) receive(h);
        } else {
          ++e.completed;
        }
      }
    }
    const auto& plan = plan_.messages[h];
    while (e.posted < plan.size() && e.posted - e.completed < kDepth) {
      const Message& m = plan[e.posted];
      const std::uint64_t slot = e.posted % kDepth * kSlot;
      const bool atomic = m.op == WrOpcode::kCompareSwap || m.op == WrOpcode::kFetchAdd;
      const bool fetches = m.op == WrOpcode::kRead || atomic;
      const Sge piece{kMemoryAt + (fetches ? kRead : kSources) + slot, m.length, e.mr.lkey};
      SendWr w;
      w.wr_id = e.posted++;
      w.sges = {&piece, m.length == 0 ? 0U : 1U};
      w.opcode = m.op;
      w.flags = kSendSignaled;
      w.imm = static_cast<std::uint32_t>(w.wr_id);
      w.remote_address = kMemoryAt +
                         (atomic                    ? kCounters
                          : m.op == WrOpcode::kRead ? kSources
                                                    : kWritten) +
                         slot;
      w.rkey = ends_[1 - h].mr.rkey;
      w.compare_or_add = 1;
      if (!devices_[h]->post_send(e.qpn, w)) break;  // it has failed
      posted = true;
    }
    return posted;
  }

  void log(std::size_t h, Time at, std::string what) {
    logs_[h].push_back(std::to_string(at.ps) + " " + std::move(what));
  }
  const std::vector<std::string>& logged(std::size_t h) const { return logs_[h]; }
  const MrInfo& memory(std::size_t h) const { return ends_[h].mr; }
  bool finished() const {
    return ends_[0].completed == plan_.messages[0].size() && ends_[1].completed == plan_.messages[1].size();
  }

 private:
  struct End {
    PdId pd{};
    CqId cq{};
    MrInfo mr;
    Qpn qpn{};
    std::size_t posted = 0;
    std::size_t completed = 0;
    std::uint64_t receives = 0;
  };

  void connect(std::size_t h, const wire::Address& peer) {
    Device& d = *devices_[h];
    QpAttr a;
    a.mode = plan_.mode;
    a.mtu = plan_.mtu;
    a.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    a.path = *d.open_path({peer});
    a.dest_qpn = ends_[1 - h].qpn;
    a.sq_psn = {h == 0 ? 0xFFFFF0U : 77U};
    a.rq_psn = {h == 0 ? 77U : 0xFFFFF0U};
    a.max_rd_atomic = a.max_dest_rd_atomic = 2;
    a.min_rnr_timer = 1;
    a.timeout = plan_.mode == wire::Mode::kRoce ? 6 : 10;
    CHECK(climb(QpType::kRc, a, [&](const QpAttr& at, std::uint32_t mask) {
      return d.modify_qp(ends_[h].qpn, at, mask, Time{}).has_value();
    }));
  }
  void receive(std::size_t h) {
    End& e = ends_[h];
    const Sge piece{kMemoryAt + kReceived + e.receives % kReceives * kSlot, kSlot, e.mr.lkey};
    static_cast<void>(devices_[h]->post_recv(e.qpn, {1'000'000 + e.receives++, {&piece, 1}}));
  }

  const Plan& plan_;
  std::array<Device*, 2> devices_{};
  std::array<End, 2> ends_;
  std::array<std::vector<std::string>, 2> logs_;
};

}  // namespace weft::differential
