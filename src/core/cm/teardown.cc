// Endings: rejected, disconnected, abandoned. A connection ends when either side says so, whatever phase
// the other side is in. The message that tells the other side depends on its phase.
#include "core/cm/state.h"

namespace weft::cm {

using wire::CmKind;
using wire::CmMessage;

Outcome<void> Cm::reject(ConnId conn, std::span<const std::uint8_t> private_data, Time now) {
  State& s = *state_;
  Connection* const c = s.find(conn);
  if (c == nullptr) return fail(Errc::kNotFound);
  const bool passive = c->phase == Phase::kReqReceived;
  if ((!passive && c->phase != Phase::kRepReceived) || private_data.size() > kRejectPrivate)
    return fail(Errc::kInvalid);
  s.reject_with(*c, wire::kRejConsumer, passive ? wire::kAboutReq : wire::kAboutRep, private_data);
  if (passive) {
    s.linger(*c, now);
  } else {
    c->abandoned = true;
    s.over(*c);
  }
  return {};
}

void State::on_rej(const MadFacts& f, const CmMessage& m, Time now) {
  Connection* c = m.remote_id != 0 ? find_mine(m, f) : nullptr;
  // A peer that gave up before it heard from us knows only its own id.
  if (m.remote_id == 0 && m.reason == wire::kRejTimeout) {
    c = find(by_peer_id, f.source, m.local_id);
    if (c != nullptr && c->phase != Phase::kReqReceived && c->phase != Phase::kRepSent) c = nullptr;
  }
  if (c == nullptr || c->transaction != m.transaction ||
      (m.local_id != 0 && c->peer_id != 0 && m.local_id != c->peer_id)) {
    ++counters.strays;
    return;
  }
  switch (c->phase) {
    case Phase::kReqSent:
    case Phase::kReqReceived:
    case Phase::kRepReceived:
    case Phase::kRepSent:
      keep_private(*c, m, 0);
      c->owes_last = false;
      return over(*c, CmEventKind::kRejected, m.reason);
    case Phase::kEstablished:
    case Phase::kDreqSent:
      raise(*c, CmEventKind::kDisconnected);
      return enter_timewait(*c, now);
    default:
      ++counters.duplicates;
  }
}

void State::start_disconnect(Connection& c, Time now) {
  c.transaction = new_transaction();
  CmMessage m = message(c, CmKind::kDreq);
  m.qpn = c.info.peer_qpn;
  c.phase = Phase::kDreqSent;
  send(c, m);
  wait(c, now, timeout_of(config.response_timeout), config.max_retries);
}

Outcome<void> Cm::disconnect(ConnId conn, Time now) {
  State& s = *state_;
  Connection* const c = s.find(conn);
  if (c == nullptr) return fail(Errc::kNotFound);
  if (c->phase == Phase::kEstablished) s.start_disconnect(*c, now);
  const bool over = c->phase == Phase::kDreqSent || c->phase == Phase::kTimewait || c->phase == Phase::kOver;
  if (!over || c->abandoned) return fail(Errc::kInvalid);
  return {};
}

void State::on_dreq(const MadFacts& f, const CmMessage& m, Time now) {
  CmMessage drep;
  drep.kind = CmKind::kDrep;
  drep.transaction = m.transaction;
  drep.local_id = m.remote_id;
  drep.remote_id = m.local_id;
  Connection* const c = find_mine(m, f);
  if (c == nullptr || c->peer_id != m.local_id) {
    ++counters.strays;
    return reply(f, drep);
  }
  switch (c->phase) {
    case Phase::kRepSent:
    case Phase::kRepReceived:
    case Phase::kEstablished:
    case Phase::kDreqSent:
      if (m.qpn != c->info.qpn) return;  // not about this queue pair
      c->pending = static_cast<std::uint16_t>(c->pending &
                                              ~(1U << static_cast<unsigned>(CmEventKind::kConnectResponse)));
      if (c->phase == Phase::kRepSent)
        raise(*c, CmEventKind::kEstablished);  // the RTU was lost or never sent
      raise(*c, CmEventKind::kDisconnected);
      send(*c, drep);
      return enter_timewait(*c, now);
    case Phase::kTimewait:
    case Phase::kOver:
    case Phase::kAnswered:
      ++counters.duplicates;
      return reply(f, drep);
    default:
      return;
  }
}

void State::on_drep(Connection& c, Time now) {
  if (c.phase != Phase::kDreqSent) {
    ++counters.duplicates;
    return;
  }
  c.owes_last = false;
  raise(c, CmEventKind::kDisconnected);
  enter_timewait(c, now);
}

void State::abandon(Connection& c, Time now) {
  c.abandoned = true;
  c.pending = 0;
  switch (c.phase) {
    case Phase::kReqSent:
      reject_with(c, wire::kRejTimeout, wire::kAboutReq, {});
      return over(c);
    case Phase::kReqReceived:
      reject_with(c, wire::kRejConsumer, wire::kAboutReq, {});
      return linger(c, now);
    case Phase::kRepSent:
      reject_with(c, wire::kRejConsumer, wire::kAboutOther, {});
      return linger(c, now);
    case Phase::kRepReceived:
      reject_with(c, wire::kRejConsumer, wire::kAboutRep, {});
      return over(c);
    case Phase::kEstablished:
      return start_disconnect(c, now);
    case Phase::kSidrReceived: {
      AnswerAttr no;
      no.status = wire::kSidrRejected;
      return answer_sidr(c, no, now);
    }
    case Phase::kSidrSent:
      return over(c);
    case Phase::kOver:
      return free_if_over(c);
    case Phase::kFree:
    case Phase::kDreqSent:
    case Phase::kTimewait:
    case Phase::kAnswered:
      return;  // already on its way
  }
}

Outcome<void> Cm::abandon(ConnId conn, Time now) {
  Connection* const c = state_->find(conn);
  if (c == nullptr || c->abandoned) return fail(Errc::kNotFound);
  state_->abandon(*c, now);
  return {};
}

}  // namespace weft::cm
