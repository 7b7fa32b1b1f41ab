#include "pair/plan.h"

#include <algorithm>

#include "core/transport/cc/controller.h"
#include "core/transport/loss/scheme.h"

namespace weft::pair {
namespace {

constexpr std::uint32_t kBytesPerWorld = 400'000;  // keeps a world at a few milliseconds

std::uint32_t pick(Prng& r, std::initializer_list<std::uint32_t> choices) {
  return choices.begin()[r.below(choices.size())];
}
std::uint32_t between(Prng& r, std::uint32_t lo, std::uint32_t hi) {
  return static_cast<std::uint32_t>(r.between(lo, hi));
}
bool one_in(Prng& r, std::uint32_t n) { return r.below(n) == 0; }
Duration some(Prng& r, Duration lo, Duration hi) {
  return picoseconds(static_cast<std::int64_t>(
      r.between(static_cast<std::uint64_t>(lo.ps), static_cast<std::uint64_t>(hi.ps))));
}

std::uint32_t message_length(Prng& r, std::uint32_t mtu) {
  switch (r.below(8)) {
    case 0:
      return 0;
    case 1:
      return between(r, 1, 64);
    case 2:
      return mtu * between(r, 1, 4) - between(r, 0, 1);
    case 3:
      return mtu * between(r, 1, 4) + 1;
    case 4:
      return between(r, 1, 16) * mtu;
    case 5:
      return between(r, 1, 24'000);
    default:
      return between(r, 1, mtu * 3);
  }
}

void plan_network(Prng& r, WorldConfig& w) {
  impair::ImpairConfig& n = w.network;
  n.delay = some(r, nanoseconds(500), microseconds(10));
  switch (r.below(10)) {
    case 0:
    case 1:
    case 2:
      break;  // clean
    case 3:
    case 4:
    case 5:
      n.loss = between(r, 1'000, 50'000);
      break;
    case 6:
      n.loss = between(r, 50'000, 300'000);
      break;
    case 7:
      n.jitter = some(r, nanoseconds(100), microseconds(20));
      n.duplicate = between(r, 0, 100'000);
      break;
    case 8:
      n.reorder = between(r, 1'000, 200'000);
      n.duplicate = between(r, 0, 50'000);
      break;
    default:
      n.loss = between(r, 1'000, 200'000);
      n.duplicate = between(r, 1'000, 200'000);
      n.reorder = between(r, 1'000, 200'000);
      n.corrupt = between(r, 1'000, 100'000);
      n.jitter = some(r, Duration{}, microseconds(10));
      break;
  }
  if (n.reorder != 0) n.reorder_by = some(r, nanoseconds(10), microseconds(40));
  if (one_in(r, 3)) w.rate = gigabits(between(r, 10, 400));
  if (one_in(r, 4)) w.fetch = some(r, nanoseconds(10), microseconds(2));
  w.serialise = n.corrupt != 0 || one_in(r, 3);
  w.batch = pick(r, {1, 2, 8, 32, 64});
  w.budget = {pick(r, {1, 2, 4, 16, 64}), pick(r, {4300, 9000, 65000})};
}

DeviceConfig plan_device(Prng& r, std::uint32_t qps) {
  DeviceConfig d;
  d.max_qp = qps;
  d.max_cq = qps * 2;
  d.max_mr = qps * 8;
  d.max_pd = qps;
  d.max_path = 16;
  d.max_ring = 256;
  d.max_cqe = 4096;
  d.control_ring = one_in(r, 8) ? 4 : 4096;
  d.seed = r.next();
  d.window_packets = pick(r, {64, 128, 512});
  d.bdp_cap = one_in(r, 2) ? between(r, 1, d.window_packets) : std::min(110U, d.window_packets);
  d.loss_blocks = one_in(r, 2) ? 4 * qps : pick(r, {0, 1, 2, 5});
  d.rto_low = some(r, microseconds(60), microseconds(150));
  d.rto_high = d.rto_low * between(r, 1, 4);
  d.rto_low_packets = between(r, 0, 5);
  d.roce_window = one_in(r, 2) ? 0 : between(r, 1, 64);
  d.read_chunk = one_in(r, 2) ? 0 : between(r, 256, 8192);
  d.ack_coalesce = one_in(r, 4);
  d.ack_every = pick(r, {1, 1, 2, 5, 64});
  if (d.roce_window != 0) d.ack_every = std::min(d.ack_every, d.roce_window);
  d.burst_packets = pick(r, {1, 3, 16, 64});
  d.burst_bytes = pick(r, {5000, 20000, 65000});
  if (one_in(r, 3)) {
    d.path_credit = Bytes{between(r, 1'000, 40'000)};
    d.path_overhead = Bytes{pick(r, {0, 100, 500})};
  }
  return d;
}

void plan_message(Prng& r, const ConnectionPlan& c, const EndConfig& from, MessagePlan& m) {
  m.opcode = std::initializer_list<WrOpcode>{WrOpcode::kWrite, WrOpcode::kSend, WrOpcode::kRead,
                                             WrOpcode::kWriteImm, WrOpcode::kSendImm}
                 .begin()[r.below(5)];
  m.length = message_length(r, c.mtu);
  if (c.atomics && one_in(r, 3)) {
    m.opcode = one_in(r, 2) ? WrOpcode::kCompareSwap : WrOpcode::kFetchAdd;
    m.length = 8;
    m.sges = 1;
  }
  m.sges = static_cast<std::uint8_t>(between(r, 0, from.caps.max_send_sge));
  if (m.length != 0) m.sges = std::max<std::uint8_t>(m.sges, 1);
  if (m.sges == 0) m.length = 0;
  m.reversed = one_in(r, 3);
  if (one_in(r, 2)) m.flags |= kSendSignaled;
  if (one_in(r, c.fences ? 2 : 8)) m.flags |= kSendFence;
  if (one_in(r, 8)) m.flags |= kSendSolicited;
  if (m.opcode != WrOpcode::kRead && !is_atomic(m.opcode) && from.caps.max_inline > 0 && one_in(r, 4)) {
    m.flags |= kSendInline;
    m.length = std::min(m.length, between(r, 0, from.caps.max_inline));
  }
  m.source_offset = between(r, 0, kMostSourceOffset);
}

FlowPlan plan_flow(Prng& r, const ConnectionPlan& c, std::uint32_t sender, std::uint32_t budget) {
  const EndConfig& from = c.end[sender];
  FlowPlan f;
  f.slots = pick(r, {1, 2, 7, 32});
  const std::uint32_t count = between(r, 0, 40);
  // How many requests may pass before one must be signaled, so that the queue can be reclaimed.
  const std::uint32_t run = std::max(1U, std::min(from.caps.max_send_wr, f.slots) / 2);
  std::uint32_t silent = 0;
  for (std::uint32_t i = 0; i < count && budget > 0; ++i) {
    MessagePlan m;
    plan_message(r, c, from, m);
    if (!is_atomic(m.opcode)) m.length = std::min(m.length, budget);
    budget -= std::min(budget, m.length);
    silent = (m.flags & kSendSignaled) != 0 ? 0 : silent + 1;
    if (silent >= run) {
      m.flags |= kSendSignaled;
      silent = 0;
    }
    f.slot_bytes = std::max(f.slot_bytes, m.length);
    f.messages.push_back(m);
  }
  if (!f.messages.empty()) f.messages.back().flags |= kSendSignaled;
  f.slot_bytes += between(r, 1, 64);
  if (one_in(r, 3)) f.think = some(r, nanoseconds(10), microseconds(5));
  if (one_in(r, 4)) f.receive_delay = some(r, microseconds(1), microseconds(60));
  f.spare_receives = one_in(r, 3) ? between(r, 1, 4) : 0;
  // A larger number would never be used.
  f.slots = std::min(f.slots, static_cast<std::uint32_t>(f.messages.size()) + f.spare_receives + 1);
  return f;
}

void plan_fault(Prng& r, FlowPlan& f) {
  if (f.messages.empty()) return;
  std::size_t i = r.below(f.messages.size());
  // Prefer an atomic if the message list has one, because few messages are atomics.
  for (int tries = 0; tries < 3 && !is_atomic(f.messages[i].opcode); ++tries) i = r.below(f.messages.size());
  MessagePlan& m = f.messages[i];
  if (m.length == 0) return;
  const bool send = m.opcode == WrOpcode::kSend || m.opcode == WrOpcode::kSendImm;
  const bool in_line = (m.flags & kSendInline) != 0;
  switch (r.below(5)) {
    case 0:
      if (!in_line) m.fault = Fault::kWrongLocalKey;
      break;
    case 1:
      m.fault = send ? Fault::kTooLong : Fault::kWrongKey;
      break;
    case 2:
      m.fault = send ? Fault::kTooLong : Fault::kOutOfBounds;
      break;
    case 3:
      m.fault = send ? Fault::kTooLong : Fault::kNoRight;
      break;
    default:
      if (!send) m.fault = Fault::kMemoryGone;
      break;
  }
}

EndConfig plan_end(Prng& r) {
  EndConfig e;
  e.mode = static_cast<wire::Mode>(r.below(wire::kModeCount));
  e.caps.max_send_wr = pick(r, {1, 2, 4, 16, 64});
  e.caps.max_recv_wr = pick(r, {1, 2, 4, 16, 64});
  e.caps.max_send_sge = between(r, 1, 4);
  e.caps.max_recv_sge = between(r, 1, 4);
  e.caps.max_inline = pick(r, {0, 64, 220});
  e.signal_all = one_in(r, 4);
  e.psn = WirePsn{(one_in(r, 2) ? kPsnMask - between(r, 0, 60) : static_cast<std::uint32_t>(r.next())) &
                  kPsnMask};
  e.timeout = static_cast<std::uint8_t>(between(r, 6, 8));  // 0.26 to 1.05 ms
  e.retry_count = static_cast<std::uint8_t>(one_in(r, 4) ? between(r, 0, 6) : 7);
  e.rnr_retry = static_cast<std::uint8_t>(one_in(r, 6) ? between(r, 0, 6) : 7);
  e.min_rnr_timer = static_cast<std::uint8_t>(between(r, 1, 6));
  return e;
}

// How many bytes may wait at host 0 at once: for each path the peer's credit, the READ bytes that host 0
// asked for, and one packet more, because a credit smaller than a packet still admits one.
Bytes door_bound(const Plan& p) {
  std::uint64_t longest_read = 0;
  for (const ConnectionPlan& c : p.connections) {
    for (const FlowPlan& f : c.flow) {
      for (const MessagePlan& m : f.messages) {
        if (m.opcode == WrOpcode::kRead)
          longest_read = std::max<std::uint64_t>(longest_read, m.length + c.mtu);
      }
    }
  }
  std::uint64_t bound = 0;
  for (std::size_t i = 1; i < p.world.hosts.size(); ++i) {
    bound += p.world.hosts[i].path_credit.n + 4096 + std::max(p.world.hosts[0].path_credit.n, longest_read);
  }
  return Bytes{bound};
}

// Half of the worlds have controllers, a network that sets congestion marks, and turns of all sizes. A
// separate generator draws them, so everything else in a world is the same with and without them.
void plan_congestion(Prng r, Plan& p) {
  if (one_in(r, 2)) return;
  if (!one_in(r, 3)) p.world.network.mark = between(r, 1'000, 300'000);
  for (DeviceConfig& d : p.world.hosts) {
    if (one_in(r, 2)) d.line_rate = gigabits(between(r, 1, 100));
    if (one_in(r, 2)) d.pacing_quantum = some(r, Duration{}, microseconds(40));
    d.schedule = static_cast<Schedule>(r.below(3));
    d.burst_requests = pick(r, {0, 1, 8});
  }
  for (ConnectionPlan& c : p.connections) {
    for (EndConfig& e : c.end) {
      e.controller = static_cast<std::uint8_t>(r.below(controllers().size()));
      e.service_level = static_cast<std::uint8_t>(r.below(kServiceLevels));
    }
  }
}

// In some worlds hosts recover losses by a variant of their mode. A variant without a bitmap also resends
// packets that the other end has.
void plan_variants(Prng r, Plan& p) {
  for (DeviceConfig& d : p.world.hosts) d.rto_backs_off = !one_in(r, 8);
  if (!one_in(r, 5)) return;
  const auto variants = loss_schemes().subspan(wire::kModeCount);
  for (DeviceConfig& d : p.world.hosts) d.recovery = variants[r.below(variants.size())];
}

// Some hosts probe for a missing ACK, and some measure their path's time-outs as the soft NIC does. A
// separate generator draws this, so that everything else in a world stays the same.
void plan_timing(Prng r, Plan& p) {
  if (p.world.drain.bps != 0) return;  // time-outs must not mistake the queue for a loss, nor add to it
  for (DeviceConfig& d : p.world.hosts) {
    if (one_in(r, 3)) d.tail_probe = some(r, microseconds(5), microseconds(60));
    if (!one_in(r, 4)) continue;
    d.rto = Rto::kFloored;
    d.rto_floor = one_in(r, 2) ? Duration{} : some(r, microseconds(60), microseconds(300));
    d.rto_initial = some(r, microseconds(60), microseconds(400));
  }
}

void plan_bad_binds(Prng r, Plan& p) {
  constexpr auto kKinds = static_cast<std::uint32_t>(BindFault::kCount);
  for (ConnectionPlan& c : p.connections) {
    if (!c.windows || !one_in(r, 3)) continue;
    const std::size_t side = r.below(2);
    // Few windows live to be bound again while they are open.
    c.bad_bind[side] = static_cast<BindFault>(std::min(between(r, 1, kKinds), kKinds - 1));
    c.good_binds[side] = between(r, 0, 2);
    if (c.bad_bind[side] == BindFault::kInUse) c.good_binds[side] = 1;
  }
}

// Several ends of one host draw from one queue. Such ends get no message that is too long for its receive,
// because it is not known beforehand which receive a message takes. They fail but do not go away, because an
// end that goes away takes receives with it.
void plan_shared_receives(Prng r, Plan& p) {
  p.shared.resize(p.world.hosts.size());
  if (!one_in(r, 3)) return;
  for (std::uint32_t host = 0; host < p.shared.size(); ++host) {
    SharedPlan& s = p.shared[host];
    s.slots = pick(r, {1, 2, 5, 16, 64});
    s.max_sge = between(r, 1, 4);
    s.limit = one_in(r, 2) ? between(r, 1, s.slots) : 0;
    if (one_in(r, 3)) s.receive_delay = some(r, microseconds(1), microseconds(20));
    bool any = false;
    for (ConnectionPlan& c : p.connections) {
      for (std::size_t side = 0; side < 2; ++side) {
        if (c.host[side] != host || one_in(r, 4)) continue;
        any = c.shared[side] = true;
        s.slot_bytes = std::max(s.slot_bytes, c.flow[1 - side].slot_bytes);
        for (MessagePlan& m : c.flow[1 - side].messages) {
          if (m.fault == Fault::kTooLong) m.fault = Fault::kNone;
        }
        if (c.disrupted_end == side && c.disruption == Disruption::kDestroy)
          c.disruption = Disruption::kForceError;
      }
    }
    if (!any) s.slots = 0;
  }
}

}  // namespace

Plan plan_world(std::uint64_t seed) {
  Prng r = Prng(seed).fork(0x706C'616E);
  Plan p;
  const bool incast = one_in(r, 5);
  const std::uint32_t hosts = incast ? between(r, 3, 6) : 2;
  const std::uint32_t connections = incast ? between(r, hosts - 1, 2 * hosts) : pick(r, {1, 1, 2, 4, 8});
  plan_network(r, p.world);
  p.world.seed = r.next();
  p.world.hosts.clear();
  for (std::uint32_t i = 0; i < hosts; ++i) p.world.hosts.push_back(plan_device(r, 2 * connections + 4));
  if (one_in(r, 4)) p.poll_every = some(r, microseconds(1), microseconds(30));

  const bool atomics = one_in(r, 4), fences = one_in(r, 4), drains = one_in(r, 4), windows = one_in(r, 4);
  for (std::uint32_t i = 0; i < connections; ++i) {
    ConnectionPlan c;
    c.atomics = atomics;
    c.fences = fences;
    c.windows = windows;
    c.host[0] = incast ? 1 + i % (hosts - 1) : 0;
    c.host[1] = incast ? 0 : 1;
    c.mtu = one_in(r, 3) ? 4 * between(r, 64, 1024) : pick(r, {256, 512, 1024, 2048, 4096});
    for (EndConfig& e : c.end) e = plan_end(r);
    for (int k = 0; k < 2; ++k) {
      c.end[k].max_dest_rd_atomic = static_cast<std::uint8_t>(pick(r, {1, 2, 5, 16}));
      if (atomics) c.end[k].access |= kRemoteAtomic;
      c.end[1 - k].max_rd_atomic = static_cast<std::uint8_t>(between(r, 1, c.end[k].max_dest_rd_atomic));
    }
    for (std::uint32_t k = 0; k < 2; ++k) c.flow[k] = plan_flow(r, c, k, kBytesPerWorld / connections / 2);
    if (one_in(r, atomics || windows ? 3 : 8)) plan_fault(r, c.flow[r.below(2)]);
    if (one_in(r, 10)) {
      c.disruption = one_in(r, 2) ? Disruption::kDestroy : Disruption::kForceError;
      c.disrupted_end = static_cast<std::uint8_t>(r.below(2));
      c.disrupted_at = Time{} + some(r, Duration{}, microseconds(400));
    }
    for (DrainPlan& d : c.drain) {
      if (!drains || one_in(r, 3)) continue;
      d.at = Time{} + some(r, Duration{}, microseconds(200));
      d.pause = some(r, Duration{}, microseconds(50));
    }
    p.connections.push_back(std::move(c));
  }
  if (one_in(r, 4)) p.forgeries = between(r, 1, 30);

  // Many hosts send to host 0, which receives slowly. Path credit alone bounds the queue there.
  const impair::ImpairConfig& n = p.world.network;
  if (incast && one_in(r, 2)) {
    p.world.drain = gigabits(between(r, 5, 40));
    const bool lossless = n.loss == 0 && n.corrupt == 0 && n.duplicate == 0;
    for (DeviceConfig& d : p.world.hosts) {
      d.path_credit = Bytes{between(r, 5'000, 40'000)};
      // Time-outs are long, so that a full queue is not taken for a loss.
      d.rto_low = d.rto_low * 20;
      d.rto_high = d.rto_high * 20;
      d.control_ring = 4096;
    }
    for (ConnectionPlan& c : p.connections) {
      for (EndConfig& e : c.end) e.timeout = 11;  // 8.4 ms
    }
    if (lossless) p.door_bound = door_bound(p);
  }
  plan_congestion(Prng(seed).fork(0x70616365), p);
  plan_shared_receives(Prng(seed).fork(0x7368'6172), p);
  plan_variants(Prng(seed).fork(0x7661'7279), p);
  plan_timing(Prng(seed).fork(0x7469'6D65), p);
  plan_bad_binds(Prng(seed).fork(0x6269'6E64), p);
  return p;
}

}  // namespace weft::pair
