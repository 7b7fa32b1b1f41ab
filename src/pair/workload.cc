#include "pair/workload.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace weft::pair {
namespace {

bool consumes_receive(const MessagePlan& m) {
  return m.opcode == WrOpcode::kSend || m.opcode == WrOpcode::kSendImm || m.opcode == WrOpcode::kWriteImm;
}
bool is_write(const MessagePlan& m) {
  return m.opcode == WrOpcode::kWrite || m.opcode == WrOpcode::kWriteImm;
}

constexpr std::uint32_t kCells = 8;
// Regions begin anywhere, atomics at multiples of eight.
std::uint64_t aligned(std::uint64_t address) { return (address + 7U) / 8U * 8U; }

}  // namespace

Workload::Workload(const Plan& plan, World& world)
    : plan_(plan),
      random_(Prng(plan.world.seed).fork(2)),
      ends_(plan.connections.size() * 2),
      disrupted_(plan.connections.size()) {
  for (std::uint32_t i = 0; i < plan.connections.size(); ++i) set_up(world, i);
  next_forgery_ = plan.forgeries == 0 ? kNever : Time{} + plan.forge_every;
}

std::pair<PdId, Buffer>& Workload::shared(World& world, std::uint32_t host) {
  const auto [it, fresh] = shared_.try_emplace(host);
  if (fresh) {
    const PdId pd = *world.host(host).device.alloc_pd();
    it->second = {pd, world.host(host).allocate(pd, 8 * kCells + 8, kLocalWrite | kRemoteAtomic, random_)};
  }
  return it->second;
}

void Workload::set_up(World& world, std::uint32_t connection) {
  const ConnectionPlan& c = plan_.connections[connection];
  EndConfig config[2];
  for (std::uint32_t side = 0; side < 2; ++side) {
    End& e = ends_[connection * 2 + side];
    e.connection = connection;
    e.side = side;
    e.host = c.host[side];
    Device& device = world.host(e.host).device;
    config[side] = c.end[side];
    const bool draws = draws_shared(e);
    config[side].pd = c.atomics || draws ? shared(world, e.host).first : *device.alloc_pd();
    if (draws) config[side].srq = shared_of(world, e.host).srq;
    e.send_cq = config[side].send_cq = *device.create_cq(512);
    // Sends and receives share a completion queue, or have one each.
    e.recv_cq = config[side].recv_cq = random_.below(3) == 0 ? e.send_cq : *device.create_cq(512);
  }
  for (std::uint32_t side = 0; side < 2; ++side) {
    End& e = ends_[connection * 2 + side];
    const FlowPlan& out = c.flow[side];
    const FlowPlan& in = c.flow[1 - side];
    Host& here = world.host(e.host);
    Host& there = world.host(c.host[1 - side]);
    const PdId pd = config[side].pd;
    // Room for the longest message of either direction at any offset.
    const std::uint32_t memory = kMostSourceOffset + std::max(out.slot_bytes, in.slot_bytes);
    const auto sinks = [&](Host& host, PdId domain, std::uint8_t access, const FlowPlan& f, Sinks& s) {
      s.buffer = host.allocate(domain, f.slots * f.slot_bytes, access, random_);
      for (std::uint32_t i = f.slots; i > 0; --i) s.free.push_back(i - 1);
    };
    e.source = here.allocate(pd, memory, kRemoteRead | (c.windows ? kMwBind : 0), random_);
    if (c.atomics) e.cells = shared(world, c.host[1 - side]).second;
    e.no_right = here.allocate(pd, memory, kLocalWrite, random_);
    e.vanishing =
        here.allocate_gone(pd, memory, kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic, random_);
    sinks(there, config[1 - side].pd, kLocalWrite | kRemoteWrite | (c.windows ? kMwBind : 0), out,
          e.write_sinks);
    if (c.windows) make_window(world, e, pd, memory);
    sinks(here, pd, kLocalWrite, out, e.read_sinks);
    sinks(here, pd, kLocalWrite, in, e.receive_sinks);
    for (const MessagePlan& m : in.messages) {
      if (m.fault == Fault::kTooLong && consumes_receive(m)) e.too_short.push_back(e.receives_wanted);
      e.receives_wanted += consumes_receive(m) ? 1U : 0U;
    }
    e.receives_wanted += in.spare_receives;
  }
  const World::Connection made = world.connect(c.host[0], config[0], c.host[1], config[1], c.mtu);
  ends_[connection * 2].qpn = made.a;
  ends_[connection * 2 + 1].qpn = made.b;
}

std::span<const Sge> Workload::pieces(const Buffer& b, std::uint64_t offset, std::uint32_t length,
                                      std::uint32_t n, bool reversed) {
  if (n == 0) return {};
  std::uint32_t cut = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t left = length - cut;
    const auto take = i + 1 == n ? left : static_cast<std::uint32_t>(random_.between(0, left));
    sges_[i] = {b.address + offset + cut, take, b.mr.lkey};
    cut += take;
  }
  if (reversed) std::reverse(sges_.begin(), sges_.begin() + n);
  return std::span(sges_).first(n);
}

bool Workload::post_message(World& world, End& e, const MessagePlan& m) {
  End& peer = peer_of(e);
  Posted p;
  p.wr_id = e.last_id + 1;
  const bool write = is_write(m);
  const bool atomic = is_atomic(m.opcode);
  const bool read = m.opcode == WrOpcode::kRead || atomic;
  Sinks* sinks = write ? &e.write_sinks : read ? &e.read_sinks : nullptr;
  if (sinks != nullptr && m.length > 0) {
    if (sinks->free.empty()) return false;
    p.slot = sinks->free.back();
    p.write_slot = write;
    p.read_slot = read;
  }
  SendWr wr;
  wr.wr_id = p.wr_id;
  wr.opcode = m.opcode;
  wr.flags = m.flags;
  wr.imm = static_cast<std::uint32_t>(p.wr_id * 0x9E37'79B9U);
  const std::uint32_t slack = flow_of(e).slot_bytes - m.length;
  const std::uint64_t slot_offset =
      std::uint64_t{p.slot} * flow_of(e).slot_bytes + random_.below(std::uint64_t{slack} + 1U);
  if (write) {
    wr.remote_address = e.write_sinks.buffer.address + slot_offset;
    wr.rkey = e.write_sinks.buffer.mr.rkey;
    p.through_window = peer.window.state == Window::State::kOpen && m.length > 0 && m.fault == Fault::kNone;
    if (p.through_window) wr.rkey = peer.window.key;
  } else if (atomic) {
    wr.remote_address = aligned(e.cells.address) + 8ULL * random_.below(kCells);
    wr.rkey = e.cells.mr.rkey;
    wr.compare_or_add = random_.next();
    wr.swap = random_.next();
    // Half of the compare-and-swaps find what they expect, unless another queue pair changes it first.
    if (m.opcode == WrOpcode::kCompareSwap && random_.below(2) == 0)
      std::memcpy(&wr.compare_or_add, &e.cells.bytes[wr.remote_address - e.cells.address], 8);
  } else if (read) {
    wr.remote_address = peer.source.address + m.source_offset;
    wr.rkey = peer.source.mr.rkey;
  }
  const Buffer& local = read ? e.read_sinks.buffer : e.source;
  wr.sges = pieces(local, read ? slot_offset : m.source_offset, m.length, m.sges, m.reversed);
  switch (m.fault) {
    case Fault::kWrongKey:
      wr.rkey = {wr.rkey.v ^ 0x5A};
      // The key that a window had before, or never had.
      if (write && peer.window.state != Window::State::kNone) {
        wr.rkey = {(peer.window.key.v & ~0xFFU) | ((peer.window.key.v - 1U) & 0xFFU)};
        p.missed_window = true;
      }
      break;
    case Fault::kOutOfBounds: {
      if (atomic) {
        wr.remote_address = aligned(e.cells.address + e.cells.bytes.size());
        break;
      }
      const Buffer& target = write ? e.write_sinks.buffer : peer.source;
      // srnic checks each packet alone, so the first packet must lie outside.
      const bool srnic = plan_of(e).end[e.side].mode == wire::Mode::kSrnic;
      const std::uint32_t judged = write && srnic ? std::min(m.length, plan_of(e).mtu) : m.length;
      wr.remote_address = target.address + target.bytes.size() - judged + 1;
      break;
    }
    case Fault::kNoRight:
      wr.remote_address = peer.no_right.address;
      wr.rkey = peer.no_right.mr.rkey;
      break;
    case Fault::kMemoryGone:
      wr.remote_address = atomic ? aligned(peer.vanishing.address) : peer.vanishing.address;
      wr.rkey = peer.vanishing.mr.rkey;
      break;
    case Fault::kWrongLocalKey:
      for (Sge& s : sges_) s.lkey = {s.lkey.v ^ 0x5A};
      break;
    case Fault::kNone:
    case Fault::kTooLong:
      break;
  }
  const bool shuts = m.opcode == WrOpcode::kSend && m.fault == Fault::kNone && peer.window.by_peer &&
                     peer.window.state == Window::State::kClosing && !uses_window(e.posted);
  if (shuts) {
    wr.opcode = WrOpcode::kSendInvalidate;
    wr.imm = peer.window.key.v;
  }
  std::span<const std::uint8_t> inline_bytes;
  if ((m.flags & kSendInline) != 0) inline_bytes = e.source.bytes.subspan(m.source_offset, m.length);
  const auto done = world.post_send(e.host, e.qpn, wr, inline_bytes);
  if (!done) {
    CHECK(done.error() == Errc::kNoMemory);
    return false;
  }
  e.last_id = p.wr_id;
  Coverage& coverage = world.host(e.host).coverage;
  if (shuts) peer.window.state = Window::State::kShutting;
  if (p.missed_window) coverage.hit(Covered::windows_missed);
  if (p.through_window) {
    coverage.hit(Covered::windows_used);
    if (--peer.window.uses == 0) peer.window.state = Window::State::kClosing;
  }
  p.answered = read;
  if ((m.flags & kSendInline) != 0) coverage.hit(Covered::inline_requests);
  if (m.length == 0) coverage.hit(Covered::empty_messages);
  if (m.sges > 1 && !read) coverage.hit(Covered::gathered_messages);
  if ((m.flags & kSendFence) != 0 &&
      std::any_of(e.posted.begin(), e.posted.end(), [](const Posted& x) { return x.answered; }))
    coverage.hit(Covered::fences_behind_reads);
  p.signaled = plan_of(e).end[e.side].signal_all || (m.flags & kSendSignaled) != 0;
  if (p.write_slot || p.read_slot) sinks->free.pop_back();
  e.posted.push_back(p);
  return true;
}

void Workload::post_sends(World& world, End& e, Time now) {
  const FlowPlan& f = flow_of(e);
  while (!e.dead && e.next < f.messages.size() && now >= e.next_post) {
    if (!post_message(world, e, f.messages[e.next])) return;
    ++e.next;
    e.next_post = now + f.think;
  }
}

void Workload::post_receives(World& world, End& e, Time now) {
  if (draws_shared(e)) return;
  const FlowPlan& in = plan_of(e).flow[1 - e.side];
  while (!e.dead && e.receives_posted < e.receives_wanted && now >= e.next_receive &&
         !e.receive_sinks.free.empty()) {
    RecvWr wr;
    wr.wr_id = kReceiveMark | e.receives_posted;
    const std::uint32_t slot = e.receive_sinks.free.back();
    const bool short_one =
        std::find(e.too_short.begin(), e.too_short.end(), e.receives_posted) != e.too_short.end();
    if (!short_one) {
      const auto n = static_cast<std::uint32_t>(random_.between(1, plan_of(e).end[e.side].caps.max_recv_sge));
      wr.sges = pieces(e.receive_sinks.buffer, std::uint64_t{slot} * in.slot_bytes, in.slot_bytes, n,
                       random_.below(3) == 0);
    }
    const auto done = world.post_recv(e.host, e.qpn, wr);
    if (!done) {
      CHECK(done.error() == Errc::kNoMemory);
      return;
    }
    e.receive_sinks.free.pop_back();
    e.receives.push_back(slot);
    ++e.receives_posted;
    e.next_receive = now + in.receive_delay;
  }
}

void Workload::poll(World& world, End& e) {
  for (const CqId cq : {e.send_cq, e.recv_cq}) {
    while (const std::uint32_t n = world.poll(e.host, cq, polled_)) {
      for (const Completion& c : std::span(polled_).first(n)) {
        const bool ok = c.status == WcStatus::kSuccess;
        e.dead = e.dead || !ok;
        window_completed(world, e, c);
        if ((c.wr_id & kReceiveMark) != 0) {
          if (draws_shared(e)) {
            shared_completed(world, e, c);
            continue;
          }
          if (e.receives.empty()) continue;  // the referee has reported it
          if (ok) e.receive_sinks.free.push_back(e.receives.front());
          e.receives.pop_front();
          continue;
        }
        while (!e.posted.empty() && e.posted.front().wr_id <= c.wr_id) {
          const Posted& p = e.posted.front();
          // Behind boxes a completed WRITE may still be on its way: its sink is used once.
          const bool placed = !plan_.world.line.there;
          if (ok && p.write_slot && placed) e.write_sinks.free.push_back(p.slot);
          if (ok && p.read_slot) e.read_sinks.free.push_back(p.slot);
          e.posted.pop_front();
        }
      }
    }
    if (e.recv_cq == e.send_cq) break;
  }
}

// Into SQD and, some time after SQ_DRAINED, back.
void Workload::drain(World& world, Time now) {
  for (End& e : ends_) {
    const DrainPlan& d = plan_of(e).drain[e.side];
    if (e.dead || e.destroyed) continue;
    if (e.drain == End::Drain::kNo && now >= d.at) {
      world.host(e.host).coverage.hit(e.posted.empty() ? Covered::drained_idle : Covered::drained_busy);
      // The queue pair may have failed already, with its completions not polled yet.
      e.drain = world.drain(e.host, e.qpn) ? End::Drain::kAsked : End::Drain::kOver;
    }
    if (e.drain == End::Drain::kAsked && world.drained(e.host, e.qpn)) {
      e.drain = End::Drain::kDrained;
      e.resume_at = now + d.pause;
    }
    if (e.drain == End::Drain::kDrained && now >= e.resume_at) {
      e.drain = End::Drain::kOver;
      world.resume(e.host, e.qpn);
    }
  }
}

void Workload::disrupt(World& world, Time now) {
  for (std::uint32_t i = 0; i < plan_.connections.size(); ++i) {
    const ConnectionPlan& c = plan_.connections[i];
    if (c.disruption == Disruption::kNone || disrupted_[i] || now < c.disrupted_at) continue;
    disrupted_[i] = true;
    End& e = ends_[i * 2 + c.disrupted_end];
    poll(world, e);
    if (c.disruption == Disruption::kDestroy) {
      world.destroy(e.host, e.qpn);
      e.destroyed = e.dead = true;
      e.posted.clear();
      e.receives.clear();
    } else {
      world.force_error(e.host, e.qpn);
      e.dead = true;
      poll(world, e);  // the flushed requests; nothing may happen here after this
    }
  }
}

// A packet as an attacker may send it, or as an earlier connection may have left it in the network.
void Workload::forge(World& world) {
  const End& e = ends_[random_.below(ends_.size())];
  if (e.destroyed) return;
  const ConnectionPlan& c = plan_of(e);
  const wire::Address peer = world.host(c.host[1 - e.side]).address();
  wire::Header h;
  h.dest_qp = e.qpn;
  h.psn = WirePsn{static_cast<std::uint32_t>(random_.next()) & kPsnMask};
  h.opcode = wire::kSendOnly;
  h.mode = c.end[1 - e.side].mode;
  wire::Address source = peer;
  std::vector<std::uint8_t> payload(random_.below(64), 0xEE);
  switch (random_.below(6)) {
    case 0:
      h.dest_qp = {static_cast<std::uint32_t>(random_.next()) & kPsnMask};
      if (std::any_of(ends_.begin(), ends_.end(), [&](const End& x) { return x.qpn == h.dest_qp; })) return;
      break;
    case 1:
      source = wire::Address::v4(10, 9, 9, 9);
      break;
    case 2:
      h.pkey = 0x1234;
      break;
    case 3:
      h.opcode = 0x15;
      break;
    case 4:
      h.mode = static_cast<wire::Mode>(3);
      break;
    default:
      // An ACK for something that was never sent: half the number space away.
      h.opcode = wire::kAcknowledge;
      h.mode = c.end[e.side].mode;
      h.psn = WirePsn{(c.end[e.side].psn.v + (1U << 22U)) & kPsnMask};
      h.set_aeth(wire::kSyndromeAck, 0);
      if (random_.below(2) == 0)
        h.set_sack(h.psn);  // srnic: make one of its two numbers wrong instead of both
      payload.clear();
      break;
  }
  world.forge(e.host, source, h, std::move(payload));
}

void Workload::act(World& world, Time now) {
  acted_ = now;
  disrupt(world, now);
  hang_up(world);
  drain(world, now);
  while (forged_ < plan_.forgeries && now >= next_forgery_) {
    forge(world);
    ++forged_;
    next_forgery_ = forged_ == plan_.forgeries ? kNever : now + plan_.forge_every;
  }
  if (plan_.poll_every.ps != 0) {
    if (now < next_poll_) return;
    next_poll_ = now + plan_.poll_every;
  }
  tend_shared(world, now);
  for (End& e : ends_) {
    poll(world, e);
    if (e.destroyed) continue;
    post_receives(world, e, now);
    if (!e.dead && !peer_of(e).dead) tend_window(world, e);
    post_sends(world, e, now);
    // A queue pair that has failed flushes at once, and no later event may come.
    poll(world, e);
  }
}

Time Workload::next_wake() const {
  Time at = next_forgery_;
  for (std::uint32_t i = 0; i < plan_.connections.size(); ++i) {
    if (plan_.connections[i].disruption != Disruption::kNone && !disrupted_[i]) {
      at = std::min(at, plan_.connections[i].disrupted_at);
    }
  }
  for (const End& e : ends_) {
    if (e.dead || e.destroyed) continue;
    if (e.drain == End::Drain::kNo) at = std::min(at, plan_of(e).drain[e.side].at);
    if (e.drain == End::Drain::kDrained) at = std::min(at, e.resume_at);
  }
  if (!waiting()) return at;
  if (plan_.poll_every.ps != 0) return std::min(at, next_poll_);
  // A plan that was due at the last act() does not wait for time. It waits for a free slot or a place in a
  // queue.
  const auto due = [&](Time t) {
    if (t > acted_) at = std::min(at, t);
  };
  for (const auto& [host, s] : shared_receives_) {
    if (!s.sinks.free.empty()) due(s.next_receive);
  }
  for (const End& e : ends_) {
    if (e.dead) continue;
    const bool room = e.posted.size() < plan_of(e).end[e.side].caps.max_send_wr;
    if (e.next < flow_of(e).messages.size() && room && flow_of(e).think.ps != 0) due(e.next_post);
    const Duration delay = plan_of(e).flow[1 - e.side].receive_delay;
    if (!draws_shared(e) && e.receives_posted < e.receives_wanted && delay.ps != 0) due(e.next_receive);
  }
  return at;
}

bool Workload::waiting() const {
  for (const End& e : ends_) {
    if (e.destroyed) continue;
    if (!e.dead && (e.drain == End::Drain::kAsked || e.drain == End::Drain::kDrained)) return true;
    if (!e.dead && e.next < flow_of(e).messages.size()) return true;
    // An unsignaled request that was complete when its queue pair failed is not reported.
    if (std::any_of(e.posted.begin(), e.posted.end(), [](const Posted& p) { return p.signaled; }))
      return true;
    if (e.dead && !e.receives.empty()) return true;
  }
  return false;
}

}  // namespace weft::pair
