// READ responses in (docs/protocol/reliable.md#read-responses; IRN §5.2).
//
//   roce   Responses carry the numbers of the request, so they come in at una: one ahead of it means
//          that something is missing (implied NAK), one behind is an echo.
//   irn    A receive stream of its own; every response is answered by a READ ACK or READ NACK. A
//          response's number alone says which READ it belongs to and at which offset.
#pragma once
#include <algorithm>

#include "core/transport/loss/advance.h"
#include "core/transport/rc/acknowledge.h"
#include "core/transport/rc/control.h"
#include "core/transport/rc/failure.h"
#include "core/transport/rc/requester.h"
#include "core/transport/rc/responder.h"

namespace weft {

// The issued READ that response number `seq` belongs to.
inline const ReadIssued* rc_find_issued(const ColdQueuePair& c, Seq seq) {
  for (std::uint8_t i = c.issued_head; i != c.issued_tail; ++i) {
    const ReadIssued& r = c.issued[i & c.issued_mask];
    if (seq >= r.first && seq < r.end) return &r;
  }
  return nullptr;
}

// Places one response of READ `r`; false and the queue pair is in error when the sink list refuses it.
template <Sink S>
bool rc_place_response(Engine& e, QueuePair& q, const ReadIssued& r, Seq seq, const wire::RxPacket& p,
                       const RcOpcode& op, std::uint32_t index, Time now, S& sink, bool& fits) {
  ColdQueuePair& c = e.cold(q);
  const SendWqe& w = e.send_wqe(c, r.slot);
  if (op.atomic != is_atomic(w.opcode)) {
    rc_fail_in_order(e, q, WcStatus::kBadResponse, r.slot, now);
    return false;
  }
  if (op.atomic) {
    const auto put = [&](RegionId region, std::uint64_t offset, std::uint32_t from, std::uint32_t take) {
      return sink.place_value({q.qpn, index, from, take, region, offset, p.header.va});
    };
    if (rc_scatter(e, q.pd, e.send_sges(c, r.slot), w.sge_count, 0, 8, put) == Placed::kDone) return true;
    rc_fail_in_order(e, q, WcStatus::kLocalProtection, r.slot, now);
    return false;
  }
  const std::uint64_t at = (std::uint64_t{r.packet} + (seq - r.first)) * q.mtu;
  fits = p.payload == std::min<std::uint64_t>(q.mtu, w.length - std::min<std::uint64_t>(at, w.length));
  if (!fits) return false;
  const Placed v =
      rc_scatter_payload(e, q, q.pd, e.send_sges(c, r.slot), w.sge_count, at, p.payload, index, sink);
  if (v == Placed::kDone) return true;
  rc_fail_in_order(e, q, WcStatus::kLocalProtection, r.slot, now);
  return false;
}

template <Sink S>
void rc_response_roce(Engine& e, QueuePair& q, std::uint32_t index, const wire::RxPacket& p,
                      const RcOpcode& op, Time now, S& sink) {
  SendStream& s = q.requests_out;
  const Seq seq = expand(p.header.psn, s.una);
  if (seq < s.una || seq >= s.max) return e.counters.add(Counter::drop_stale);
  if (!rc_acknowledge(e, q, seq, now)) {
    if (s.rewound()) e.counters.add(Counter::drop_stale);
    rc_implied_nak(e, q, now);
    return;
  }
  // By the request that these numbers belong to, whether or not its latest copy is out: after going back
  // an answer to an earlier copy is as good.
  const std::uint16_t slot = rc_slot_of(e, q, seq);
  if (slot == q.sq_tail) return e.counters.add(Counter::drop_malformed);
  const SendWqe& w = e.send_wqe(e.cold(q), slot);
  if (!has_response(w.opcode)) return e.counters.add(Counter::drop_malformed);
  const ReadIssued r{w.first, w.first + w.packets, w.first, 0, slot};
  bool fits = true;
  if (!rc_place_response(e, q, r, seq, p, op, index, now, sink, fits)) {
    if (!fits) e.counters.add(Counter::drop_malformed);
    return;
  }
  rc_advance(e, q, seq + 1, now, false);
  rc_reads_progress(e, q, seq + 1, now);
  rc_complete_requests(e, q, now);
}

template <Sink S>
void rc_response_irn(Engine& e, QueuePair& q, std::uint32_t index, const wire::RxPacket& p,
                     const RcOpcode& op, bool congestion, Time now, S& sink) {
  ColdQueuePair& c = e.cold(q);
  RecvStream& in = c.responses;
  const Seq seq = expand(p.header.psn, in.expected);
  LossContext loss = e.loss();
  const bool in_order = seq == in.expected;
  const ReadIssued* r = rc_find_issued(c, seq);
  // A READ is executed only after every request before it arrived, so a response acknowledges them, whether
  // or not it can be kept.
  if (r != nullptr && r->request >= q.requests_out.una) {
    rc_advance(e, q, e.requests(q).past_sacked(r->request + 1), now);
    rc_complete_requests(e, q, now);
    if (!q.sends()) return;
  }
  Arrival arrival = Arrival::kKeep;
  if (!in_order) {
    arrival = e.tx_scheme(q).classify(loss, in, seq);
    if (arrival == Arrival::kDuplicate) {
      e.counters.add(Counter::rx_duplicate);
      rc_ack_duplicate(e, q, e.received_responses(q), p.header, congestion);
      return;
    }
    if (arrival == Arrival::kPoolEmpty || arrival == Arrival::kDecline)
      return rc_decline(e, q, e.received_responses(q), arrival, p.header, congestion);
    if (arrival == Arrival::kBeyond) return e.counters.add(Counter::drop_stale);
  }
  bool fits = true;
  if (r == nullptr || !rc_place_response(e, q, *r, seq, p, op, index, now, sink, fits)) {
    if (r == nullptr || !fits) e.counters.add(Counter::drop_malformed);
    if (in.held == 0) release_block(e.pool, in.block);
    return;
  }
  if (in_order) {
    c.last_response = echo_of(p.header);
    receive_in_order(e.pool, in, false);
    rc_schedule_ack(e, q, e.received_responses(q), congestion);
  } else {
    rc_keep(e, q, e.received_responses(q), p.header, seq, false, congestion);
  }
  rc_reads_progress(e, q, in.expected, now);
  rc_complete_requests(e, q, now);
}

template <Sink S>
void rc_on_response(Engine& e, QueuePair& q, std::uint32_t index, const wire::RxPacket& p, const RcOpcode& op,
                    bool congestion, Time now, S& sink) {
  if (q.tx_dialect().response_stream) {
    rc_response_irn(e, q, index, p, op, congestion, now, sink);
  } else {
    rc_response_roce(e, q, index, p, op, now, sink);
  }
}

}  // namespace weft
