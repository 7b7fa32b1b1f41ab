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
  return t == kForever ? kNever : q.requests_out.progress.after(t * (std::int64_t{q.retries} + 1));
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

bool few_in_flight(const Engine& e, const SendStream& s) { return s.in_flight() <= e.config.rto_low_packets; }

void request_timeout(Engine& e, QueuePair& q, Time now) {
  Sending half = e.requests(q);
  half.strike(q.tx_dialect().own_timeouts && few_in_flight(e, half.s), now);
  half.resend();
  if (half.s.nxt == half.s.una) rc_rewind(e, q);
  if (controlled(q)) congestion_timed_out(e, q, half.s, now);
}

void response_timeout(Engine& e, QueuePair& q, Time now) {
  Sending half = e.responses(q);
  half.strike(few_in_flight(e, half.s), now);
  if (half.s.backoff <= kResponderTries) {
    half.resend();
    if (controlled(q)) congestion_timed_out(e, q, half.s, now);
    return;
  }
  // Silent from now on; credit and bitmap are for others. A refusal that waited for the answers ends it here.
  release_block(e.pool, half.s.block);
  half.s.flags = 0;
  rc_answers_given_up(e, q);
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
      at = std::min(q.requests_out.timer.after(e.retransmission_timeout(q, q.requests_out)),
                    charge_deadline(e, q));
    } else if (e.verbs_timeout(q) != kForever) {
      at = q.requests_out.timer.after(e.verbs_timeout(q));
    }
  }
  if (!q.has(kRnrWaiting) && read_waiting(e, q)) {
    at = std::min({at, c.read_base.after(read_timeout(e, q)), charge_deadline(e, q)});
  }
  if (q.rx_dialect().response_stream && q.served.outstanding() && q.served.backoff <= kResponderTries) {
    at = std::min(at, q.served.timer.after(e.retransmission_timeout(q, q.served)));
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
      e.requests(q).give_credit_back();
      q.requests_out.progress = q.requests_out.timer = now;
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
        if (now >= q.requests_out.timer.after(e.retransmission_timeout(q, q.requests_out)))
          request_timeout(e, q, now);
      } else if (e.verbs_timeout(q) != kForever && now >= q.requests_out.timer.after(e.verbs_timeout(q))) {
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
      now >= q.served.timer.after(e.retransmission_timeout(q, q.served)))
    response_timeout(e, q, now);
}

void rc_forgive(Engine& e, QueuePair& q, Time now) {
  if (!q.receives()) return;
  for (Sender* s : {&q.requests_out, &q.served}) s->timer = s->progress = now;
  e.cold(q).read_base = now;
}

}  // namespace weft
