// Connecting two ends: what the Devices are told, and what the referee may hold them to.
#include <algorithm>

#include "core/base/check.h"
#include "core/transport/cc/controller.h"
#include "core/verbs/ladder.h"
#include "pair/world.h"

namespace weft::pair {

Duration longest_rto(const DeviceConfig& d, std::uint8_t timeout) {
  if (d.rto != Rto::kFloored) return d.rto_high;
  return std::max(d.rto_high, check::longest_measured_rto(check::verbs_timeout(timeout)));
}

World::Connection World::connect(std::uint32_t a, const EndConfig& at_a, std::uint32_t b,
                                 const EndConfig& at_b, std::uint32_t mtu) {
  const std::uint32_t host_of[2] = {a, b};
  const EndConfig* ends[2] = {&at_a, &at_b};
  Qpn qpn[2];
  for (int i = 0; i < 2; ++i) {
    const EndConfig& e = *ends[i];
    const auto made =
        host(host_of[i])
            .device.create_qp({QpType::kRc, e.pd, e.send_cq, e.recv_cq, e.caps, e.signal_all, e.srq});
    CHECK(made.has_value());
    qpn[i] = *made;
  }
  join(a, qpn[0], at_a, b, qpn[1], at_b, mtu);
  return {qpn[0], qpn[1]};
}

void World::join(std::uint32_t a, Qpn qpn_a, const EndConfig& at_a, std::uint32_t b, Qpn qpn_b,
                 const EndConfig& at_b, std::uint32_t mtu) {
  const std::uint32_t host_of[2] = {a, b};
  const EndConfig* ends[2] = {&at_a, &at_b};
  const Qpn qpn[2] = {qpn_a, qpn_b};
  check::QpFacts facts[2];
  for (int i = 0; i < 2; ++i) {
    const EndConfig& e = *ends[i];
    const EndConfig& other = *ends[1 - i];
    Device& device = host(host_of[i]).device;
    const DeviceConfig& dc = device.config();
    const auto path = device.open_path({host(host_of[1 - i]).address()});
    CHECK(path.has_value());
    QpAttr attr;
    attr.mode = e.mode;
    attr.controller = e.controller;
    attr.service_level = e.service_level;
    attr.mtu = mtu;
    attr.rq_psn = other.psn;
    attr.sq_psn = e.psn;
    attr.dest_qpn = qpn[1 - i];
    attr.path = *path;
    attr.access = e.access;
    attr.max_rd_atomic = e.max_rd_atomic;
    attr.max_dest_rd_atomic = e.max_dest_rd_atomic;
    attr.min_rnr_timer = e.min_rnr_timer;
    attr.timeout = e.timeout;
    attr.retry_count = e.retry_count;
    attr.rnr_retry = e.rnr_retry;
    const auto risen = climb(QpType::kRc, attr, [&](const QpAttr& at, std::uint32_t mask) {
      return device.modify_qp(qpn[i], at, mask, now_);
    });
    CHECK(risen.has_value());
    ends_.emplace_back(host_of[i], qpn[i]);
    if (e.srq != kNoSrq) shares_.emplace(host_of[i], qpn[i]);
    check::QpFacts& f = facts[i];
    f.self = {host(host_of[i]).id(), qpn[i]};
    f.peer = {host(host_of[1 - i]).id(), qpn[1 - i]};
    f.pd = e.pd;
    f.srq = e.srq;
    f.mode = e.mode;
    f.mtu = mtu;
    f.sq_psn = e.psn;
    f.access = e.access;
    f.retry_count = e.retry_count;
    f.rnr_retry = e.rnr_retry;
    f.timeout = e.timeout;
    f.signal_all = e.signal_all;
    f.reads_kept = e.max_dest_rd_atomic;
    f.peer_rnr_delay = check::rnr_delay(other.min_rnr_timer);
    f.bdp_cap = dc.bdp_cap;
    f.cnp_interval = controllers()[e.controller]->cnp_interval;
    if (e.controller != 0) f.slowest_turn = std::min(dc.line_rate, kLeastRate).time_for(Bytes{4096 + 256});
    f.roce_window = dc.roce_window;
    f.selective_rto = std::min(dc.rto_low, dc.rto_high);
    if (dc.rto == Rto::kFloored) f.selective_rto = std::max(f.selective_rto, dc.rto_floor);
    f.rto_backs_off = dc.rto_backs_off;
    f.probe = dc.tail_probe;
    if (other.mode != wire::Mode::kRoce) f.answers_kept = check::answers_kept(longest_rto(dc, e.timeout));
    // A queue pair holds at most four blocks: two directions, sending and receiving.
    if (dc.recovery != nullptr && dc.recovery->mode == e.mode)
      host(host_of[i]).coverage.hit(e.mode == wire::Mode::kIrn ? Covered::varied_irn : Covered::varied_srnic);
    // A variant may forget SACKs: this end's own variant, or that of its peer, whose answers this end sends.
    f.remembers_sacks = dc.recovery == nullptr && dc.loss_blocks >= 4 * dc.max_qp;
    // Two time-outs (docs/decisions/path-credit-in-line.md), the second twice as
    // long in irn.
    if (dc.path_credit.n != 0) {
      f.credit_hold = longest_rto(dc, e.timeout) * 3;
      if (e.mode == wire::Mode::kRoce)
        f.credit_hold = std::max(f.credit_hold, check::verbs_timeout(e.timeout) * 2);
    }
    f.path_bounded = dc.path_credit.n != 0 || host(host_of[1 - i]).device.config().path_credit.n != 0;
    // A higher level may have every turn of the end that asks or of the end that answers.
    const auto starves = [](const DeviceConfig& d, const EndConfig& at) {
      return d.schedule == Schedule::kPriority && at.service_level + 1U < kServiceLevels;
    };
    f.may_starve = starves(dc, e) || starves(host(host_of[1 - i]).device.config(), other);
    f.early = crosses_line(a, b);
    const impair::ImpairConfig& n = config_.network;
    // A pair of boxes alone is no excuse: what a box drops it asks for again.
    const LineConfig& l = config_.line;
    const bool line_fails = l.cut_at != kNever || l.restart_at[0] != kNever || l.restart_at[1] != kNever;
    const bool line_loses = l.network.loss != 0 || l.network.corrupt != 0 || l.network.reorder != 0 ||
                            l.network.jitter.ps != 0 || line_fails;
    // A full control ring drops the newest ACK or NAK (core/transport/config.h).
    const bool rings_hold = std::all_of(config_.hosts.begin(), config_.hosts.end(),
                                        [](const DeviceConfig& d) { return d.control_ring >= 4096; });
    // Go-back-N drops a packet that comes ahead of its turn. So does a selective mode without a bitmap, and
    // any mode if a SEND finds no receive (docs/protocol/irn.md#what-a-receiver-keeps).
    const bool overtakes = n.reorder != 0 || n.jitter.ps != 0;
    f.network_loses = (f.early && line_loses) || n.loss != 0 || n.corrupt != 0 || !config_.script.empty() ||
                      !rings_hold || overtakes;
  }
  referee_.connected(facts[0], facts[1]);
}

}  // namespace weft::pair
