// Queue pair states and which attributes each transition requires and allows
// (docs/protocol/verbs.md#attributes). A mask outside required + optional is refused and nothing changes.
#include "core/transport/rc/attributes.h"

#include <span>

#include "core/transport/congestion.h"
#include "core/transport/engine.h"
#include "core/transport/rc/acknowledge.h"
#include "core/transport/rc/control.h"
#include "core/transport/rc/failure.h"

namespace weft {
namespace {

struct Transition {
  QpState from;
  QpState to;
  std::uint32_t required;
  std::uint32_t optional;
};

constexpr Transition kRcTransitions[] = {
    {QpState::kReset, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccess, 0},
    {QpState::kInit, QpState::kInit, 0, kAttrPkeyIndex | kAttrPort | kAttrAccess},
    {QpState::kInit, QpState::kRtr,
     kAttrPath | kAttrMtu | kAttrDestQpn | kAttrRqPsn | kAttrMaxDestRdAtomic | kAttrMinRnrTimer,
     kAttrAltPath | kAttrAccess | kAttrPkeyIndex},
    {QpState::kRtr, QpState::kRts,
     kAttrTimeout | kAttrRetryCount | kAttrRnrRetry | kAttrSqPsn | kAttrMaxRdAtomic,
     kAttrCurrentState | kAttrAltPath | kAttrAccess | kAttrMinRnrTimer | kAttrPathMigState},
    {QpState::kRts, QpState::kRts, 0,
     kAttrCurrentState | kAttrAccess | kAttrAltPath | kAttrPathMigState | kAttrMinRnrTimer},
    {QpState::kRts, QpState::kSqd, 0, kAttrSqdNotify},
    {QpState::kSqd, QpState::kSqd, 0,
     kAttrPort | kAttrPath | kAttrTimeout | kAttrRetryCount | kAttrRnrRetry | kAttrMaxRdAtomic |
         kAttrMaxDestRdAtomic | kAttrAltPath | kAttrAccess | kAttrPkeyIndex | kAttrMinRnrTimer |
         kAttrPathMigState},
    {QpState::kSqd, QpState::kRts, 0,
     kAttrCurrentState | kAttrAltPath | kAttrAccess | kAttrMinRnrTimer | kAttrPathMigState},
};

constexpr Transition kUcTransitions[] = {
    {QpState::kReset, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccess, 0},
    {QpState::kInit, QpState::kInit, 0, kAttrPkeyIndex | kAttrPort | kAttrAccess},
    {QpState::kInit, QpState::kRtr, kAttrPath | kAttrMtu | kAttrDestQpn | kAttrRqPsn,
     kAttrAltPath | kAttrAccess | kAttrPkeyIndex},
    {QpState::kRtr, QpState::kRts, kAttrSqPsn,
     kAttrCurrentState | kAttrAltPath | kAttrAccess | kAttrPathMigState},
    {QpState::kRts, QpState::kRts, 0, kAttrCurrentState | kAttrAccess | kAttrAltPath | kAttrPathMigState},
    {QpState::kRts, QpState::kSqd, 0, kAttrSqdNotify},
    {QpState::kSqd, QpState::kSqd, 0,
     kAttrPath | kAttrAltPath | kAttrAccess | kAttrPkeyIndex | kAttrPathMigState},
    {QpState::kSqd, QpState::kRts, 0, kAttrCurrentState | kAttrAltPath | kAttrAccess | kAttrPathMigState},
    {QpState::kSqe, QpState::kRts, 0, kAttrCurrentState | kAttrAccess},
};

constexpr Transition kUdTransitions[] = {
    {QpState::kReset, QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrQkey, 0},
    {QpState::kInit, QpState::kInit, 0, kAttrPkeyIndex | kAttrPort | kAttrQkey},
    {QpState::kInit, QpState::kRtr, 0, kAttrPkeyIndex | kAttrQkey},
    {QpState::kRtr, QpState::kRts, kAttrSqPsn, kAttrCurrentState | kAttrQkey},
    {QpState::kRts, QpState::kRts, 0, kAttrCurrentState | kAttrQkey},
    {QpState::kRts, QpState::kSqd, 0, kAttrSqdNotify},
    {QpState::kSqd, QpState::kSqd, 0, kAttrPkeyIndex | kAttrQkey},
    {QpState::kSqd, QpState::kRts, 0, kAttrCurrentState | kAttrQkey},
    {QpState::kSqe, QpState::kRts, 0, kAttrCurrentState | kAttrQkey},
};

std::span<const Transition> transitions_of(QpType type) {
  if (type == QpType::kUd) return kUdTransitions;
  if (type == QpType::kUc) return kUcTransitions;
  return kRcTransitions;
}

Outcome<void> check_mask(const QueuePair& q, const QpAttr& attr, std::uint32_t mask) {
  const QpState to = (mask & kAttrState) != 0 ? attr.state : q.state;
  if ((mask & kAttrCurrentState) != 0 && attr.current_state != q.state) return fail(Errc::kInvalid);
  const std::uint32_t given = mask & ~std::uint32_t{kAttrState};
  if (to == QpState::kReset || to == QpState::kErr) {
    const bool exists = to == QpState::kReset || q.state != QpState::kReset;
    if (!exists || given != 0) return fail(Errc::kInvalid);
    return {};
  }
  for (const Transition& t : transitions_of(q.type)) {
    if (t.from != q.state || t.to != to) continue;
    if ((given & t.required) != t.required || (given & ~(t.required | t.optional)) != 0)
      return fail(Errc::kInvalid);
    return {};
  }
  return fail(Errc::kInvalid);
}

Outcome<void> check_values(const Engine& e, const QpAttr& a, std::uint32_t mask) {
  if ((mask & kAttrMtu) != 0 && (a.mtu < 256 || a.mtu > 4096 || a.mtu % 4 != 0)) return fail(Errc::kInvalid);
  if ((mask & kAttrPath) != 0 && (a.path.v >= e.paths.size() || a.service_level >= kServiceLevels))
    return fail(Errc::kInvalid);
  if ((mask & kAttrMaxRdAtomic) != 0 && a.max_rd_atomic > 128) return fail(Errc::kInvalid);
  if ((mask & kAttrMaxDestRdAtomic) != 0 && a.max_dest_rd_atomic > 128) return fail(Errc::kInvalid);
  if ((mask & kAttrTimeout) != 0 && a.timeout > 31) return fail(Errc::kInvalid);
  if ((mask & kAttrRetryCount) != 0 && a.retry_count > 7) return fail(Errc::kInvalid);
  if ((mask & kAttrRnrRetry) != 0 && a.rnr_retry > 7) return fail(Errc::kInvalid);
  if ((mask & kAttrMinRnrTimer) != 0 && a.min_rnr_timer > 31) return fail(Errc::kInvalid);
  if ((mask & kAttrState) != 0 && a.state == QpState::kRts && !mode_known(a.mode))
    return fail(Errc::kUnsupported);
  const bool connects = (mask & kAttrState) != 0 && (a.state == QpState::kRtr || a.state == QpState::kRts);
  if (connects && a.controller != kDefaultController && a.controller >= controllers().size())
    return fail(Errc::kUnsupported);
  return {};
}

std::uint8_t ring_mask(std::uint8_t entries) {
  std::uint32_t size = 1;
  while (size < entries) size *= 2;
  return static_cast<std::uint8_t>(size - 1);
}

void reset(Engine& e, QueuePair& q) {
  ColdQueuePair& c = e.cold(q);
  if (q.state != QpState::kReset) rc_release(e, q);
  rc_forget_control(e, q);
  const Qpn qpn = q.qpn;
  for (const CqId cq : {c.init.send_cq, c.init.recv_cq}) e.cqs[cq.v]->forget(qpn);
  const auto kept = static_cast<std::uint8_t>(q.flags & (kInUse | kQueued));
  const PdId pd = q.pd;
  const QpType type = q.type;
  q = QueuePair{};
  q.qpn = qpn;
  q.flags = kept;
  q.pd = pd;
  q.type = type;
  ColdQueuePair fresh;
  fresh.init = c.init;
  fresh.sq = std::move(c.sq);
  fresh.sq_sges = std::move(c.sq_sges);
  fresh.sq_operands = std::move(c.sq_operands);
  fresh.rq = std::move(c.rq);
  fresh.rq_sges = std::move(c.rq_sges);
  fresh.receive_pd = c.receive_pd;
  fresh.sq_mask = c.sq_mask;
  fresh.rq_mask = c.rq_mask;
  c = std::move(fresh);
  e.keys.unbind_all(qpn);
}

void to_rtr(Engine& e, QueuePair& q, const QpAttr& a, Time now) {
  ColdQueuePair& c = e.cold(q);
  q.path = a.path;
  q.level = a.service_level;
  q.mtu = static_cast<std::uint16_t>(q.type == QpType::kUd ? e.config.port_mtu : a.mtu);
  q.remote = a.dest_qpn;
  q.requests.expected = Seq::start(a.rq_psn);
  q.served.start(Seq::start(a.rq_psn));
  if (q.type != QpType::kRc) return;
  c.response_next = Seq::start(a.rq_psn);
  if (e.config.rto == Rto::kFloored) c.round_trip.presume(e.config.rto_initial);
  c.served_mask = ring_mask(a.max_dest_rd_atomic);
  c.served = std::make_unique<ReadServed[]>(static_cast<std::size_t>(c.served_mask) + 1);
  congestion_start(e, q, a.controller, now);  // READ responses may be all that it ever sends
}

void to_rts(Engine& e, QueuePair& q, const QpAttr& a, Time now) {
  ColdQueuePair& c = e.cold(q);
  q.tx_mode = static_cast<std::uint8_t>(a.mode);
  q.requests_out.start(Seq::start(a.sq_psn));
  c.post_seq = c.post_response = Seq::start(a.sq_psn);
  q.requests_out.progress = now;
  if (q.type != QpType::kRc) return;
  c.responses.expected = Seq::start(a.sq_psn);
  c.issued_mask = ring_mask(a.max_rd_atomic);
  c.issued = std::make_unique<ReadIssued[]>(static_cast<std::size_t>(c.issued_mask) + 1);
  if (q.tx_dialect().names_messages) c.sq_msn = std::make_unique<std::uint32_t[]>(std::size_t{c.sq_mask} + 1);
  congestion_start(e, q, a.controller, now);
}

void store(QpAttr& to, const QpAttr& a, std::uint32_t mask) {
  if ((mask & kAttrQkey) != 0) to.qkey = a.qkey;
  if ((mask & kAttrPath) != 0) {
    to.path = a.path;
    to.service_level = a.service_level;
  }
  if ((mask & kAttrMtu) != 0) to.mtu = a.mtu;
  if ((mask & kAttrTimeout) != 0) to.timeout = a.timeout;
  if ((mask & kAttrRetryCount) != 0) to.retry_count = a.retry_count;
  if ((mask & kAttrRnrRetry) != 0) to.rnr_retry = a.rnr_retry;
  if ((mask & kAttrRqPsn) != 0) to.rq_psn = {a.rq_psn.v & kPsnMask};
  if ((mask & kAttrSqPsn) != 0) to.sq_psn = {a.sq_psn.v & kPsnMask};
  if ((mask & kAttrMaxRdAtomic) != 0) to.max_rd_atomic = a.max_rd_atomic;
  if ((mask & kAttrMaxDestRdAtomic) != 0) to.max_dest_rd_atomic = a.max_dest_rd_atomic;
  if ((mask & kAttrMinRnrTimer) != 0) to.min_rnr_timer = a.min_rnr_timer;
  if ((mask & kAttrDestQpn) != 0) to.dest_qpn = {a.dest_qpn.v & kPsnMask};
  if ((mask & kAttrAccess) != 0) to.access = a.access;
}

// Attributes that only SQD may change: nothing may be on its way that was counted under the old ones.
Outcome<void> check_drained(const Engine& e, const QueuePair& q, std::uint32_t mask) {
  if ((mask & (kAttrPath | kAttrMaxRdAtomic | kAttrMaxDestRdAtomic)) == 0) return {};
  const bool responding = e.owes_responses(q) || q.served.outstanding() || q.requests.held > 0;
  if (!rc_drained(q) || responding) return fail(Errc::kBusy);
  return {};
}

void apply_drained(Engine& e, QueuePair& q, const QpAttr& a, std::uint32_t mask) {
  ColdQueuePair& c = e.cold(q);
  if ((mask & kAttrPath) != 0) {
    e.leave_path(q);
    q.path = a.path;
    q.level = static_cast<std::uint8_t>((q.level & kEchoOwed) | a.service_level);
  }
  if ((mask & kAttrMaxRdAtomic) != 0) {
    c.issued_mask = ring_mask(a.max_rd_atomic);
    c.issued = std::make_unique<ReadIssued[]>(static_cast<std::size_t>(c.issued_mask) + 1);
    c.issued_head = c.issued_tail = 0;
  }
  if ((mask & kAttrMaxDestRdAtomic) != 0) {
    c.served_mask = ring_mask(a.max_dest_rd_atomic);
    c.served = std::make_unique<ReadServed[]>(static_cast<std::size_t>(c.served_mask) + 1);
    c.served_head = c.served_tail;
  }
}

}  // namespace

bool rc_drained(const QueuePair& q) {
  return q.sq_head == q.sq_send && q.send_offset == 0 && !q.requests_out.outstanding() &&
         q.reads_outstanding == 0;
}

void rc_check_drained(Engine& e, QueuePair& q) {
  if ((q.rx_flags & kDrainNotify) == 0 || !rc_drained(q)) return;
  q.rx_flags &= static_cast<std::uint8_t>(~kDrainNotify);
  e.raise({DeviceEventKind::kSqDrained, {}, q.qpn});
}

Outcome<void> rc_modify(Engine& e, QueuePair& q, const QpAttr& attr, std::uint32_t mask, Time now) {
  if (auto ok = check_mask(q, attr, mask); !ok) return ok;
  if (auto ok = check_values(e, attr, mask); !ok) return ok;
  const QpState from = q.state;
  const QpState to = (mask & kAttrState) != 0 ? attr.state : from;
  if (to == QpState::kReset) {
    reset(e, q);
    return {};
  }
  if (to == QpState::kErr) {
    rc_enter_error(e, q);
    return {};
  }
  const bool draining = from == QpState::kSqd && to == QpState::kSqd;
  if (draining) {
    if (auto ok = check_drained(e, q, mask); !ok) return ok;
    apply_drained(e, q, attr, mask);
  }
  ColdQueuePair& c = e.cold(q);
  store(c.attr, attr, mask);
  q.access = c.attr.access;
  if (to == QpState::kRtr || from == QpState::kRtr) c.attr.controller = attr.controller;
  if (from == QpState::kInit && to == QpState::kRtr) to_rtr(e, q, c.attr, now);
  if (from == QpState::kRtr && to == QpState::kRts) {
    // Nothing is recovered in UC and UD, so there is no mode to choose.
    c.attr.mode = q.type == QpType::kRc ? attr.mode : wire::Mode::kRoce;
    to_rts(e, q, c.attr, now);
  }
  q.state = to;
  c.attr.state = to;
  if (from == QpState::kRts && to == QpState::kSqd) {
    if ((mask & kAttrSqdNotify) != 0 && attr.sqd_notify) q.rx_flags |= kDrainNotify;
    rc_check_drained(e, q);
  }
  if ((from == QpState::kSqd || from == QpState::kSqe) && to == QpState::kRts) {
    q.rx_flags &= static_cast<std::uint8_t>(~kDrainNotify);
    rc_complete_requests(e, q, now);  // local requests that were posted meanwhile
  }
  return {};
}

}  // namespace weft
