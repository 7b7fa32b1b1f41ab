// The side that connects: REQ out, REP in, RTU out. Repetitions of a REP mean that the RTU was lost, or that
// the program is slow; an MRA buys time for a slow peer.
#include <algorithm>

#include "core/cm/state.h"

namespace weft::cm {

using wire::CmKind;
using wire::CmMessage;

namespace {

// RDMA-CM's choice (docs/protocol/connection-manager.md#time-outs-of-the-manager): a packet's way there and
// back, or the peer's delay, whichever is longer, and one more when both are close.
std::uint8_t ack_timeout_code(const CmConfig& config) {
  unsigned code = config.packet_life + 1U;
  const unsigned delay = config.ack_delay;
  code = code >= delay ? code + (delay + 1U >= code ? 1U : 0U) : delay + (code + 1U >= delay ? 1U : 0U);
  return static_cast<std::uint8_t>(std::min(31U, code));
}

Duration req_interval(const CmConfig& config) {
  return timeout_of(config.packet_life) * 2 + timeout_of(config.response_timeout);
}

CmMessage req_of(const State& s, const Connection& c) {
  const CmConfig& config = s.config;
  const ConnInfo& i = c.info;
  CmMessage m = s.message(c, CmKind::kReq);
  m.service_id = wire::service_id(i.space, i.peer_port);
  m.ca_guid = config.ca_guid;
  m.qpn = i.qpn;
  m.responder_resources = i.responder_resources;
  m.initiator_depth = i.initiator_depth;
  m.remote_response_timeout = m.local_response_timeout = config.response_timeout;
  m.transport = i.type == QpType::kUc ? wire::kTransportUc : wire::kTransportRc;
  m.flow_control = i.flow_control ? 1 : 0;
  m.starting_psn = i.rq_psn;
  m.retry_count = i.retry_count;
  m.pkey = 0xFFFF;
  m.mtu = mtu_code(i.mtu);
  m.rnr_retry = i.rnr_retry;
  m.max_cm_retries = config.max_retries;
  m.srq = i.srq ? 1 : 0;
  m.local_lid = m.remote_lid = 0xFFFF;  // permissive: routed
  m.local_gid = i.local;
  m.remote_gid = i.peer;
  m.traffic_class = i.tos;
  m.hop_limit = 64;
  m.ack_timeout = i.ack_timeout;
  s.offer_modes(m);
  wire::write_address_header({.source_port = i.local_port, .source = i.local, .destination = i.peer},
                             m.private_data);
  return m;
}

}  // namespace

Outcome<ConnId> Cm::connect(const ConnectAttr& a, Time now) {
  State& s = *state_;
  if (mtu_code(a.mtu) == 0 || a.port == 0 || a.private_data.size() > kConnectPrivate ||
      a.space == wire::PortSpace::kUdp || (a.type != QpType::kRc && a.type != QpType::kUc) ||
      a.retry_count > 7 || a.rnr_retry > 7 || a.ack_timeout > 31) {
    return fail(Errc::kInvalid);
  }
  Connection* const c = s.create();
  if (c == nullptr) return fail(Errc::kNoMemory);
  c->active = true;
  c->phase = Phase::kReqSent;
  c->transaction = s.new_transaction();
  c->peer_response_timeout = s.config.response_timeout;
  ConnInfo& i = c->info;
  i.space = a.space;
  i.local = a.local;
  i.peer = a.peer;
  i.local_port = a.local_port;
  i.peer_port = a.port;
  i.type = a.type;
  i.qpn = a.qpn;
  i.rq_psn = s.new_psn();
  i.mtu = a.mtu;
  i.responder_resources = a.responder_resources;
  i.initiator_depth = a.initiator_depth;
  i.retry_count = a.retry_count;
  i.rnr_retry = i.peer_rnr_retry = a.rnr_retry;
  i.ack_timeout = a.ack_timeout != 0 ? a.ack_timeout : ack_timeout_code(s.config);
  i.tos = a.tos;
  i.flow_control = a.flow_control;
  i.srq = a.srq;
  CmMessage req = req_of(s, *c);
  set_private(req, a.private_data, wire::kAddressHeaderBytes);
  s.send(*c, req);
  s.wait(*c, now, req_interval(s.config), s.config.max_retries);
  return c->id;
}

void State::on_rep(const MadFacts& f, const CmMessage& m, Time now) {
  Connection* const c = find_mine(m, f);
  if (c == nullptr || !c->active || c->phase == Phase::kOver) {
    ++counters.strays;
    return reply_rej(f, m, wire::kRejInvalidCommId, wire::kAboutRep);
  }
  if (c->transaction != m.transaction) {  // an answer to an old request whose id is in use again
    ++counters.strays;
    return;
  }
  if (c->phase != Phase::kReqSent) {
    ++counters.duplicates;
    if (c->peer_id != m.local_id) return;
    if (c->phase == Phase::kRepReceived) owe_mra(*c, wire::kAboutRep);
    if (c->phase == Phase::kEstablished) send_again(*c);  // the RTU
    return;
  }
  c->peer_id = m.local_id;
  stop_waiting(*c);
  c->owes_last = false;
  if (end_stale(f.source, m.qpn, now)) {
    reject_with(*c, wire::kRejStaleConnection, wire::kAboutRep, {});
    return over(*c, CmEventKind::kRejected, wire::kRejStaleConnection);
  }
  ConnInfo& i = c->info;
  i.peer_qpn = m.qpn;
  i.sq_psn = m.starting_psn;
  // What one side issues is what the other accepts (docs/protocol/connection-manager.md#crossing-over).
  i.initiator_depth = std::min(i.initiator_depth, m.responder_resources);
  i.responder_resources = std::min(i.responder_resources, m.initiator_depth);
  i.rnr_retry = m.rnr_retry;
  i.flow_control = i.flow_control && m.flow_control != 0;
  i.srq = m.srq != 0;
  agree_on_modes(*c, m);
  by_peer_qpn.set({f.source, m.qpn.v}, index_of(*c));
  keep_private(*c, m, 0);
  c->phase = Phase::kRepReceived;
  raise(*c, CmEventKind::kConnectResponse);
}

Outcome<void> Cm::establish(ConnId conn, Time now) {
  static_cast<void>(now);
  State& s = *state_;
  Connection* const c = s.find(conn);
  if (c == nullptr) return fail(Errc::kNotFound);
  if (c->phase != Phase::kRepReceived) return fail(Errc::kInvalid);
  c->phase = Phase::kEstablished;
  c->pending = 0;  // the program may go on before it polled the event
  s.send(*c, s.message(*c, CmKind::kRtu));
  s.raise(*c, CmEventKind::kEstablished);
  return {};
}

void State::on_mra(Connection& c, const CmMessage& m, Time now) {
  const bool req = c.phase == Phase::kReqSent && m.about == wire::kAboutReq;
  const bool rep = c.phase == Phase::kRepSent && m.about == wire::kAboutRep;
  if (!req && !rep) return;
  // The peer has the message and asks for this much time. After that, the usual time-out runs.
  c.deadline = now.after(believed(m.service_timeout) + c.interval);
  deadlines.at_latest(index_of(c), c.deadline);
}

}  // namespace weft::cm
