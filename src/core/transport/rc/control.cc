// ACKs and NAKs out (docs/protocol/reliable.md#acknowledgements, irn.md#acks-and-nacks, IRN §3.1).
//
// They wait in one ring per Device. An ACK is cumulative, so with `ack_coalesce` a queue pair has at
// most one in the ring, stamped with the newest numbers when it leaves; without it, each is stamped
// when it is made. NACKs, and ACKs that echo congestion, always go one by one.
//
// In roce an ACK must not overtake older READ responses: while any are owed, ACK and NAK are held and
// made up for when the last response has left. In irn the responses have their own numbers and only
// an error, which ends the connection, waits for them.
#include "core/transport/rc/control.h"

#include <utility>

#include "core/transport/by_queue_pair.h"
#include "core/transport/congestion.h"
#include "core/transport/engine.h"
#include "core/transport/rc/failure.h"
#include "core/wire/codec.h"

namespace weft {
namespace {

bool push(Engine& e, const ControlEntry& entry) {
  const bool fits = e.control.push(entry);
  if (!fits) e.counters.add(Counter::drop_control_full);
  return fits;
}

bool reads_unfinished(Engine& e, const QueuePair& q) {
  if (!q.rx_dialect().response_stream) return q.responses_owed > 0;
  return q.served.una < e.cold(q).response_next;
}

// srnic: every ACK and NACK names the packet that caused it, and the first one missing apart from it.
void echo(ControlEntry& c, const Echo& trigger, Seq expected) {
  c.psn = trigger.psn;
  c.sack = expected.wire().v;
  c.echo_msn = trigger.msn;
  c.echo_offset = trigger.offset;
}

ControlEntry acknowledgement(Engine& e, const QueuePair& q, Receiving half) {
  ControlEntry c;
  c.qp = e.index_of(q);
  c.psn = (half.r.expected - 1).wire().v;
  c.msn = half.r.msn;
  c.opcode = half.opcode;
  c.syndrome = wire::kSyndromeAck;
  c.mode = half.mode;
  if (dialect(c.mode).ack_form == AckForm::kEcho) {
    const bool requests = &half.r == &q.requests;
    echo(c, requests ? q.last_in_order() : e.cold(q).last_response, half.r.expected);
  }
  return c;
}

bool fatal(std::uint8_t syndrome) { return syndrome > wire::kSyndromeNakSequence; }

void push_nak(Engine& e, QueuePair& q, std::uint8_t syndrome, Seq at) {
  ControlEntry c = acknowledgement(e, q, e.received_requests(q));
  c.syndrome = syndrome;
  c.psn = at.wire().v;
  c.sack = c.psn;
  if (syndrome == wire::kSyndromeNakSequence && dialect(c.mode).ack_form == AckForm::kSack)
    c.ext_flags = wire::kSackNotKept;
  push(e, c);
  if (fatal(syndrome)) rc_enter_error(e, q);
}

void push_nack(Engine& e, QueuePair& q, Receiving half, const wire::Header& trigger, bool kept,
               bool congestion) {
  ControlEntry c = acknowledgement(e, q, half);
  const Seq expected = half.r.expected;
  c.syndrome = wire::kSyndromeNakSequence;
  c.congestion = congestion;
  if (dialect(half.mode).ack_form == AckForm::kEcho) {
    echo(c, echo_of(trigger), expected);
    c.ext_flags = static_cast<std::uint8_t>(kept ? unsigned{wire::kEcxOutOfOrder} : 0U);
    if (kept) c.hole = hole_before(e.pool, half.r, expand(trigger.psn, expected));
  } else {
    c.psn = expected.wire().v;
    c.sack = trigger.psn.v;
    c.ext_flags = static_cast<std::uint8_t>((kept ? 0U : unsigned{wire::kSackNotKept}) |
                                            (congestion ? unsigned{wire::kCeEcho} : 0U));
  }
  push(e, c);
}

// Written where it leaves from. Returns its length.
std::size_t write_header(const QueuePair& q, const ControlEntry& c, wire::TxPacket& packet) {
  packet = {};
  wire::Header& h = packet.header;
  h.opcode = c.opcode;
  h.mode = static_cast<wire::Mode>(c.mode);
  h.dest_qp = q.remote;
  h.psn = {c.psn};
  h.set_aeth(c.syndrome, c.msn);
  const AckForm form = dialect(c.mode).ack_form;
  const bool report = form != AckForm::kPlain && wire::carries_report(h.mode, c.syndrome);
  if (report) {
    h.set_sack({c.sack});
    h.ext_flags = c.ext_flags;
    if (form == AckForm::kEcho) {
      h.set_echo(c.echo_msn, c.echo_offset);
      h.set_hole(c.hole.missing, c.hole.since);
      if (c.congestion) h.ext_flags |= wire::kCeEcho;
    }
  }
  if (c.congestion) h.bits |= wire::kBecn;
  return wire::header_bytes(h, report);
}

}  // namespace

void rc_schedule_ack(Engine& e, QueuePair& q, Receiving half, bool congestion) {
  // Where responses take the requests' numbers, an ACK covers them, too, and waits until they have left.
  if (!dialect(half.mode).response_stream) {
    if (q.responses_owed > 0) {
      q.set(kAckAfterReads);
      if (congestion) q.level |= kEchoOwed;
      return;
    }
    if (take_echo(q)) congestion = true;
  }
  const bool coalesced = e.config.ack_coalesce && !congestion;
  if (coalesced && q.has(half.waiting)) return;
  ControlEntry c = acknowledgement(e, q, half);
  c.coalesced = coalesced;
  c.congestion = congestion;
  if (push(e, c) && coalesced) q.set(half.waiting);
}

void rc_push_cnp(Engine& e, QueuePair& q) {
  ControlEntry c;
  c.qp = e.index_of(q);
  c.opcode = wire::kCnp;  // no AETH; its fields stay zero
  c.congestion = true;
  if (push(e, c)) e.counters.add(Counter::tx_cnp);
}

void rc_repeat_ack(Engine& e, QueuePair& q) {
  if (!reads_unfinished(e, q)) push(e, acknowledgement(e, q, e.received_requests(q)));
}

void rc_withdraw_acks(Engine& e, QueuePair& q, Seq from) {
  if (q.rx_dialect().response_stream) return;
  e.control.each([&](ControlEntry& c) {
    if (c.qp != e.index_of(q) || c.opcode != wire::kAcknowledge) return;
    if (expand({c.psn}, q.requests.expected) >= from) c.coalesced = true;  // void without its mark
  });
  q.clear(kAckQueued);
}

void rc_forget_control(Engine& e, QueuePair& q) {
  e.control.each([&](ControlEntry& c) {
    if (c.qp == e.index_of(q)) c.coalesced = true;  // void without its mark
  });
  q.clear(kAckQueued | kReadAckQueued);
}

void rc_keep(Engine& e, QueuePair& q, Receiving half, const wire::Header& trigger, Seq seq, bool message_end,
             bool congestion) {
  e.counters.add(Counter::rx_out_of_order);
  LossContext loss = e.loss();
  e.schemes[half.mode]->hold(loss, half.r, seq, message_end);
  push_nack(e, q, half, trigger, true, congestion);
}

void rc_decline(Engine& e, QueuePair& q, Receiving half, Arrival why, const wire::Header& trigger,
                bool congestion) {
  e.counters.add(why == Arrival::kPoolEmpty ? Counter::drop_no_block : Counter::drop_out_of_order);
  push_nack(e, q, half, trigger, false, congestion);
}

void rc_ack_duplicate(Engine& e, QueuePair& q, Receiving half, const wire::Header& trigger, bool congestion) {
  // A copy of what is held asks what is missing, as its first copy did.
  if (expand(trigger.psn, half.r.expected) > half.r.expected)
    return push_nack(e, q, half, trigger, true, congestion);
  if (dialect(half.mode).ack_form != AckForm::kEcho) return rc_schedule_ack(e, q, half, congestion);
  ControlEntry c = acknowledgement(e, q, half);
  echo(c, echo_of(trigger), half.r.expected);
  c.ext_flags = wire::kEcxDuplicate;
  c.congestion = congestion;
  push(e, c);
}

void rc_nak(Engine& e, QueuePair& q, std::uint8_t syndrome) {
  const bool wait = reads_unfinished(e, q) && (fatal(syndrome) || !q.rx_dialect().response_stream);
  if (!wait) {
    push_nak(e, q, syndrome, q.requests.expected);
    return;
  }
  ColdQueuePair& c = e.cold(q);
  if (!fatal(c.held_syndrome)) c.held_syndrome = syndrome;
  if (fatal(syndrome)) q.rx_flags |= kReceiveStopped;
}

void rc_nak_read(Engine& e, QueuePair& q, std::uint8_t syndrome, Seq request) {
  rc_raise_fault(e, q, syndrome);
  push_nak(e, q, syndrome, request);
}

void rc_raise_fault(Engine& e, const QueuePair& q, std::uint8_t nak) {
  DeviceEventKind kind = DeviceEventKind::kQpFatal;
  if (nak == wire::kSyndromeNakInvalid) kind = DeviceEventKind::kQpRequestError;
  if (nak == wire::kSyndromeNakAccess) kind = DeviceEventKind::kQpAccessError;
  e.raise({kind, {}, q.qpn});
}

void rc_reads_drained(Engine& e, QueuePair& q) {
  if (reads_unfinished(e, q)) return;
  ColdQueuePair& c = e.cold(q);
  if (q.has(kAckAfterReads)) {
    q.clear(kAckAfterReads);
    rc_schedule_ack(e, q, e.received_requests(q), false);
  }
  if (c.held_syndrome != 0) {
    const std::uint8_t syndrome = c.held_syndrome;
    c.held_syndrome = 0;
    push_nak(e, q, syndrome, q.requests.expected);
  }
}

void rc_answers_given_up(Engine& e, QueuePair& q) {
  ColdQueuePair& c = e.cold(q);
  if (!fatal(c.held_syndrome)) return;
  push_nak(e, q, std::exchange(c.held_syndrome, std::uint8_t{0}), q.requests.expected);
}

namespace {

enum class Taken : std::uint8_t { kVoid, kAsPacket, kNotNow };

// A burst of entries of one queue pair, all of one length but for a shorter last one.
struct ControlBurst {
  std::size_t packets = 0;
  std::size_t frame = 0;
  bool over = false;
  wire::Burst burst;

  Taken take(Engine& e, QueuePair& q, ControlEntry c) {
    if (!q.has(kInUse) || q.state == QpState::kReset) return Taken::kVoid;
    std::uint8_t mark = 0;
    if (c.coalesced) {
      const Receiving half =
          c.opcode == wire::kReadAcknowledge ? e.received_responses(q) : e.received_requests(q);
      mark = half.waiting;
      if (!q.has(mark)) return Taken::kVoid;  // taken back
      if (packets > 0 && q.qpn != burst.qpn) return Taken::kNotNow;
      c = acknowledgement(e, q, half);
    }
    if (packets > 0 && q.qpn != burst.qpn) return Taken::kNotNow;
    const std::size_t size = write_header(q, c, e.burst_packets[packets]);
    if (packets > 0 && size > frame) return Taken::kNotNow;
    q.clear(mark);  // only now does it leave
    burst.qpn = q.qpn;
    burst.path = q.path;
    if (packets == 0) frame = size;
    ++packets;
    e.counters.add(Counter::tx_control);
    over = size < frame || packets == e.burst_packets.size();
    return Taken::kAsPacket;
  }

  wire::Burst done(Engine& e) {
    burst.packets = {e.burst_packets.data(), packets};
    return burst;
  }
};

// Nothing would be sent for it.
bool is_void(Engine& e, const ControlEntry& c) {
  const QueuePair& q = e.qp(c.qp);
  const std::uint8_t mark = c.opcode == wire::kReadAcknowledge ? kReadAckQueued : kAckQueued;
  return !q.has(kInUse) || q.state == QpState::kReset || (c.coalesced && !q.has(mark));
}

}  // namespace

wire::Burst rc_poll_control(Engine& e, Time) {
  ControlBurst b;
  while (!b.over && !e.control.empty()) {
    const ControlEntry& c = e.control.front();
    if (b.take(e, e.qp(c.qp), c) == Taken::kNotNow) break;
    e.control.pop();
  }
  return b.done(e);
}

wire::Burst poll_control(Device& device, Qpn qpn, Time) {
  Engine& e = device.engine();
  if (e.overrun) fail_overrun(e);
  QueuePair* q = e.find(qpn);
  if (q == nullptr) return {};
  ControlBurst b;
  e.control.each([&](ControlEntry& c) {
    if (b.over || c.qp != e.index_of(*q)) return;
    const Taken taken = b.take(e, *q, c);
    b.over = b.over || taken == Taken::kNotNow;
    if (taken == Taken::kAsPacket) c.coalesced = true;  // void without its mark
  });
  // What is void at the head would stay until somebody takes everything.
  while (!e.control.empty() && is_void(e, e.control.front())) e.control.pop();
  return b.done(e);
}

}  // namespace weft
