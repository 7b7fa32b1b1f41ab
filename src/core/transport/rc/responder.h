// Requests in: the responder (docs/protocol/reliable.md#checks-of-the-responder, in that order; IRN §5.3).
//
// What a packet does once it is accepted is the same in every mode: place bytes, count the message, complete
// a receive, record a READ. Modes differ in which packets are accepted (the scheme's `classify`) and in where
// their bytes go (rc_locate_next, rc_locate_itself):
//
//   roce   only the expected packet; a message's address comes from its First packet and is carried
//          from packet to packet in the queue pair (inbound_*).
//   irn, srnic
//          any packet inside the window; each says itself where it belongs (RETH in every WRITE,
//          receive number + offset in every SEND). Errors and rights are judged only at the expected
//          number: out of order, whatever cannot be placed is dropped without being recorded, comes
//          again, and is judged then.
//
// Completions and READ execution happen in order: when the expected number has passed a message's
// last packet.
#pragma once
#include <algorithm>

#include "core/transport/engine.h"
#include "core/transport/loss/advance.h"
#include "core/transport/rc/control.h"
#include "core/transport/rc/opcodes.h"
#include "core/transport/sink.h"

namespace weft {

inline constexpr std::uint32_t kLongestMessage = 1U << 31U;

// What became of one packet's bytes.
enum class Placed : std::uint8_t {
  kDone,
  kNoReceive,
  kInvalid,
  kAccess,
  kOperation,
  kWrongLength,  // of the packet
  kLocalLength,
  kLocalFault,
  kSilent
};

// --- rc/responder.cc: what needs no Sink ---
Placed rc_record_read(Engine& e, QueuePair& q, const wire::Header& h,
                      Seq seq);  // irn: row by serial number; roce: next row
void rc_duplicate(Engine& e, QueuePair& q, const wire::Header& h, RcKind kind, Seq seq, bool congestion);
// READs and atomics that `expected` has passed take their turn. True: atomics among them.
bool rc_activate_reads(Engine& e, QueuePair& q);
void rc_complete_receives(Engine& e, QueuePair& q, Seq upto);  // of messages that end before this
// Answers a failure at the expected number.
void rc_refuse(Engine& e, QueuePair& q, Placed v, const wire::Header& h, const RcOpcode& op);
RecvWqe* rc_receive_for(Engine& e, QueuePair& q, std::uint32_t sn,
                        std::uint16_t& slot);  // irn: by receive number

// --- shared_receive.cc ---
// Binds one more receive of the shared queue; false when there is none, or no room for it.
bool rc_take_shared(Engine& e, QueuePair& q);

void rc_fail_receive(Engine& e, QueuePair& q, WcStatus status);  // the oldest one reports it

// Walks `length` bytes at `at` bytes into a list of local pieces: put(region, offset, bytes done, bytes).
// Their keys are judged in `pd`: the queue pair's for what it reads, its receives' for what arrives.
template <class Put>
Placed rc_scatter(Engine& e, PdId pd, const Sge* sges, std::uint32_t count, std::uint64_t at,
                  std::uint32_t length, Put put) {
  std::uint32_t from = 0;
  for (std::uint32_t i = 0; i < count && length > 0; ++i) {
    if (at >= sges[i].length) {
      at -= sges[i].length;
      continue;
    }
    const auto take = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, sges[i].length - at));
    RegionId region;
    std::uint64_t offset = 0;
    if (e.keys.check_local(sges[i].lkey, pd, kLocalWrite, sges[i].address + at, take, region, offset) !=
        KeyTable::Denied::kNo) {
      return Placed::kLocalFault;
    }
    if (!put(region, offset, from, take)) return Placed::kLocalFault;
    from += take;
    length -= take;
    at = 0;
  }
  return length == 0 ? Placed::kDone : Placed::kLocalLength;
}

// Payload bytes of packet `index` into local pieces.
template <Sink S>
Placed rc_scatter_payload(Engine& e, const QueuePair& q, PdId pd, const Sge* sges, std::uint32_t count,
                          std::uint64_t at, std::uint32_t length, std::uint32_t index, S& sink) {
  return rc_scatter(e, pd, sges, count, at, length,
                    [&](RegionId region, std::uint64_t offset, std::uint32_t from, std::uint32_t take) {
                      return sink.place({q.qpn, index, from, take, region, offset});
                    });
}

// Executes the atomics that have become active; what they found goes into their rows. Receives before an
// atomic complete first: their invalidations may concern it. False: one failed, and what is behind it has no
// effect.
template <Sink S>
bool rc_execute_atomics(Engine& e, QueuePair& q, S& sink) {
  ColdQueuePair& c = e.cold(q);
  for (std::uint32_t i = c.served_head; i != c.served_tail; ++i) {
    ReadServed& r = c.served[i & c.served_mask];
    if (r.kind == ReadKind::kRead || r.executed || r.state != ReadState::kActive) continue;
    rc_complete_receives(e, q, r.request);
    if (q.state == QpState::kErr) return false;
    AtomicRequest a{q.qpn, {}, 0, r.kind == ReadKind::kCompareSwap, r.value, r.swap_or_add};
    const bool allowed = e.keys.check_remote(r.rkey, q.pd, q.qpn, kRemoteAtomic, r.va, 8, a.region,
                                             a.offset) == KeyTable::Denied::kNo;
    const AtomicResult result = allowed ? sink.execute(a) : AtomicResult{};
    r.value = result.old_value;
    r.executed = true;
    if (result.ok) continue;
    // The NAK is sent in the answer's place; what comes behind it is not looked at any more.
    r.fault = allowed ? wire::kSyndromeNakOperation : wire::kSyndromeNakAccess;
    q.rx_flags |= kReceiveStopped;
    return false;
  }
  return true;
}

// Checks `claimed` bytes from `va` on, of which this packet's payload are the first, and places these if
// their number `fits`.
template <Sink S>
Placed rc_place_write(Engine& e, QueuePair& q, std::uint64_t va, Key key, std::uint32_t claimed, bool fits,
                      std::uint32_t payload, std::uint32_t index, S& sink) {
  Placement p;
  p.qpn = q.qpn;
  p.packet = index;
  p.length = payload;
  if (claimed > kLongestMessage) return Placed::kInvalid;
  if (claimed != 0 && e.keys.check_remote(key, q.pd, q.qpn, kRemoteWrite, va, claimed, p.region, p.offset) !=
                          KeyTable::Denied::kNo)
    return Placed::kAccess;
  if (!fits) return Placed::kWrongLength;
  return payload == 0 || sink.place(p) ? Placed::kDone : Placed::kOperation;
}

// First and Middle packets carry one MTU, Last ones something.
inline bool rc_fits(const QueuePair& q, RcOpcode op, std::uint32_t payload) {
  return op.last ? payload <= q.mtu && (op.first || payload > 0) : payload == q.mtu;
}

// Where a SEND or WRITE packet belongs.
struct Located {
  RecvWqe* receive = nullptr;  // what a SEND fills, and what the end of a WRITE with immediate consumes
  std::uint16_t slot = 0;      // its place in the receive queue
  bool adds_up = true;         // a WRITE's payload is as long as its place in the message allows
  Key key{};                   // of a WRITE
  std::uint64_t va = 0;
  std::uint32_t claimed = 0;  // bytes from `va` on that must lie in the region, before the first is placed
  std::uint64_t at = 0;       // bytes of the message that come before it
};

// roce: it is the expected packet, and continues what the First packet of its message began (inbound_*).
inline Placed rc_locate_next(Engine& e, QueuePair& q, const wire::Header& h, std::uint32_t payload,
                             const RcOpcode& op, Located& l) {
  const bool write = op.kind == RcKind::kWrite;
  const Inbound kind = write ? Inbound::kWrite : Inbound::kSend;
  if (op.first != (q.inbound == Inbound::kNone) || (!op.first && q.inbound != kind)) return Placed::kInvalid;
  if (write && op.first && (q.access & kRemoteWrite) == 0) return Placed::kInvalid;
  if (!write || op.imm) {
    if ((write || op.first) && q.rq_head == q.rq_tail && !rc_take_shared(e, q)) return Placed::kNoReceive;
    l.slot = q.rq_head;
    l.receive = &e.recv_wqe(e.cold(q), l.slot);
  }
  if (op.first) {
    q.inbound_done = 0;
    if (write) {
      q.inbound_va = h.va;
      q.inbound_key = h.rkey;
      q.inbound_message = h.dma_len;
    }
  }
  l.at = q.inbound_done;
  if (!write) return Placed::kDone;
  const std::uint32_t left = q.inbound_message - q.inbound_done;
  l.adds_up = op.last ? payload == left : payload <= left;
  l.key = q.inbound_key;
  l.va = q.inbound_va + l.at;
  // The whole range, before the first byte (docs/protocol/reliable.md#checks-of-the-responder, check 6).
  l.claimed = op.first ? left : std::min(payload, left);
  return Placed::kDone;
}

// irn, srnic: it may be any packet of the window, and says itself where it belongs.
inline Placed rc_locate_itself(Engine& e, QueuePair& q, const wire::Header& h, std::uint32_t payload,
                               const RcOpcode& op, Located& l) {
  const bool write = op.kind == RcKind::kWrite;
  const bool consumes = !write || op.imm;
  const bool named = q.rx_dialect().names_messages;
  if (op.first != (h.psn_offset == 0) && (consumes || named)) return Placed::kInvalid;
  if (write && (q.access & kRemoteWrite) == 0) return Placed::kInvalid;
  if (consumes) {
    l.receive = rc_receive_for(e, q, h.sn, l.slot);
    if (l.receive == nullptr) return Placed::kNoReceive;
  }
  l.at = std::uint64_t{h.psn_offset} * q.mtu;  // packets before this one were full
  if (!write) return Placed::kDone;
  l.adds_up = named || (op.last ? payload == h.dma_len : payload <= h.dma_len);
  l.key = h.rkey;
  l.va = h.va;
  // irn: the rest of the message, not only this packet: of one that ends outside, nothing is placed.
  // srnic's packets do not know it; each is checked alone.
  l.claimed = named ? payload : h.dma_len;
  return Placed::kDone;
}

// Judges and places a SEND or WRITE packet, in the order of
// docs/protocol/reliable.md#checks-of-the-responder, checks 2 to 9.
template <bool kPlacesItself, Sink S>
Placed rc_place(Engine& e, QueuePair& q, const wire::RxPacket& p, const RcOpcode& op, Seq seq,
                std::uint32_t index, S& sink) {
  const wire::Header& h = p.header;
  const bool write = op.kind == RcKind::kWrite;
  Located l;
  if (const Placed v = kPlacesItself ? rc_locate_itself(e, q, h, p.payload, op, l)
                                     : rc_locate_next(e, q, h, p.payload, op, l);
      v != Placed::kDone)
    return v;
  const bool fits = rc_fits(q, op, p.payload);
  Placed v = Placed::kWrongLength;
  if (write) {
    v = rc_place_write(e, q, l.va, l.key, l.claimed, fits && l.adds_up, p.payload, index, sink);
  } else if (fits) {
    const ColdQueuePair& c = e.cold(q);
    v = rc_scatter_payload(e, q, c.receive_pd, e.recv_sges(c, l.slot), l.receive->sge_count, l.at, p.payload,
                           index, sink);
  }
  if (v != Placed::kDone) return v;
  const auto done = static_cast<std::uint32_t>(l.at) + p.payload;
  if (!kPlacesItself) {
    q.inbound_done = done;
    q.inbound = op.last ? Inbound::kNone : write ? Inbound::kWrite : Inbound::kSend;
  }
  if (op.last && l.receive != nullptr) {
    l.receive->byte_len = done;
    l.receive->imm = h.imm;
    l.receive->end = seq;
    l.receive->flags = static_cast<std::uint8_t>(
        kRecvEnded | (op.imm ? kRecvWithImm : 0) | (op.invalidate ? kRecvInvalidate : 0) |
        (write ? kRecvWriteImm : 0) | ((h.bits & wire::kSolicited) != 0 ? kRecvSolicited : 0));
  }
  return Placed::kDone;
}

template <Sink S>
Placed rc_accept(Engine& e, QueuePair& q, const wire::RxPacket& p, const RcOpcode& op, Seq seq,
                 std::uint32_t index, S& sink) {
  if (op.kind == RcKind::kRead || op.kind == RcKind::kAtomic) return rc_record_read(e, q, p.header, seq);
  return q.rx_dialect().places_itself ? rc_place<true>(e, q, p, op, seq, index, sink)
                                      : rc_place<false>(e, q, p, op, seq, index, sink);
}

template <Sink S>
void rc_on_request(Engine& e, QueuePair& q, std::uint32_t index, const wire::RxPacket& p, const RcOpcode& op,
                   bool congestion, S& sink) {
  const wire::Header& h = p.header;
  const Seq seq = expand(h.psn, q.requests.expected);
  const Dialect& form = q.rx_dialect();
  if (congestion && !form.acks_every_packet) q.level |= kEchoOwed;  // the next ACK carries it, whatever asks
  if (seq == q.requests.expected) {
    const Placed v = rc_accept(e, q, p, op, seq, index, sink);
    if (v != Placed::kDone) return rc_refuse(e, q, v, h, op);
    e.counters.add(Counter::rx_in_order);
    // A refusal that waits behind READ responses is void: what it refused has been taken now.
    if (q.responses_owed > 0) e.cold(q).held_syndrome = 0;
    q.rx_flags &= static_cast<std::uint8_t>(~kNakSent);
    const bool answered = op.kind == RcKind::kRead || op.kind == RcKind::kAtomic;
    if (answered && !form.response_stream) {
      // Its responses use up numbers too, and acknowledge everything before them.
      if (op.kind == RcKind::kAtomic) rc_execute_atomics(e, q, sink);
      q.requests.expected += Engine::packets_for(h.dma_len, q.mtu);
      q.requests.msn = (q.requests.msn + 1) & kPsnMask;
      q.clear(kAckQueued);
      return;
    }
    if (form.ack_form == AckForm::kEcho) q.set_last_in_order(echo_of(h));
    const Advance moved = receive_in_order(e.pool, q.requests, op.last);
    q.requests.msn = (q.requests.msn + moved.messages) & kPsnMask;
    if (moved.messages > 0 &&
        (!q.has(kReadsWaiting) || !rc_activate_reads(e, q) || rc_execute_atomics(e, q, sink)))
      rc_complete_receives(e, q, q.requests.expected);
    if (form.acks_every_packet || (h.bits & wire::kAckReq) != 0)
      rc_schedule_ack(e, q, e.received_requests(q), congestion);
    return;
  }
  LossContext loss = e.loss();
  Arrival arrival = e.rx_scheme(q).classify(loss, q.requests, seq);
  if (arrival == Arrival::kKeep && e.config.strict_write_order && op.kind == RcKind::kWrite) {
    arrival = Arrival::kDecline;  // comes again, and is placed then
    if (q.requests.held == 0) release_block(e.pool, q.requests.block);
  }
  switch (arrival) {
    case Arrival::kDuplicate:
      e.counters.add(Counter::rx_duplicate);
      rc_duplicate(e, q, h, op.kind, seq, congestion);
      break;
    case Arrival::kKeep:
      if (const Placed v = rc_accept(e, q, p, op, seq, index, sink); v == Placed::kDone) {
        rc_keep(e, q, e.received_requests(q), h, seq, op.last, congestion);
      } else {
        e.counters.add(v == Placed::kNoReceive ? Counter::drop_no_receive : Counter::drop_out_of_order);
        if (q.requests.held == 0) release_block(e.pool, q.requests.block);
      }
      break;
    case Arrival::kPoolEmpty:
    case Arrival::kDecline:
      rc_decline(e, q, e.received_requests(q), arrival, h, congestion);
      break;
    case Arrival::kBeyond:
      e.counters.add(Counter::drop_out_of_order);
      break;
    case Arrival::kDrop:
      e.counters.add(Counter::drop_out_of_order);
      if ((q.rx_flags & kNakSent) == 0) {
        q.rx_flags |= kNakSent;
        rc_nak(e, q, wire::kSyndromeNakSequence);
      }
      break;
  }
}

}  // namespace weft
