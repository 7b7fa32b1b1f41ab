// Programs whose queue pairs are connected by hand before anything runs: the same object drives a Device
// wherever it lives. Each end has one queue pair and a plan of messages drawn from the seed; it keeps a few
// outstanding, and receives what the other end SENDs.
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
#include "tests/differential/messages.h"
#include "tests/differential/worlds.h"

namespace weft::differential {

struct Plan {
  wire::Mode mode{};
  std::uint32_t mtu = 1024;
  WorldPlan world;
  std::array<std::vector<Message>, 2> messages;
};

inline Plan make_plan(std::uint64_t seed, wire::Mode mode) {
  Prng r(seed);
  Plan p;
  p.mode = mode;
  p.world.seed = seed;
  impair::ImpairConfig& network = p.world.networks[0];
  constexpr std::uint32_t kMtus[] = {256, 512, 1024, 4096};
  p.mtu = kMtus[r.below(4)];
  network.loss = r.below(4) == 0 ? 0 : static_cast<std::uint32_t>(r.between(1'000, 80'000));
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
  p.world.devices = {d, d};
  p.world.devices[1].rto_low += picoseconds(70);
  p.world.devices[1].rto_high += picoseconds(1100);
  // Two plans of three have controllers: windows, rates and CNPs must be the same in both worlds, too.
  Prng c = Prng(seed).fork(1);
  if (c.below(3) != 0) {
    network.mark = static_cast<std::uint32_t>(c.below(4) == 0 ? 0 : c.between(10'000, 400'000));
    for (DeviceConfig& each : p.world.devices) {
      each.controller = static_cast<std::uint8_t>(c.below(controllers().size()));
      each.line_rate = Rate{c.between(1'000'000'000, 100'000'000'000)};
      each.pacing_quantum =
          c.below(2) == 0 ? Duration{} : microseconds(static_cast<std::int64_t>(c.below(20)));
    }
  }
  for (auto& messages : p.messages) messages = draw_messages(r, 5, 40);
  return p;
}

class Script final : public Programs {
 public:
  explicit Script(const Plan& plan) : plan_(plan) {}

  void set_up(std::array<Host*, 2> hosts) override {
    for (std::size_t h = 0; h < 2; ++h) {
      devices_[h] = &hosts[h]->device();
      End& e = ends_[h];
      e.pd = *devices_[h]->alloc_pd();
      e.cq = *devices_[h]->create_cq(256);
      e.mr = *devices_[h]->register_mr(e.pd, kMemoryAt, kMemory,
                                       kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic);
      e.memory = fresh_memory(h);
      hosts[h]->set_region(e.mr.region, e.memory.data());
      QpInit init;
      init.pd = e.pd;
      init.send_cq = init.recv_cq = e.cq;
      init.caps = {16, 16, 1, 1, 0};
      e.qpn = *devices_[h]->create_qp(init);
    }
    for (std::size_t h = 0; h < 2; ++h) connect(h, hosts[1 - h]->address());
    for (std::size_t h = 0; h < 2; ++h) {
      for (std::uint32_t i = 0; i < kReceives; ++i) receive(h);
    }
  }

  // Polls, and posts what there is room for.
  void act(std::size_t h, Time now) override {
    End& e = ends_[h];
    std::array<Completion, 16> got;
    while (const std::uint32_t n = devices_[h]->poll_cq(e.cq, got)) {
      for (std::uint32_t i = 0; i < n; ++i) {
        const Completion& c = got[i];
        log(h, Lane::kDevice, now, to_text(c));
        if (is_receive(c)) {
          if (c.status == WcStatus::kSuccess) receive(h);
        } else {
          ++e.completed;
        }
      }
    }
    const auto& plan = plan_.messages[h];
    while (e.posted < plan.size() && e.posted - e.completed < kDepth) {
      const Request request(plan[e.posted], e.posted, {e.mr.lkey, ends_[1 - h].mr.rkey});
      ++e.posted;
      if (!devices_[h]->post_send(e.qpn, request.wr)) break;  // it has failed
    }
  }

  bool same_memory(const Script& other) const {
    return ends_[0].memory == other.ends_[0].memory && ends_[1].memory == other.ends_[1].memory;
  }
  bool finished() const {
    return ends_[0].completed == plan_.messages[0].size() && ends_[1].completed == plan_.messages[1].size();
  }

 private:
  struct End {
    PdId pd{};
    CqId cq{};
    MrInfo mr;
    std::vector<std::uint8_t> memory;
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
    const Sge piece = receive_piece(e.receives, e.mr.lkey);
    static_cast<void>(devices_[h]->post_recv(e.qpn, {1'000'000 + e.receives++, {&piece, 1}}));
  }

  const Plan& plan_;
  std::array<Device*, 2> devices_{};
  std::array<End, 2> ends_;
};

}  // namespace weft::differential
