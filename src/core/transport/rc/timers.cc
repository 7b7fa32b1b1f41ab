// Time-outs (docs/protocol/reliable.md#time-outs-and-retries, irn.md#retransmission-time-outs; IRN §3.1).
//
//   roce   The verbs `timeout`. It goes back to una and costs one of retry_cnt. Before that, with
//   `tail_probe`,
//          the oldest packet alone goes out once more after a measured time, to ask: an ACK was lost, or the
//          end of a message, or the NAK that a receiver gives once only. This costs nothing.
//   irn    RTO_low with few packets in flight, RTO_high otherwise, doubling: these only resend.
//          Where they follow the path (Rto::kFloored), one that strikes before a round trip is known resends
//          the oldest packet only, and one that was too short stays longer until the next is timed.
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

// roce: when to ask for an ACK.
Time probe_deadline(Engine& e, const QueuePair& q) {
  const SendStream& s = q.requests_out;
  const ColdQueuePair& c = e.cold(q);
  if (e.config.tail_probe.ps == 0 || !c.round_trip.measured() || s.una == s.nxt) return kNever;
  return (q.probes == 0 ? q.rto_base : std::max(q.rto_base, c.probed_at)).after(e.probe_timeout(q));
}

// roce: the probe was taken alone, and the silence after it says that no more ACKs were on their way.
bool confirmed_alone(const SendStream& s) { return (s.flags & kAlone) != 0 && s.nxt == s.widen(s.lost); }

void go_back(Engine& e, QueuePair& q, Time now) {
  LossContext loss = e.loss();
  e.tx_scheme(q).on_nack(loss, q.requests_out, {q.requests_out.una, false, {}});
  rc_rewind(e, q);
  q.rto_base = now;
  if (controlled(q)) congestion_lost(e, q, now, false);
}

Time roce_deadline(Engine& e, const QueuePair& q) {
  const Duration timeout = e.verbs_timeout(q);
  return timeout == kForever ? kNever : q.rto_base.after(timeout);
}

void request_timeout(Engine& e, QueuePair& q, Time now) {
  SendStream& s = q.requests_out;
  if (s.backoff > 0) give_credit_back(e, q, e.cold(q).acked_charged, e.cold(q).sent_charged);
  LossContext loss = e.loss();
  loss.round_trip_known = !e.guesses(q);
  if (q.tx_dialect().own_timeouts) {
    e.counters.add(s.in_flight() <= e.config.rto_low_packets ? Counter::timeout_low : Counter::timeout_high);
  } else {
    e.counters.add(Counter::timeout_high);
  }
  e.tx_scheme(q).on_timeout(loss, s);
  // Once in a silence: what follows says the same again. A guess says nothing.
  if (s.backoff == 0 && loss.round_trip_known) e.path_of(q).shrink();
  if (s.nxt == s.una) rc_rewind(e, q);
  if (loss.round_trip_known) q.rx_flags &= static_cast<std::uint8_t>(~kRttPending);
  if (s.backoff < 10) ++s.backoff;
  q.probes = 0;
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
    } else {
      at = std::min(roce_deadline(e, q), probe_deadline(e, q));
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
      } else if (now >= roce_deadline(e, q)) {
        e.counters.add(Counter::retries_charged);
        if (e.exhausted(q)) {
          rc_fail(e, q, WcStatus::kRetryExceeded, rc_slot_of(e, q, q.requests_out.una), now);
          return;
        }
        ++q.retries;
        request_timeout(e, q, now);
      } else if (now >= probe_deadline(e, q) && confirmed_alone(q.requests_out)) {
        go_back(e, q, now);
      } else if (now >= probe_deadline(e, q)) {
        q.requests_out.flags |= kProbeDue;
        c.probed_at = now;
        if (q.probes < UINT8_MAX) ++q.probes;
      }
    }
    if (read_waiting(e, q) && now >= c.read_base.after(read_timeout(e, q))) resend_read(e, q, now);
  }
  if (q.rx_dialect().response_stream && q.served.outstanding() && q.served.backoff <= kResponderTries &&
      now >= c.response_base.after(e.retransmission_timeout(q, q.served))) {
    LossContext loss = e.loss();
    loss.round_trip_known = !e.guesses(q);
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
    if (loss.round_trip_known) c.response_timed_at = kNever;
    ++q.served.backoff;
    c.response_base = now;
    if (controlled(q) && q.served.backoff <= kResponderTries)
      congestion_timed_out(e, q, c.response_base, q.served_progress, now);
  }
  e.make_ready(q);
}

namespace {
// One of its clocks, whose time-out was due at `deadline`, is put to `to` instead.
bool put_forward(Time& clock, Time& forgiven, Time deadline, Time now, Duration stall, Time to) {
  if (deadline == kNever || deadline.after(stall) >= now || clock == forgiven) return false;
  clock = forgiven = to;
  return true;
}
}  // namespace

void rc_forgive(Engine& e, QueuePair& q, Time now, Duration stall) {
  if (!q.receives()) return;
  ColdQueuePair& c = e.cold(q);
  bool any = false;
  const bool reading = read_waiting(e, q);
  if (!q.has(kRnrWaiting) && q.requests_out.outstanding()) {
    const Time due = q.tx_dialect().own_timeouts
                         ? q.rto_base.after(e.retransmission_timeout(q, q.requests_out))
                         : roce_deadline(e, q);
    any = put_forward(q.rto_base, c.forgiven.request, due, now, stall, now) || any;
  }
  if (!q.has(kRnrWaiting) && q.tx_dialect().own_timeouts && (reading || q.requests_out.outstanding())) {
    // The attempt under way starts over, not those before it.
    const Duration spent =
        e.verbs_timeout(q) == kForever ? Duration{} : e.verbs_timeout(q) * std::int64_t{q.retries};
    const Time to{now.ps - spent.ps};
    any = put_forward(q.progress, c.forgiven.charge, charge_deadline(e, q), now, stall, to) || any;
  }
  if (!q.has(kRnrWaiting) && reading)
    any = put_forward(c.read_base, c.forgiven.read, c.read_base.after(read_timeout(e, q)), now, stall, now) ||
          any;
  if (q.rx_dialect().response_stream && q.served.outstanding() && q.served.backoff <= kResponderTries) {
    const Time due = c.response_base.after(e.retransmission_timeout(q, q.served));
    any = put_forward(c.response_base, c.forgiven.response, due, now, stall, now) || any;
  }
  if (any) e.counters.add(Counter::stalls);
}

}  // namespace weft
