#include "check/wire_observer.h"

namespace weft::check {

void WireObserver::connected(const QpFacts& a, const QpFacts& b) {
  by_requester_[a.self] = std::make_unique<HalfConnection>(a, b, report_);
  by_requester_[b.self] = std::make_unique<HalfConnection>(b, a, report_);
  peer_[a.self] = b.self;
  peer_[b.self] = a.self;
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
  // Answers go to the requester, everything else comes from it.
  const bool answer = role == Role::kResponse || role == Role::kAck;
  const auto it = by_requester_.find(answer ? destination : peer->second);
  return it == by_requester_.end() ? nullptr : it->second.get();
}

void WireObserver::sent(HostId from, HostId to, const wire::Header& h, std::uint32_t payload, Time now) {
  const End destination{to, h.dest_qp};
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

void WireObserver::arrived(HostId at, const wire::Header& h, Time now) {
  const Role r = role(h.opcode);
  HalfConnection* c = half({at, h.dest_qp}, r);
  if (c == nullptr) return;
  switch (r) {
    case Role::kRequest:
      return c->request_arrived(h);
    case Role::kResponse:
      return c->response_arrived(h, now);
    case Role::kAck:
      return c->ack_arrived(h, now);
    case Role::kReadAck:
      return c->read_ack_arrived(h, now);
    case Role::kOther:
      return;
  }
}

void WireObserver::placed(const Placed& p, const wire::Header& h, Time now) {
  const Role r = role(h.opcode);
  HalfConnection* c = half({p.host, p.qpn}, r);
  if (c == nullptr) return;
  if (r == Role::kRequest) c->request_placed(h.psn, p.length);
  if (r == Role::kResponse) c->response_placed(h.psn, p.length, now);
}

void WireObserver::requester_failed(End requester, Time now) {
  const auto it = by_requester_.find(requester);
  if (it != by_requester_.end()) it->second->requester_failed(now);
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
