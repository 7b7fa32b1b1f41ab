// Time-outs (docs/protocol/reliable.md#time-outs-and-retries, irn.md#retransmission-time-outs; IRN §3.1).
//
//   roce   One: the verbs `timeout`. It goes back to una and costs one of retry_cnt.
//   irn    RTO_low with few packets in flight, RTO_high otherwise, doubling: these only resend.
//          retry_cnt is charged once per verbs `timeout` without progress. The same for the responder's
//          READ responses, except that nothing is charged: giving up is the requester's business.
//          A requester whose READ responses stay away sends the READ request again.
//
// Each queue pair has one entry in the deadline heap; which of its timers is due is decided here.
#include <algorithm>

#include "core/transport/congestion.h"
#include "core/transport/engine.h"

namespace weft {
namespace {

bool read_waiting(Engine& e, const QueuePair& q) {
  const ColdQueuePair& c = e.cold(q);
  return q.tx_dialect().response_stream && c.issued_head != c.issued_tail;
}

Time charge_deadline(Engine& e, const QueuePair& q) {
  const Duration t = e.verbs_timeout(q);
  return t == kForever ? kNever : q.progress.after(t * (std::int64_t{q.retries} + 1));
}

Duration read_timeout(Engine& e, const QueuePair& q) {
  SendStream s;  // as many packets in flight as matter: RTO_high
  s.nxt = s.una + e.config.rto_low_packets + 1;
  s.backoff = e.cold(q).read_backoff;
  // One round trip more than the responder's own time-out, which usually repairs it first.
  const Duration t = e.retransmission_timeout(q, s);
  return t == kForever ? t : t * 2;
}

void resend_read(Engine& e, QueuePair& q, Time now) {
  // The oldest READ without all its responses: its request goes out again with its old number. The
  // responder that still holds it resumes after the last acknowledged response.
  ColdQueuePair& c = e.cold(q);
  e.counters.add(Counter::timeout_read);
  const ReadIssued& r = c.issued[c.issued_head & c.issued_mask];
  if (c.read_backoff < 10) ++c.read_backoff;
  c.read_base = now;
  if (r.request >= q.requests_out.una) return;  // not acknowledged either: the request timer has it
  q.rx_flags |= kResendRequest;
}

// What went unanswered twice is on its way no longer, and may be for a peer that is gone: other queue pairs
// of the path get its credit. Sending it again takes none.
void give_credit_back(Engine& e, QueuePair& q, std::uint64_t& acked, std::uint64_t sent) {
  const std::uint64_t freed = sent - acked;
  acked = sent;
  if (freed != 0) e.discharge(e.path_of(q), freed);
}

void request_timeout(Engine& e, QueuePair& q, Time now) {
  SendStream& s = q.requests_out;
  if (s.backoff > 0) give_credit_back(e, q, e.cold(q).acked_charged, e.cold(q).sent_charged);
  LossContext loss = e.loss();
  if (q.tx_dialect().own_timeouts) {
    e.counters.add(s.in_flight() <= e.config.rto_low_packets ? Counter::timeout_low : Counter::timeout_high);
  } else {
    e.counters.add(Counter::timeout_high);
  }
  e.tx_scheme(q).on_timeout(loss, s);
  e.path_of(q).shrink();
  if (s.nxt == s.una) rc_rewind(e, q);
  q.rx_flags &= static_cast<std::uint8_t>(~kRttPending);
  if (s.backoff < 10) ++s.backoff;
  q.rto_base = now;
  if (controlled(q)) congestion_timed_out(e, q, q.rto_base, q.progress, now);
}

}  // namespace

Time rc_deadline(Engine& e, QueuePair& q) {
  if (!q.receives()) return kNever;
  Time at = kNever;
  ColdQueuePair& c = e.cold(q);
  if (q.has(kRnrWaiting)) {
    at = c.rnr_until;
  } else if (q.requests_out.outstanding()) {
    if (q.tx_dialect().own_timeouts) {
      at = std::min(q.rto_base.after(e.retransmission_timeout(q, q.requests_out)), charge_deadline(e, q));
    } else if (e.verbs_timeout(q) != kForever) {
      at = q.rto_base.after(e.verbs_timeout(q));
    }
  }
  if (!q.has(kRnrWaiting) && read_waiting(e, q)) {
    at = std::min({at, c.read_base.after(read_timeout(e, q)), charge_deadline(e, q)});
  }
  if (q.rx_dialect().response_stream && q.served.outstanding() && q.served.backoff <= kResponderTries) {
    at = std::min(at, c.response_base.after(e.retransmission_timeout(q, q.served)));
  }
  return at;
}

void rc_on_timer(Engine& e, QueuePair& q, Time now) {
  if (!q.receives()) return;
  ColdQueuePair& c = e.cold(q);
  if (q.has(kRnrWaiting)) {
    if (now >= c.rnr_until) {
      q.clear(kRnrWaiting);
      c.rnr_until = kNever;
      // What was refused is on its way no longer. Others may hold what the receiver waits for.
      give_credit_back(e, q, c.acked_charged, c.sent_charged);
      q.progress = now;
      q.rto_base = now;
    }
  } else if (q.requests_out.outstanding() || read_waiting(e, q)) {
    const bool own = q.tx_dialect().own_timeouts;
    const Time base = own ? charge_deadline(e, q) : kNever;
    if (own && now >= base) {
      e.counters.add(Counter::retries_charged);
      if (e.exhausted(q)) {
        rc_fail(e, q, WcStatus::kRetryExceeded, q.sq_head, now);
        return;
      }
      ++q.retries;
    }
    if (q.requests_out.outstanding()) {
      if (own) {
        if (now >= q.rto_base.after(e.retransmission_timeout(q, q.requests_out))) request_timeout(e, q, now);
      } else if (e.verbs_timeout(q) != kForever && now >= q.rto_base.after(e.verbs_timeout(q))) {
        e.counters.add(Counter::retries_charged);
        if (e.exhausted(q)) {
          rc_fail(e, q, WcStatus::kRetryExceeded, rc_slot_of(e, q, q.requests_out.una), now);
          return;
        }
        ++q.retries;
        request_timeout(e, q, now);
      }
    }
    if (read_waiting(e, q) && now >= c.read_base.after(read_timeout(e, q))) resend_read(e, q, now);
  }
  if (q.rx_dialect().response_stream && q.served.outstanding() && q.served.backoff <= kResponderTries &&
      now >= c.response_base.after(e.retransmission_timeout(q, q.served))) {
    LossContext loss = e.loss();
    e.counters.add(q.served.in_flight() <= e.config.rto_low_packets ? Counter::timeout_low
                                                                    : Counter::timeout_high);
    if (q.served.backoff > 0) give_credit_back(e, q, c.response_charged_acked, c.response_charged_sent);
    if (q.served.backoff < kResponderTries) {
      e.rx_scheme(q).on_timeout(loss, q.served);
    } else {
      // Silent from now on; credit and bitmap are for others. A refusal that waited for the answers ends it
      // here.
      release_block(e.pool, q.served.block);
      q.served.flags = 0;
      rc_answers_given_up(e, q);
      if (q.state == QpState::kErr) return;
    }
    c.response_timed_at = kNever;
    ++q.served.backoff;
    c.response_base = now;
    if (controlled(q) && q.served.backoff <= kResponderTries)
      congestion_timed_out(e, q, c.response_base, q.served_progress, now);
  }
  e.make_ready(q);
}

void rc_forgive(Engine& e, QueuePair& q, Time now) {
  if (!q.receives()) return;
  ColdQueuePair& c = e.cold(q);
  q.progress = now;
  q.rto_base = now;
  c.read_base = now;
  c.response_base = now;
  q.served_progress = now;
}

}  // namespace weft
