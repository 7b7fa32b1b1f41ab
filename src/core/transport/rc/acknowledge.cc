// ACK, NAK and READ ACK in; completion of requests (docs/protocol/reliable.md#acknowledgements; IRN §3.1).
//
// In roce one cumulative number covers requests and READ responses, so an ACK that lies beyond an
// unanswered READ means that its responses were lost (implied NAK). In irn requests and responses
// are acknowledged apart, and a READ is complete when its last response is here.
#include "core/transport/rc/acknowledge.h"

#include <algorithm>

#include "core/transport/congestion.h"
#include "core/transport/engine.h"
#include "core/transport/rc/attributes.h"
#include "core/transport/rc/control.h"
#include "core/transport/rc/failure.h"
#include "core/transport/rc/opcodes.h"
#include "core/transport/rc/read_responder.h"
#include "core/transport/rc/report.h"
#include "core/transport/rc/requester.h"
#include "core/transport/rc/timers.h"

namespace weft {
namespace {

bool is_read(const SendWqe& w) { return has_response(w.opcode); }

WcOpcode wc_opcode(const SendWqe& w) {
  switch (w.opcode) {
    case WrOpcode::kWrite:
      return (w.flags & kSendAtomicWrite) != 0 ? WcOpcode::kAtomicWrite : WcOpcode::kWrite;
    case WrOpcode::kWriteImm:
      return WcOpcode::kWrite;
    case WrOpcode::kRead:
      return WcOpcode::kRead;
    case WrOpcode::kCompareSwap:
      return WcOpcode::kCompareSwap;
    case WrOpcode::kFetchAdd:
      return WcOpcode::kFetchAdd;
    case WrOpcode::kBindWindow:
      return WcOpcode::kBindWindow;
    case WrOpcode::kLocalInvalidate:
      return WcOpcode::kLocalInvalidate;
    default:
      return WcOpcode::kSend;
  }
}

void on_rnr(Engine& e, QueuePair& q, const wire::Header& h, Time now) {
  e.counters.add(Counter::nak_rnr);
  ColdQueuePair& c = e.cold(q);
  if (q.has(kRnrWaiting) || (q.rx_flags & kSendStopped) != 0) return;
  if (c.attr.rnr_retry != 7 && q.rnr_retries >= c.attr.rnr_retry) {
    rc_fail_in_order(e, q, WcStatus::kRnrRetryExceeded, rc_slot_of(e, q, q.requests_out.una), now);
    return;
  }
  if (q.rnr_retries < UINT8_MAX) ++q.rnr_retries;
  q.retries = 0;  // the peer is there: what goes unanswered from here on counts anew
  q.set(kRnrWaiting);
  c.rnr_until = now.after(wire::rnr_delay(h.syndrome));
  q.requests_out.nxt = q.requests_out.una;
  q.requests_out.probe = Probe::kNone;
  rc_rewind(e, q);
  e.arm(q, c.rnr_until);
}

// A NACK for packets of either sender. `refused`: the peer has no receive for the oldest, so all that is
// named goes again anyway. The NACK tells what need not, and of no loss.
void on_nack(Engine& e, QueuePair& q, Sending half, const Report& report, bool names, Time now,
             bool refused = false) {
  if (refused) half.loss.nack_threshold = LossContext::kNoRecovery;
  const bool recovering = half.s.repair != Repair::kNone;
  const Duration rtt = half.nack(report.nack(half.s.una), names, now);
  if (!controlled(q)) return;
  if (rtt.ps != 0) congestion_acked(e, q, 0, rtt, now);
  if (!recovering && half.s.repair != Repair::kNone) congestion_lost(e, q, now, false);
}

void on_sequence_nak(Engine& e, QueuePair& q, const Report& report, bool moved, Time now) {
  e.counters.add(Counter::nak_sequence);
  SendStream& s = q.requests_out;
  if (!s.outstanding()) return;
  if (!q.tx_dialect().own_timeouts) {
    if (s.rewound() && s.nxt == s.una) return;
    if (!moved) {
      if (e.exhausted(q)) {
        rc_fail(e, q, WcStatus::kRetryExceeded, rc_slot_of(e, q, s.una), now);
        return;
      }
      ++q.retries;
    }
  }
  const Seq before = s.nxt;
  on_nack(e, q, e.requests(q), report, q.tx_dialect().ack_form != AckForm::kPlain, now, q.has(kRnrWaiting));
  if (s.nxt != before || !q.tx_dialect().places_itself) rc_rewind(e, q);
}

// A NACK that newer ACKs overtook: its expected number is old, but what it says of its trigger still counts.
bool overtaken_nack(const SendStream& s, const wire::Header& h, const Report& report) {
  if (dialect(h.mode).ack_form == AckForm::kPlain || h.syndrome != wire::kSyndromeNakSequence) return false;
  return report.trigger > s.una && report.trigger < s.max;
}

void on_error_nak(Engine& e, QueuePair& q, std::uint8_t syndrome, std::uint16_t slot, Time now) {
  e.counters.add(Counter::nak_error);
  WcStatus status = WcStatus::kRemoteOperation;
  if (syndrome == wire::kSyndromeNakInvalid) status = WcStatus::kRemoteInvalidRequest;
  if (syndrome == wire::kSyndromeNakAccess) status = WcStatus::kRemoteAccess;
  rc_fail_in_order(e, q, status, slot, now);
}

}  // namespace

void rc_advance(Engine& e, QueuePair& q, Seq to, Time now, bool ours) {
  SendStream& s = q.requests_out;
  const std::uint64_t acked = to - s.una;
  if (acked == 0) return;
  CHECK_OP(to.v, <=, s.max.v);
  ColdQueuePair& c = e.cold(q);
  if (q.tx_dialect().response_stream && c.issued_head != c.issued_tail) {
    // The oldest READ's request has arrived only now: its answers are not late yet.
    const Seq request = c.issued[c.issued_head & c.issued_mask].request;
    if (request >= s.una && request < to) {
      c.read_base = now;
      c.read_backoff = 0;
    }
  }
  q.retries = 0;
  q.rnr_retries = 0;
  std::uint64_t charged = c.post_charged;
  while (q.sq_acked != q.sq_tail) {
    const SendWqe& w = e.send_wqe(c, q.sq_acked);
    if (w.first + w.packets > to || (is_local(w.opcode) && !w.executed)) {
      charged =
          w.charged_before + (is_read(w) ? 0 : e.charge(w.length, q.mtu, to > w.first ? to - w.first : 0));
      break;
    }
    ++q.sq_acked;
  }
  if (s.nxt < to) {
    q.sq_send = q.sq_acked;
    q.send_offset = 0;
    if (q.sq_send != q.sq_tail)
      q.send_offset = static_cast<std::uint32_t>(to - e.send_wqe(c, q.sq_send).first);
  }
  Sending half = e.requests(q, c);
  const Duration rtt = half.acknowledge(to, now);
  half.settle(charged);
  if (controlled(q)) congestion_acked(e, q, ours ? acked : 0, rtt, now);
  e.disarm_if_quiet(q);
}

bool rc_acknowledge(Engine& e, QueuePair& q, Seq to, Time now) {
  SendStream& s = q.requests_out;
  to = std::min(to, s.max);
  bool answered = true;
  Seq reach = to;
  // Only a READ that is out, or waits to go out again, can stand in the way.
  if (!q.tx_dialect().response_stream && (q.reads_outstanding != 0 || s.nxt != s.max)) {
    ColdQueuePair& c = e.cold(q);
    for (std::uint16_t i = q.sq_acked; i != q.sq_tail; ++i) {
      const SendWqe& w = e.send_wqe(c, i);
      if (w.first >= to) break;
      if (is_read(w)) {
        reach = std::max(s.una, w.first);
        answered = reach >= to;
        break;
      }
    }
  }
  if (reach > s.una) {
    rc_advance(e, q, reach, now);
    rc_complete_requests(e, q, now);
  }
  return answered;
}

void rc_implied_nak(Engine& e, QueuePair& q, Time now) {
  Sender& s = q.requests_out;
  if (s.rewound()) return;  // an echo of the loss that we are already repairing
  e.counters.add(Counter::implied_nak);
  if (e.exhausted(q)) {
    rc_fail(e, q, WcStatus::kRetryExceeded, rc_slot_of(e, q, s.una), now);
    return;
  }
  ++q.retries;
  LossContext loss = e.loss();
  e.tx_scheme(q).on_nack(loss, s, {s.una, false, {}});
  rc_rewind(e, q);
  s.probes = 0;
  s.timer = now;
}

void rc_complete_requests(Engine& e, QueuePair& q, Time now) {
  ColdQueuePair& c = e.cold(q);
  if (q.sq_send != q.sq_tail && is_local(e.send_wqe(c, q.sq_send).opcode)) rc_run_local(e, q, now);
  // One that has failed is not taken back, though a copy of it may be acknowledged while it waits.
  const bool stopped = (q.rx_flags & kSendStopped) != 0;
  while (q.sq_head != q.sq_acked && !(stopped && q.sq_head == c.stop_slot)) {
    const SendWqe& w = e.send_wqe(c, q.sq_head);
    if (is_read(w) && q.tx_dialect().response_stream &&
        c.responses.expected < w.first_response + Engine::packets_for(w.length, q.mtu)) {
      break;
    }
    if (c.init.signal_all || (w.flags & kSendSignaled) != 0) {
      Completion done;
      done.wr_id = w.wr_id;
      done.opcode = wc_opcode(w);
      done.byte_len = w.length;
      done.qpn = q.qpn;
      e.complete(c.init.send_cq, done, false);
    }
    ++q.sq_head;
  }
  if ((q.rx_flags & kSendStopped) != 0 && q.sq_head == c.stop_slot)
    rc_fail(e, q, c.stop_status, q.sq_head, now);
  if (q.state == QpState::kSqd) rc_check_drained(e, q);
}

void rc_reads_progress(Engine& e, QueuePair& q, Seq reached, Time now) {
  ColdQueuePair& c = e.cold(q);
  c.read_base = now;
  c.read_backoff = 0;
  q.retries = 0;
  q.rx_flags &= static_cast<std::uint8_t>(~kResendRequest);  // it was about to go out in vain
  q.requests_out.progress = now;
  std::uint64_t freed = 0;
  while (c.issued_head != c.issued_tail) {
    const ReadIssued& r = c.issued[c.issued_head & c.issued_mask];
    if (r.end > reached) break;
    freed += (r.end - r.first) * q.mtu;
    ++c.issued_head;
    --q.reads_outstanding;
  }
  if (freed != 0 && !q.tx_dialect().response_stream) e.path_of(q).reads -= freed;
}

void rc_on_acknowledge(Engine& e, QueuePair& q, const wire::Header& h, Time now) {
  if (wire::is_reserved_syndrome(h.syndrome)) return e.counters.add(Counter::drop_malformed);
  if (!q.sends()) {
    e.counters.add(Counter::drop_state);
    return;
  }
  if (((h.bits & wire::kBecn) | (h.ext_flags & wire::kCeEcho)) != 0) congestion_echoed(e, q, now);
  Sender& s = q.requests_out;
  const Report report = rc_report(h, s.una);
  const bool positive = report.positive;
  const Seq to = report.to;
  if (h.syndrome > wire::kSyndromeNakSequence && q.tx_dialect().response_stream && to < s.una) {
    // irn: the READ's request was acknowledged long ago, now answering it failed.
    const ColdQueuePair& c = e.cold(q);
    for (std::uint8_t i = c.issued_head; i != c.issued_tail; ++i) {
      const ReadIssued& r = c.issued[i & c.issued_mask];
      if (r.request == to) return on_error_nak(e, q, h.syndrome, r.slot, now);
    }
    e.counters.add(Counter::drop_stale);
    return;
  }
  if (to < s.una && overtaken_nack(s, h, report)) return on_sequence_nak(e, q, report, true, now);
  if (to > s.max || to < s.una || report.trigger > s.max) {
    e.counters.add(Counter::drop_stale);
    return;
  }
  const bool moved = to > s.una;
  // Either the receiver took the probe and nothing sent before it, or this is the late ACK of the packet's
  // first copy. The ACKs that follow a late one tell the two apart (rc/timers.cc).
  const bool alone = positive && s.probe_taken_alone(to);
  if (!rc_acknowledge(e, q, to, now)) {
    const bool ended = h.syndrome > wire::kSyndromeNakSequence;
    if (q.sends() && ended && s.una == to) {
      on_error_nak(e, q, h.syndrome, rc_slot_of(e, q, to), now);
    } else if (q.sends() && !ended) {
      rc_implied_nak(e, q, now);
    }
    return;
  }
  if (!q.sends()) return;
  if (alone) s.probe = Probe::kAlone;
  if (!positive) {
    if ((h.syndrome & 0xE0U) == wire::kSyndromeRnr) {
      if (q.requests_out.outstanding()) on_rnr(e, q, h, now);
    } else if (h.syndrome == wire::kSyndromeNakSequence) {
      if (to == s.una) on_sequence_nak(e, q, report, moved, now);
    } else {
      if (q.requests_out.outstanding())
        on_error_nak(e, q, h.syndrome, rc_slot_of(e, q, q.requests_out.una), now);
    }
  }
}

void rc_on_read_acknowledge(Engine& e, QueuePair& q, const wire::Header& h, Time now) {
  if (wire::is_reserved_syndrome(h.syndrome)) return e.counters.add(Counter::drop_malformed);
  if (((h.bits & wire::kBecn) | (h.ext_flags & wire::kCeEcho)) != 0) congestion_echoed(e, q, now);
  SendStream& s = q.served;
  const Report report = rc_report(h, s.una);
  const Seq to = report.to;
  if (to > s.max || report.trigger > s.max || (to < s.una && !overtaken_nack(s, h, report))) {
    e.counters.add(Counter::drop_stale);
    return;
  }
  Sending half = e.responses(q);
  const bool silent = s.backoff > kResponderTries;
  if (to > s.una) {
    const std::uint64_t acked = to - s.una;
    const Duration rtt = half.acknowledge(to, now);
    rc_release_served(e, q);
    if (controlled(q)) congestion_acked(e, q, acked, rtt, now);
    e.disarm_if_quiet(q);
  }
  if (h.syndrome == wire::kSyndromeNakSequence && s.outstanding()) {
    e.counters.add(Counter::nak_sequence);
    on_nack(e, q, half, report, true, now);
  }
  // Without tries its timer had nothing to wait for.
  if (silent && s.outstanding()) e.arm(q, rc_deadline(e, q));
  rc_reads_drained(e, q);
}

}  // namespace weft
