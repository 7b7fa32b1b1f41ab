// Dispatch, timers, polling, and what a queue pair of a connection is set to.
#include "core/cm/cm.h"

#include "core/cm/state.h"
#include "core/verbs/ladder.h"

namespace weft::cm {

using wire::CmKind;
using wire::CmMessage;

Cm::Cm(const CmConfig& config) : state_(std::make_unique<State>(config)) {}
Cm::~Cm() = default;

bool Cm::on_mad(Time now, const MadFacts& f, std::span<const std::uint8_t> bytes) {
  State& s = *state_;
  CmMessage m;
  wire::MadError error{};
  if (!decode(bytes, m, error)) return false;
  ++s.counters.received;
  switch (m.kind) {
    case CmKind::kReq:
      s.on_req(f, m, now);
      break;
    case CmKind::kRep:
      s.on_rep(f, m, now);
      break;
    case CmKind::kRej:
      s.on_rej(f, m, now);
      break;
    case CmKind::kDreq:
      s.on_dreq(f, m, now);
      break;
    case CmKind::kSidrReq:
      s.on_sidr_req(f, m, now);
      break;
    case CmKind::kSidrRep:
      s.on_sidr_rep(f, m);
      break;
    case CmKind::kRtu:
    case CmKind::kMra:
    case CmKind::kDrep: {
      // Answers must carry both ids. An MRA may come before the peer's id is known.
      Connection* const c = s.find_mine(m, f);
      const bool ids = c != nullptr && c->transaction == m.transaction &&
                       (c->peer_id == m.local_id || c->phase == Phase::kReqSent);
      if (!ids) {
        ++s.counters.strays;
      } else if (m.kind == CmKind::kRtu) {
        s.on_rtu(*c);
      } else if (m.kind == CmKind::kMra) {
        s.on_mra(*c, m, now);
      } else {
        s.on_drep(*c, now);
      }
    }
  }
  return true;
}

bool Cm::poll_mad(MadOut& out) {
  State& s = *state_;
  if (s.replies_head != s.replies_tail) {
    out = s.replies[s.replies_head++ % State::kReplies];
    ++s.counters.sent;
    return true;
  }
  while (s.outbox_head != s.outbox_tail) {
    const std::uint32_t index = s.outbox[s.outbox_head & s.index_mask];
    Connection& c = *s.rows[index];
    if (c.owes_mra && c.phase != Phase::kReqReceived && c.phase != Phase::kRepReceived) c.owes_mra = false;
    const bool mra = c.owes_mra, last = c.owes_last;
    if (!mra || !last) {  // this is the row's last MAD for now
      ++s.outbox_head;
      c.in_outbox = false;
    }
    if (c.phase == Phase::kFree || (!mra && !last)) continue;
    out.facts = {.source = c.info.local, .destination = c.info.peer};
    if (mra) {
      CmMessage m = s.message(c, CmKind::kMra);
      m.about = c.mra_about;
      m.service_timeout = s.config.service_timeout;
      encode(m, out.mad);
      c.owes_mra = false;
    } else {
      out.mad = c.last;
      c.owes_last = false;
      s.free_if_over(c);
    }
    ++s.counters.sent;
    return true;
  }
  return false;
}

bool Cm::has_mads() const {
  return state_->replies_head != state_->replies_tail || state_->outbox_head != state_->outbox_tail;
}

void State::on_timeout(Connection& c, Time now) {
  stop_waiting(c);
  if (c.retries_left > 0) {
    ++counters.repeated;
    send_again(c);
    return wait(c, now, c.interval, static_cast<std::uint8_t>(c.retries_left - 1));
  }
  switch (c.phase) {
    case Phase::kReqSent:
      reject_with(c, wire::kRejTimeout, wire::kAboutReq, {});
      return over(c, CmEventKind::kUnreachable, 0);
    case Phase::kRepSent:
      reject_with(c, wire::kRejTimeout, wire::kAboutRep, {});
      return over(c, CmEventKind::kUnreachable, 0);
    case Phase::kSidrSent:
      return over(c, CmEventKind::kUnreachable, 0);
    case Phase::kDreqSent:  // the peer does not answer; the connection counts as disconnected
      raise(c, CmEventKind::kDisconnected);
      return enter_timewait(c, now);
    case Phase::kTimewait:
      raise(c, CmEventKind::kTimewaitExit);
      return over(c);
    case Phase::kAnswered:
      return over(c);
    default:
      CHECK(false);  // no other phase waits
  }
}

void Cm::on_timer(Time now) {
  State& s = *state_;
  while (!s.deadlines.empty() && s.deadlines.next() <= now) {
    const std::uint32_t index = s.deadlines.top();
    s.deadlines.remove(index);
    Connection& c = *s.rows[index];
    if (c.phase == Phase::kFree || c.deadline == kNever) continue;
    if (c.deadline > now) {
      s.deadlines.at_latest(index, c.deadline);  // the entry was early
    } else {
      s.on_timeout(c, now);
    }
  }
}

Time Cm::next_deadline() const { return state_->deadlines.next(); }

bool Cm::poll_event(CmEvent& out) {
  State& s = *state_;
  while (s.events_head != s.events_tail) {
    const std::uint32_t index = s.event_rows[s.events_head & s.index_mask];
    Connection& c = *s.rows[index];
    const unsigned bits = c.phase == Phase::kFree ? 0U : c.pending;
    const unsigned kind = static_cast<unsigned>(__builtin_ctz(bits | 1U << kEventKinds));
    const unsigned rest = bits & ~(1U << kind);
    if (rest == 0) {
      ++s.events_head;
      c.in_events = false;
    }
    if (bits == 0) continue;
    c.pending = static_cast<std::uint16_t>(rest);
    out.kind = static_cast<CmEventKind>(kind);
    out.conn = c.id;
    out.listener = c.listener;
    out.reason = c.reason;
    out.info = c.info;
    const bool has_private = out.kind != CmEventKind::kEstablished && out.kind != CmEventKind::kUnreachable &&
                             out.kind != CmEventKind::kDisconnected && out.kind != CmEventKind::kTimewaitExit;
    out.private_length = has_private ? c.private_length : 0;
    if (has_private) out.private_data = c.private_data;
    s.free_if_over(c);
    return true;
  }
  return false;
}

Outcome<QpSetup> Cm::qp_setup(ConnId conn, QpState state) const {
  const Connection* const c = state_->find(conn);
  if (c == nullptr) return fail(Errc::kNotFound);
  const ConnInfo& i = c->info;
  QpSetup setup;
  QpAttr& a = setup.attr;
  a.state = state;
  if (i.type == QpType::kUd) return fail(Errc::kUnsupported);  // SIDR sets up no queue pair
  const auto [init, rtr, rts] = ladder(i.type);
  if (state == QpState::kInit) {
    // docs/protocol/connection-manager.md#queue-pairs-of-a-connection: what the peer may do follows from what
    // it was promised.
    a.access = kRemoteWrite;
    if (i.responder_resources > 0) a.access |= kRemoteRead | kRemoteAtomic;
    setup.mask = init.mask;
    return setup;
  }
  // The passive side knows everything from the request on, the active side from the answer on.
  if (c->phase != Phase::kReqReceived && c->phase != Phase::kRepReceived && c->phase != Phase::kRepSent &&
      c->phase != Phase::kEstablished)
    return fail(Errc::kInvalid);
  if (state == QpState::kRtr) {
    a.mtu = i.mtu;
    a.dest_qpn = i.peer_qpn;
    a.rq_psn = i.rq_psn;
    a.max_dest_rd_atomic = i.responder_resources;
    a.min_rnr_timer = i.peer_rnr_retry == 7 ? state_->config.patient_rnr_timer : std::uint8_t{0};
    setup.mask = rtr.mask;
    return setup;
  }
  if (state != QpState::kRts) return fail(Errc::kInvalid);
  a.mode = i.mode;
  a.sq_psn = i.sq_psn;
  a.timeout = i.ack_timeout;
  a.retry_count = i.retry_count;
  a.rnr_retry = i.rnr_retry;
  a.max_rd_atomic = i.initiator_depth;
  setup.mask = rts.mask;
  return setup;
}

Outcome<ConnInfo> Cm::info(ConnId conn) const {
  const Connection* const c = state_->find(conn);
  if (c == nullptr) return fail(Errc::kNotFound);
  return c->info;
}

std::optional<wire::Mode> Cm::mode_towards(const wire::Address& peer, Qpn peer_qpn) const {
  const Connection* const c = state_->find(state_->by_peer_qpn, peer, peer_qpn.v);
  if (c == nullptr || c->phase == Phase::kTimewait || c->phase == Phase::kAnswered ||
      c->phase == Phase::kOver)
    return std::nullopt;
  return c->info.mode;
}

const CmConfig& Cm::config() const { return state_->config; }
const CmCounters& Cm::counters() const { return state_->counters; }
std::uint32_t Cm::connections() const { return state_->live; }
std::uint32_t Cm::listeners() const {
  std::uint32_t n = 0;
  for (const Listener& l : state_->listeners) n += l.used ? 1U : 0U;
  return n;
}

void Cm::check_invariants() const {
  const State& s = *state_;
  std::uint32_t used = 0, known_ids = 0, known_qpns = 0;
  std::vector<std::uint32_t> waiting(s.listeners.size(), 0);
  for (std::uint32_t i = 0; i < s.rows.size(); ++i) {
    const Connection& c = *s.rows[i];
    if (c.phase == Phase::kFree) {
      CHECK(c.pending == 0 && !c.owes_last && c.listener.v == kNone);
      continue;
    }
    ++used;
    known_ids += s.by_peer_id.holds(i) ? 1U : 0U;
    known_qpns += s.by_peer_qpn.holds(i) ? 1U : 0U;
    CHECK_OP(s.index_of(c), ==, i);
    CHECK_OP(c.id.v >> 24U, ==, s.config.slot);
    CHECK(!c.owes_last || c.in_outbox);
    CHECK(c.pending == 0 || (c.in_events && !c.abandoned));
    if (c.listener.v != kNone) ++waiting[c.listener.v];
    const bool must_wait = c.phase == Phase::kReqSent || c.phase == Phase::kRepSent ||
                           c.phase == Phase::kDreqSent || c.phase == Phase::kTimewait ||
                           c.phase == Phase::kSidrSent || c.phase == Phase::kAnswered;
    CHECK(must_wait == (c.deadline != kNever));
    if (must_wait) CHECK(s.deadlines.next() <= c.deadline);
    if (c.phase == Phase::kOver) CHECK(c.pending != 0 || c.owes_last);
  }
  CHECK_OP(known_ids, ==, s.by_peer_id.size());
  CHECK_OP(known_qpns, ==, s.by_peer_qpn.size());
  CHECK_OP(used, ==, s.live);
  CHECK_OP(used + s.free_rows.size(), ==, s.rows.size());
  for (std::size_t l = 0; l < waiting.size(); ++l) CHECK_OP(waiting[l], ==, s.listeners[l].waiting);
}

}  // namespace weft::cm
