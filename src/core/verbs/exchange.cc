#include "core/verbs/exchange.h"

#include <algorithm>

namespace weft {

bool as_port_event(const DeviceEvent& event, PortEvent& out) {
  out = {};
  out.qpn = event.qpn;
  out.cq = event.cq;
  if (event.kind == DeviceEventKind::kCompletion) return true;
  if (event.kind == DeviceEventKind::kLastWqeReached) {
    out.kind = PortEventKind::kLastReceive;
    return true;
  }
  out.kind = PortEventKind::kQpError;
  return event.kind == DeviceEventKind::kQpFatal || event.kind == DeviceEventKind::kQpRequestError ||
         event.kind == DeviceEventKind::kQpAccessError;
}

QpAttr attributes_of(const ConnectEnd& own, const ConnectEnd& peer) {
  const ConnectTerms& t = own.terms;
  QpAttr a;
  a.mode = t.mode;
  a.controller = t.controller;
  a.service_level = t.service_level;
  a.access = t.access;
  a.mtu = std::min(t.mtu, peer.terms.mtu);
  a.dest_qpn = peer.qpn;
  a.sq_psn = t.psn;
  a.rq_psn = peer.terms.psn;
  a.max_rd_atomic = a.max_dest_rd_atomic = std::min(t.reads, peer.terms.reads);
  a.min_rnr_timer = t.min_rnr_timer;
  a.timeout = t.timeout;
  a.retry_count = t.retry_count;
  a.rnr_retry = t.rnr_retry;
  return a;
}

MeetingPort::MeetingPort(Exchange& exchange, const wire::Address& address)
    : exchange_(exchange), address_(address) {
  exchange_.ports_.push_back(this);
}

MeetingPort::~MeetingPort() {
  std::erase(exchange_.ports_, this);
  std::erase_if(exchange_.listeners_, [this](const auto& l) { return l.first == this; });
  for (auto& c : exchange_.connections_) {
    for (auto& port : c.ports) {
      if (port == this) port = nullptr;
    }
  }
}

void MeetingPort::tell(const PortEvent& event) {
  events_.push_back(event);
  awake();
}

Outcome<void> MeetingPort::listen(std::uint16_t service) {
  const std::pair<MeetingPort*, std::uint16_t> wanted{this, service};
  auto& all = exchange_.listeners_;
  if (std::find(all.begin(), all.end(), wanted) != all.end()) return fail(Errc::kBusy);
  all.push_back(wanted);
  return {};
}

Outcome<ConnectionId> MeetingPort::connect(const wire::Address& to, std::uint16_t service, Qpn qpn,
                                           const ConnectTerms& terms, const ConnectData& data) {
  const auto now = state(qpn);
  if (!now || (*now != QpState::kReset && *now != QpState::kInit)) return fail(Errc::kInvalid);
  const ConnectionId id{static_cast<std::uint32_t>(exchange_.connections_.size())};
  Exchange::Connection c;
  c.ports[0] = this;
  c.ends[0] = {address_, qpn, terms};
  const std::pair<MeetingPort*, std::uint16_t> wanted{exchange_.at(to), service};
  const auto& all = exchange_.listeners_;
  const bool heard = std::find(all.begin(), all.end(), wanted) != all.end();
  if (heard) c.ports[1] = wanted.first;
  c.state = heard ? Exchange::State::kAsked : Exchange::State::kClosed;
  exchange_.connections_.push_back(c);
  PortEvent event;
  event.connection = id;
  event.service = service;
  event.peer = address_;
  event.qpn = heard ? kNoQpn : qpn;
  if (heard) event.data = data;
  event.kind = heard ? PortEventKind::kConnectRequest : PortEventKind::kRejected;
  (heard ? c.ports[1] : this)->tell(event);
  return id;
}

Exchange::Connection* Exchange::find(ConnectionId id, const MeetingPort& port, State state) {
  if (id.v >= connections_.size()) return nullptr;
  Connection& c = connections_[id.v];
  const bool party = c.ports[1] == &port || (state == State::kOpen && c.ports[0] == &port);
  return party && c.state == state ? &c : nullptr;
}

// An attempt of this end that nobody has answered: the answer finds it gone.
Outcome<void> Exchange::give_up(ConnectionId id, const MeetingPort& port) {
  if (id.v >= connections_.size()) return fail(Errc::kNotFound);
  Connection& c = connections_[id.v];
  if (c.ports[0] != &port || c.state != State::kAsked) return fail(Errc::kNotFound);
  c.state = State::kClosed;
  return {};
}

Outcome<void> MeetingPort::accept(ConnectionId connection, Qpn qpn, const ConnectTerms& terms,
                                  const ConnectData& data) {
  Exchange::Connection* c = exchange_.find(connection, *this, Exchange::State::kAsked);
  if (c == nullptr || c->ports[0] == nullptr) return fail(Errc::kNotFound);
  c->ends[1] = {address_, qpn, terms};
  const auto joined = exchange_.join(*c->ports[0], c->ends[0], *this, c->ends[1]);
  if (!joined) return joined;
  c->state = Exchange::State::kOpen;
  PortEvent event;
  event.kind = PortEventKind::kEstablished;
  event.connection = connection;
  event.qpn = qpn;
  tell(event);
  event.qpn = c->ends[0].qpn;
  event.data = data;
  c->ports[0]->tell(event);
  return {};
}

Outcome<void> MeetingPort::reject(ConnectionId connection, const ConnectData& why) {
  Exchange::Connection* c = exchange_.find(connection, *this, Exchange::State::kAsked);
  if (c == nullptr) return fail(Errc::kNotFound);
  c->state = Exchange::State::kClosed;
  PortEvent event;
  event.kind = PortEventKind::kRejected;
  event.connection = connection;
  event.data = why;
  event.qpn = c->ends[0].qpn;
  if (c->ports[0] != nullptr) c->ports[0]->tell(event);
  return {};
}

Outcome<void> MeetingPort::disconnect(ConnectionId connection) {
  Exchange::Connection* c = exchange_.find(connection, *this, Exchange::State::kOpen);
  if (c == nullptr) return exchange_.give_up(connection, *this);
  c->state = Exchange::State::kClosed;
  const int self = c->ports[0] == this ? 0 : 1;
  fall(c->ends[self].qpn);
  MeetingPort* peer = c->ports[1 - self];
  if (peer == nullptr) return {};
  peer->fall(c->ends[1 - self].qpn);
  PortEvent event;
  event.kind = PortEventKind::kDisconnected;
  event.connection = connection;
  event.qpn = c->ends[1 - self].qpn;
  peer->tell(event);
  return {};
}

bool MeetingPort::poll_event(PortEvent& out) {
  if (!events_.empty()) {
    out = events_.front();
    events_.pop_front();
    return true;
  }
  return device_event(out);
}

Outcome<void> MeetingPort::join(const ConnectEnd& own, MeetingPort& other, const ConnectEnd& theirs) {
  if (const auto up = raise(own, theirs); !up) return up;
  return other.raise(theirs, own);
}

Outcome<void> Exchange::join(MeetingPort& a, const ConnectEnd& at_a, MeetingPort& b, const ConnectEnd& at_b) {
  return a.join(at_a, b, at_b);
}

MeetingPort* Exchange::at(const wire::Address& address) const {
  const auto found = std::find_if(ports_.begin(), ports_.end(),
                                  [&](const MeetingPort* p) { return p->address() == address; });
  return found == ports_.end() ? nullptr : *found;
}

}  // namespace weft
