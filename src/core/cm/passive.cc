// The side that listens: REQ in, REP out, RTU in. The manager itself
// rejects a request that cannot be accepted, without a connection. The program sees only the others.
#include <algorithm>

#include "core/cm/state.h"

namespace weft::cm {

using wire::CmKind;
using wire::CmMessage;

Listener* State::find_listener(wire::PortSpace space, std::uint16_t port, const wire::Address& local) {
  for (Listener& l : listeners) {
    if (l.used && l.attr.space == space && l.attr.port == port &&
        (l.attr.local == wire::Address{} || l.attr.local == local)) {
      return &l;
    }
  }
  return nullptr;
}

Outcome<ListenerId> Cm::listen(const ListenAttr& a) {
  State& s = *state_;
  if (a.port == 0 || a.backlog == 0) return fail(Errc::kInvalid);
  for (const Listener& l : s.listeners) {
    if (l.used && l.attr.space == a.space && l.attr.port == a.port &&
        (l.attr.local == a.local || l.attr.local == wire::Address{} || a.local == wire::Address{})) {
      return fail(Errc::kBusy);
    }
  }
  for (std::uint32_t i = 0; i < s.listeners.size(); ++i) {
    if (s.listeners[i].used) continue;
    s.listeners[i] = {.used = true, .attr = a};
    return ListenerId{i};
  }
  return fail(Errc::kNoMemory);
}

Outcome<void> Cm::close(ListenerId listener, Time now) {
  State& s = *state_;
  if (listener.v >= s.listeners.size() || !s.listeners[listener.v].used) return fail(Errc::kNotFound);
  for (const auto& row : s.rows) {
    if (row->phase == Phase::kFree || row->listener != listener) continue;
    const bool unheard =
        row->is_pending(CmEventKind::kConnectRequest) || row->is_pending(CmEventKind::kResolveRequest);
    s.leave_backlog(*row);  // the program must answer requests that it knows of
    if (unheard) s.abandon(*row, now);
  }
  s.listeners[listener.v] = {};
  s.config.refuse_from = std::max(s.config.refuse_from, now + s.config.reopening);
  return {};
}

void State::on_req_again(Connection& c, const MadFacts& f, const CmMessage& m, Time now) {
  ++counters.duplicates;
  switch (c.phase) {
    case Phase::kReqReceived:
      return owe_mra(c, wire::kAboutReq);
    case Phase::kRepSent:
      return send_again(c);
    case Phase::kAnswered:
      send_again(c);
      return linger(c, now);
    case Phase::kTimewait:
      return reply_rej(f, m, wire::kRejStaleConnection, wire::kAboutReq);
    default:
      return;  // an old copy
  }
}

// The peer uses `peer_qpn` for a new connection, so its end of our old one is gone. An attempt that never
// became a connection is dropped. An established connection is disconnected first, and true tells that
// the peer must try again.
bool State::end_stale(const wire::Address& peer, Qpn peer_qpn, Time now) {
  Connection* const old = find(by_peer_qpn, peer, peer_qpn.v);
  if (old == nullptr) return false;
  switch (old->phase) {
    case Phase::kReqReceived:
    case Phase::kRepSent:
      old->owes_last = false;
      over(*old, CmEventKind::kRejected, wire::kRejStaleConnection);
      return false;
    case Phase::kEstablished:
      start_disconnect(*old, now);
      return true;
    case Phase::kAnswered:
    case Phase::kOver:
      return false;
    default:
      return true;
  }
}

void State::on_req(const MadFacts& f, const CmMessage& m, Time now) {
  if (Connection* const c = find(by_peer_id, f.source, m.local_id);
      c != nullptr && c->phase != Phase::kOver) {
    if (c->transaction == m.transaction) return on_req_again(*c, f, m, now);
    // The peer uses this id in a new exchange, so it has restarted.
    if (c->phase == Phase::kEstablished) start_disconnect(*c, now);
    ++counters.refused;
    return reply_rej(f, m, wire::kRejStaleConnection, wire::kAboutReq);
  }
  const auto refuse = [&](std::uint16_t reason) {
    ++counters.refused;
    reply_rej(f, m, reason, wire::kAboutReq);
  };
  if (m.transport > wire::kTransportUc || m.extended_transport != 0)
    return refuse(wire::kRejInvalidTransport);
  const auto space = static_cast<wire::PortSpace>(static_cast<std::uint16_t>(m.service_id >> 16U));
  const auto port = static_cast<std::uint16_t>(m.service_id);
  Listener* const l = m.service_id >> 32U == 0 && space != wire::PortSpace::kUdp
                          ? find_listener(space, port, f.destination)
                          : nullptr;
  if (l == nullptr && now < config.refuse_from) {
    ++counters.early;
    return;
  }
  if (l == nullptr) return refuse(wire::kRejInvalidServiceId);
  wire::AddressHeader from;
  if (!read_address_header(std::span(m.private_data).first(private_bytes(m.kind)), from))
    return refuse(wire::kRejUnsupported);
  if (mtu_bytes(m.mtu) == 0) return refuse(wire::kRejInvalidMtu);
  if (end_stale(f.source, m.qpn, now)) return refuse(wire::kRejStaleConnection);
  Connection* const c = l->waiting < l->attr.backlog ? create() : nullptr;
  if (c == nullptr) return refuse(wire::kRejNoResources);

  c->phase = Phase::kReqReceived;
  c->listener = {static_cast<std::uint32_t>(l - listeners.data())};
  ++l->waiting;
  c->peer_id = m.local_id;
  c->transaction = m.transaction;
  c->peer_response_timeout = m.local_response_timeout;
  c->max_retries = m.max_cm_retries;
  ConnInfo& i = c->info;
  i.space = space;
  i.local = f.destination;
  i.peer = f.source;
  i.local_port = port;
  i.peer_port = from.source_port;
  i.type = m.transport == wire::kTransportUc ? QpType::kUc : QpType::kRc;
  i.peer_qpn = m.qpn;
  i.sq_psn = m.starting_psn;
  i.rq_psn = new_psn();
  i.mtu = mtu_bytes(m.mtu);
  i.responder_resources = m.initiator_depth;  // seen from here
  i.initiator_depth = m.responder_resources;
  i.retry_count = m.retry_count;
  i.rnr_retry = m.rnr_retry;
  i.ack_timeout = m.ack_timeout;
  i.tos = m.traffic_class;
  i.flow_control = m.flow_control != 0;
  i.srq = m.srq != 0;
  agree_on_modes(*c, m);
  by_peer_id.set({f.source, m.local_id}, index_of(*c));
  by_peer_qpn.set({f.source, m.qpn.v}, index_of(*c));
  keep_private(*c, m, wire::kAddressHeaderBytes);
  raise(*c, CmEventKind::kConnectRequest);
}

Outcome<void> Cm::accept(ConnId conn, const AcceptAttr& a, Time now) {
  State& s = *state_;
  Connection* const c = s.find(conn);
  if (c == nullptr) return fail(Errc::kNotFound);
  if (c->phase != Phase::kReqReceived || a.private_data.size() > kAcceptPrivate || a.rnr_retry > 7)
    return fail(Errc::kInvalid);
  s.leave_backlog(*c);
  ConnInfo& i = c->info;
  i.qpn = a.qpn;
  i.peer_rnr_retry = a.rnr_retry;
  i.responder_resources = std::min(i.responder_resources, a.responder_resources);
  i.initiator_depth = std::min(i.initiator_depth, a.initiator_depth);
  i.flow_control = i.flow_control && a.flow_control;
  CmMessage m = s.message(*c, CmKind::kRep);
  m.qpn = a.qpn;
  m.starting_psn = i.rq_psn;
  m.responder_resources = i.responder_resources;
  m.initiator_depth = i.initiator_depth;
  m.target_ack_delay = s.config.ack_delay;
  m.failover = 1;  // alternate paths: not supported
  m.flow_control = i.flow_control ? 1 : 0;
  m.rnr_retry = a.rnr_retry;
  m.srq = a.srq ? 1 : 0;
  m.ca_guid = s.config.ca_guid;
  s.accept_modes(*c, m);
  set_private(m, a.private_data);
  c->phase = Phase::kRepSent;
  c->pending = 0;  // the program may accept a request before it polled the event
  s.send(*c, m);
  s.wait(*c, now, State::believed(c->peer_response_timeout), c->max_retries);
  return {};
}

void State::on_rtu(Connection& c) {
  if (c.phase != Phase::kRepSent) {
    ++counters.duplicates;
    return;
  }
  c.phase = Phase::kEstablished;
  c.owes_last = false;  // a REP that waits to be repeated
  stop_waiting(c);
  raise(c, CmEventKind::kEstablished);
}

Outcome<void> Cm::notify(ConnId conn, Time now) {
  static_cast<void>(now);
  Connection* const c = state_->find(conn);
  if (c == nullptr) return fail(Errc::kNotFound);
  if (c->phase == Phase::kRepSent) state_->on_rtu(*c);
  return {};
}

}  // namespace weft::cm
