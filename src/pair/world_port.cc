#include "pair/world_port.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/verbs/ladder.h"

namespace weft::pair {

WorldPort::WorldPort(Exchange& exchange, World& world, std::uint32_t host, std::uint64_t seed)
    : MeetingPort(exchange, world.host(host).address()),
      world_(world),
      host_(host),
      random_(seed),
      domain_(*world.host(host).device.alloc_pd()) {
  world_.keep_events(host);
}

Outcome<PortMemory> WorldPort::allocate(std::uint64_t length, std::uint8_t access, MemoryKind kind) {
  if (kind == MemoryKind::kCounted) return fail(Errc::kUnsupported);
  if (length > UINT32_MAX) return fail(Errc::kNoMemory);
  const Buffer b = host().allocate(domain_, static_cast<std::uint32_t>(length), access, random_, false);
  buffers_.push_back(b);
  return PortMemory{b.mr.lkey, b.mr.rkey, b.address, length, b.bytes};
}

Outcome<void> WorldPort::release(Key lkey) {
  const auto it =
      std::find_if(buffers_.begin(), buffers_.end(), [&](const Buffer& b) { return b.mr.lkey == lkey; });
  if (it == buffers_.end()) return fail(Errc::kNotFound);
  const auto gone = host().device.deregister_mr(lkey);
  if (gone) buffers_.erase(it);
  return gone;
}

Outcome<CqId> WorldPort::create_cq(std::uint32_t entries) { return host().device.create_cq(entries); }
Outcome<void> WorldPort::destroy_cq(CqId cq) { return host().device.destroy_cq(cq); }

Outcome<SrqId> WorldPort::create_srq(std::uint32_t entries) {
  if (entries == 0 || entries > host().device.config().max_ring) return fail(Errc::kInvalid);
  return world_.create_srq(host_, domain_, {entries, 1, 0});
}

Outcome<Qpn> WorldPort::create_qp(const PortQueuePair& wanted) {
  if (wanted.caps.max_inline > kInline) return fail(Errc::kInvalid);
  const auto made = host().device.create_qp(
      {QpType::kRc, domain_, wanted.send_cq, wanted.recv_cq, wanted.caps, wanted.signal_all, wanted.srq});
  if (made) made_[*made] = wanted;
  return made;
}

Outcome<void> WorldPort::destroy_qp(Qpn qpn) {
  const auto now = state(qpn);
  if (!now) return fail(now.error());
  made_.erase(qpn);
  early_.erase(qpn);
  if (*now == QpState::kReset || *now == QpState::kInit)
    return host().device.destroy_qp(qpn);  // the referee never heard of it
  world_.destroy(host_, qpn);
  return {};
}

Outcome<void> WorldPort::prepare(Qpn qpn) {
  const auto now = state(qpn);
  if (!now) return fail(now.error());
  if (*now != QpState::kReset) return fail(Errc::kInvalid);
  QpAttr attr;
  attr.state = QpState::kInit;
  attr.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;  // the connection's terms replace them
  return host().device.modify_qp(qpn, attr, ladder(QpType::kRc)[0].mask, world_.now());
}

Outcome<Qpn> WorldPort::recycle(Qpn qpn) {
  const auto found = made_.find(qpn);
  if (found == made_.end()) return fail(Errc::kNotFound);
  const PortQueuePair wanted = found->second;
  if (const auto gone = destroy_qp(qpn); !gone) return fail(gone.error());
  return create_qp(wanted);
}

void WorldPort::post_early(Qpn qpn) {
  const auto found = early_.find(qpn);
  if (found == early_.end()) return;
  for (const Early& e : found->second) CHECK(world_.post_recv(host_, qpn, {e.wr_id, e.sges}).has_value());
  early_.erase(found);
}

Outcome<QpState> WorldPort::state(Qpn qpn) const {
  const auto attr = host().device.query_qp(qpn);
  if (!attr) return fail(attr.error());
  return attr->state;
}

EndConfig WorldPort::end_config(const ConnectEnd& end, const ConnectEnd& peer) const {
  const PortQueuePair& made = made_.at(end.qpn);
  const QpAttr a = attributes_of(end, peer);
  EndConfig e;
  e.pd = domain_;
  e.send_cq = made.send_cq;
  e.recv_cq = made.recv_cq;
  e.srq = made.srq;
  e.caps = made.caps;
  e.signal_all = made.signal_all;
  e.mode = a.mode;
  e.psn = a.sq_psn;
  e.access = a.access;
  e.max_rd_atomic = a.max_rd_atomic;
  e.max_dest_rd_atomic = a.max_dest_rd_atomic;
  e.timeout = a.timeout;
  e.retry_count = a.retry_count;
  e.rnr_retry = a.rnr_retry;
  e.min_rnr_timer = a.min_rnr_timer;
  e.controller = a.controller == kDefaultController ? std::uint8_t{0} : a.controller;
  e.service_level = a.service_level;
  return e;
}

// Both ends of a World's connection are ports of it, and its referee hears of both at once.
Outcome<void> WorldPort::join(const ConnectEnd& own, MeetingPort& other, const ConnectEnd& theirs) {
  auto& peer = static_cast<WorldPort&>(other);
  world_.join(host_, own.qpn, end_config(own, theirs), peer.host_, theirs.qpn, peer.end_config(theirs, own),
              std::min(own.terms.mtu, theirs.terms.mtu));
  post_early(own.qpn);
  peer.post_early(theirs.qpn);
  return {};
}

Outcome<void> WorldPort::raise(const ConnectEnd&, const ConnectEnd&) { return fail(Errc::kUnsupported); }

void WorldPort::fall(Qpn qpn) {
  if (const auto now = state(qpn); now && *now != QpState::kErr) world_.force_error(host_, qpn);
}

// What a gather list names, from our own memory.
bool WorldPort::copy_inline(std::span<const Sge> sges, std::vector<std::uint8_t>& out) const {
  for (const Sge& s : sges) {
    const auto b = std::find_if(buffers_.begin(), buffers_.end(), [&](const Buffer& x) {
      return s.address >= x.address && s.address - x.address + s.length <= x.bytes.size();
    });
    if (b == buffers_.end()) return false;
    const auto part = b->bytes.subspan(s.address - b->address, s.length);
    out.insert(out.end(), part.begin(), part.end());
  }
  return true;
}

VerbsPort::Posted WorldPort::post_send(Qpn qpn, std::span<const SendWr> list) {
  Posted posted;
  for (const SendWr& wr : list) {
    std::vector<std::uint8_t> bytes;
    if ((wr.flags & kSendInline) != 0 && !copy_inline(wr.sges, bytes)) {
      posted.refused = fail(Errc::kInvalid);
      break;
    }
    posted.refused = world_.post_send(host_, qpn, wr, bytes);
    if (!posted.refused) break;
    ++posted.taken;
  }
  return posted;
}

VerbsPort::Posted WorldPort::post_recv(Qpn qpn, std::span<const RecvWr> list) {
  Posted posted;
  const auto now = state(qpn);
  if (now && *now == QpState::kInit) {
    std::vector<Early>& early = early_[qpn];
    for (const RecvWr& wr : list) {
      if (early.size() == made_.at(qpn).caps.max_recv_wr) {
        posted.refused = fail(Errc::kNoMemory);
        break;
      }
      early.push_back({wr.wr_id, {wr.sges.begin(), wr.sges.end()}});
      ++posted.taken;
    }
    return posted;
  }
  for (const RecvWr& wr : list) {
    posted.refused = world_.post_recv(host_, qpn, wr);
    if (!posted.refused) break;
    ++posted.taken;
  }
  return posted;
}

VerbsPort::Posted WorldPort::post_shared(SrqId srq, std::span<const RecvWr> list) {
  Posted posted;
  for (const RecvWr& wr : list) {
    posted.refused = world_.post_shared(host_, srq, wr);
    if (!posted.refused) break;
    ++posted.taken;
  }
  return posted;
}

std::uint32_t WorldPort::poll(CqId cq, std::span<Completion> out) { return world_.poll(host_, cq, out); }

Outcome<void> WorldPort::arm(CqId cq, bool solicited_only) {
  return host().device.request_notify(cq, solicited_only);
}

bool WorldPort::device_event(PortEvent& out) {
  for (DeviceEvent e; world_.next_event(host_, e);) {
    if (as_port_event(e, out)) return true;
  }
  return false;
}

}  // namespace weft::pair
