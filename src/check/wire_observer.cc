#include "check/wire_observer.h"

#include <algorithm>

namespace weft::check {

void WireObserver::connected(const QpFacts& a, const QpFacts& b) {
  by_requester_[a.self] = std::make_unique<HalfConnection>(a, b, report_);
  by_requester_[b.self] = std::make_unique<HalfConnection>(b, a, report_);
  peer_[a.self] = b.self;
  peer_[b.self] = a.self;
  for (const QpFacts* f : {&a, &b}) congestion_[f->self] = Congestion{f->cnp_interval};
}

WireObserver::Role WireObserver::role(std::uint8_t opcode) {
  if (opcode <= wire::kReadRequest || opcode == wire::kCompareSwap || opcode == wire::kFetchAdd ||
      opcode == wire::kSendLastInvalidate || opcode == wire::kSendOnlyInvalidate) {
    return Role::kRequest;
  }
  if (opcode >= wire::kReadResponseFirst && opcode <= wire::kReadResponseOnly) return Role::kResponse;
  if (opcode == wire::kAtomicAcknowledge) return Role::kResponse;
  if (opcode == wire::kAcknowledge) return Role::kAck;
  if (opcode == wire::kReadAcknowledge) return Role::kReadAck;
  return Role::kOther;
}

HalfConnection* WireObserver::half(End destination, Role role) const {
  const auto peer = peer_.find(destination);
  if (peer == peer_.end()) return nullptr;
  // A packet with an answer's opcode goes to the requester of its half connection; any other packet comes
  // from it.
  const bool answer = role == Role::kResponse || role == Role::kAck;
  const auto it = by_requester_.find(answer ? destination : peer->second);
  return it == by_requester_.end() ? nullptr : it->second.get();
}

void WireObserver::sent(HostId from, HostId to, const wire::Header& h, std::uint32_t payload, Time now) {
  const End destination{to, h.dest_qp};
  if (const auto peer = peer_.find(destination); peer != peer_.end() && peer->second.host == from) {
    congestion_sent(peer->second, h, now);
    if (h.opcode == wire::kCnp) return;
  }
  const Role r = role(h.opcode);
  HalfConnection* c = half(destination, r);
  if (c == nullptr || r == Role::kOther || peer_.at(destination).host != from) {
    report_.add(now, "sequence",
                "host %u sends opcode 0x%02x psn %u to host %u qp 0x%x, which belongs to no connection",
                from.v, static_cast<unsigned>(h.opcode), h.psn.v, to.v, h.dest_qp.v);
    return;
  }
  switch (r) {
    case Role::kRequest:
      return c->request_sent(h, payload, now);
    case Role::kResponse:
      return c->response_sent(h, payload, now);
    case Role::kAck:
      return c->ack_sent(h, now);
    default:
      return c->read_ack_sent(h, now);
  }
}

void WireObserver::congestion_sent(End from, const wire::Header& h, Time now) {
  Congestion& c = congestion_[from];
  if (h.opcode == wire::kCnp) {
    ++c.cnps;
    // The first CNP comes with the first mark, the next ones at least an interval apart. A busy transmitter
    // can delay CNPs; it cannot add any.
    const std::int64_t most = c.marks == 0 ? 0 : 1 + (now - c.first).ps / c.interval.ps;
    if (static_cast<std::int64_t>(c.cnps) > most)
      report_.add(now, "CNP", "host %u qp 0x%x sends CNP number %llu, %lld are allowed", from.host.v,
                  from.qpn.v, static_cast<unsigned long long>(c.cnps), static_cast<long long>(most));
    return;
  }
  const bool acknowledges = h.opcode == wire::kAcknowledge || h.opcode == wire::kReadAcknowledge;
  if (!acknowledges || ((h.bits & wire::kBecn) == 0 && (h.ext_flags & wire::kCeEcho) == 0)) return;
  if (++c.echoes > c.marks)
    report_.add(now, "ECN", "host %u qp 0x%x echoes %llu marks of %llu", from.host.v, from.qpn.v,
                static_cast<unsigned long long>(c.echoes), static_cast<unsigned long long>(c.marks));
}

bool WireObserver::arrived(HostId at, const wire::Header& h, Time now, bool marked) {
  if (const auto c = congestion_.find({at, h.dest_qp}); marked && c != congestion_.end()) {
    ++c->second.marks;
    c->second.first = std::min(c->second.first, now);
  }
  const Role r = role(h.opcode);
  HalfConnection* c = half({at, h.dest_qp}, r);
  if (c == nullptr) return false;
  switch (r) {
    case Role::kRequest:
      c->request_arrived(h);
      return false;
    case Role::kResponse:
      c->response_arrived(h, now);
      break;
    case Role::kAck:
      c->ack_arrived(h, now);
      break;
    case Role::kReadAck:
      c->read_ack_arrived(h, now);
      return false;
    case Role::kOther:
      return false;
  }
  return c->silence().since == now && c->silence().until == kNever;
}

void WireObserver::placed(const Placed& p, const wire::Header& h, Time now) {
  const Role r = role(h.opcode);
  HalfConnection* c = half({p.host, p.qpn}, r);
  if (c == nullptr) return;
  if (r == Role::kRequest) c->request_placed(h.psn, p.length);
  if (r == Role::kResponse) c->response_placed(h.psn, p.length, now);
}

HalfConnection* WireObserver::of(End requester) const {
  const auto it = by_requester_.find(requester);
  return it == by_requester_.end() ? nullptr : it->second.get();
}

void WireObserver::posted(End requester, const SendWr& wr) {
  if (HalfConnection* c = of(requester)) c->posted(wr);
}

void WireObserver::draining(End requester, bool on) {
  if (HalfConnection* c = of(requester)) c->draining(on);
}

void WireObserver::drained(End requester, Time now) {
  if (HalfConnection* c = of(requester)) c->drained(now);
}

bool WireObserver::requester_failed(End requester, Time now) {
  HalfConnection* c = of(requester);
  return c != nullptr && c->requester_failed(now);
}

Silence WireObserver::silence(End requester) const {
  const auto it = by_requester_.find(requester);
  return it == by_requester_.end() ? Silence{} : it->second->silence();
}

void WireObserver::finish(End requester, Time now) {
  const auto it = by_requester_.find(requester);
  if (it != by_requester_.end()) it->second->finish(now);
}

}  // namespace weft::check
