// SIDR: one question (who serves this port?), one answer (queue pair and Q_Key). UD needs no more.
#include "core/cm/state.h"

namespace weft::cm {

using wire::CmKind;
using wire::CmMessage;

Outcome<ConnId> Cm::resolve(const ResolveAttr& a, Time now) {
  State& s = *state_;
  if (a.port == 0 || a.private_data.size() > kResolvePrivate) return fail(Errc::kInvalid);
  Connection* const c = s.create();
  if (c == nullptr) return fail(Errc::kNoMemory);
  c->active = true;
  c->phase = Phase::kSidrSent;
  c->transaction = s.new_transaction();
  ConnInfo& i = c->info;
  i.space = wire::PortSpace::kUdp;
  i.type = QpType::kUd;
  i.local = a.local;
  i.peer = a.peer;
  i.local_port = a.local_port;
  i.peer_port = a.port;
  CmMessage m = s.message(*c, CmKind::kSidrReq);
  m.pkey = 0xFFFF;
  m.service_id = wire::service_id(wire::PortSpace::kUdp, a.port);
  wire::write_address_header({.source_port = a.local_port, .source = a.local, .destination = a.peer},
                             m.private_data);
  set_private(m, a.private_data, wire::kAddressHeaderBytes);
  s.send(*c, m);
  s.wait(*c, now, timeout_of(s.config.response_timeout), s.config.max_retries);
  return c->id;
}

void State::on_sidr_req(const MadFacts& f, const CmMessage& m, Time now) {
  if (Connection* const c = find(by_peer_id, f.source, m.local_id);
      c != nullptr && c->phase != Phase::kOver) {
    ++counters.duplicates;
    if (c->phase != Phase::kAnswered || c->transaction != m.transaction) return;
    send_again(*c);
    return linger(*c, now);
  }
  const auto refuse = [&](std::uint8_t status) {
    ++counters.refused;
    CmMessage rep;
    rep.kind = CmKind::kSidrRep;
    rep.transaction = m.transaction;
    rep.local_id = m.local_id;
    rep.service_id = m.service_id;
    rep.reason = status;
    reply(f, rep);
  };
  const auto port = static_cast<std::uint16_t>(m.service_id);
  Listener* const l = m.service_id == wire::service_id(wire::PortSpace::kUdp, port)
                          ? find_listener(wire::PortSpace::kUdp, port, f.destination)
                          : nullptr;
  if (l == nullptr && now < config.refuse_from) {
    ++counters.early;
    return;
  }
  if (l == nullptr) return refuse(wire::kSidrUnsupported);
  wire::AddressHeader from;
  if (!read_address_header(std::span(m.private_data).first(private_bytes(m.kind)), from))
    return refuse(wire::kSidrRejected);
  Connection* const c = l->waiting < l->attr.backlog ? create() : nullptr;
  if (c == nullptr) return refuse(wire::kSidrNoQp);
  c->phase = Phase::kSidrReceived;
  c->listener = {static_cast<std::uint32_t>(l - listeners.data())};
  ++l->waiting;
  c->peer_id = m.local_id;
  c->transaction = m.transaction;
  c->peer_response_timeout = config.response_timeout;  // the message does not say
  c->max_retries = config.max_retries;
  ConnInfo& i = c->info;
  i.space = wire::PortSpace::kUdp;
  i.type = QpType::kUd;
  i.local = f.destination;
  i.peer = f.source;
  i.local_port = port;
  i.peer_port = from.source_port;
  by_peer_id.set({f.source, m.local_id}, index_of(*c));
  keep_private(*c, m, wire::kAddressHeaderBytes);
  raise(*c, CmEventKind::kResolveRequest);
}

void State::answer_sidr(Connection& c, const AnswerAttr& a, Time now) {
  CmMessage m = message(c, CmKind::kSidrRep);
  m.local_id = c.peer_id;  // the request's id
  m.service_id = wire::service_id(wire::PortSpace::kUdp, c.info.local_port);
  m.reason = a.status;
  m.qpn = a.qpn;
  m.qkey = a.qkey;
  set_private(m, a.private_data);
  send(c, m);
  linger(c, now);
}

Outcome<void> Cm::answer(ConnId conn, const AnswerAttr& a, Time now) {
  Connection* const c = state_->find(conn);
  if (c == nullptr) return fail(Errc::kNotFound);
  if (c->phase != Phase::kSidrReceived || a.private_data.size() > kAnswerPrivate) return fail(Errc::kInvalid);
  state_->answer_sidr(*c, a, now);
  return {};
}

void State::on_sidr_rep(const MadFacts& f, const CmMessage& m) {
  Connection* const c = find(ConnId{m.local_id});
  if (c == nullptr || c->info.peer != f.source || c->transaction != m.transaction ||
      c->phase != Phase::kSidrSent) {
    ++counters.strays;
    return;
  }
  c->owes_last = false;
  c->info.peer_qpn = m.qpn;
  c->info.qkey = m.qkey;
  keep_private(*c, m, 0);
  over(*c, m.reason == wire::kSidrSuccess ? CmEventKind::kResolved : CmEventKind::kRefused, m.reason);
}

}  // namespace weft::cm
