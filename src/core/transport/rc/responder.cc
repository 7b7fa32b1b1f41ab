// The parts of the responder that move no bytes: rights, receives, READ records, duplicates, refusals.
#include "core/transport/rc/responder.h"

#include "core/transport/rc/control.h"
#include "core/transport/rc/failure.h"
#include "core/transport/rc/read_responder.h"

namespace weft {
namespace {

ReadServed& row(ColdQueuePair& c, std::uint32_t serial) { return c.served[serial & c.served_mask]; }

void fill(const QueuePair& q, ReadServed& r, const wire::Header& h, Seq seq) {
  r.request = seq;
  r.va = h.va;
  r.rkey = h.rkey;
  r.length = r.asked = h.dma_len;
  r.packets = Engine::packets_for(h.dma_len, q.mtu);
  r.msn = h.srx_msn;  // srnic; other modes count for themselves
  r.executed = false;
  r.answered = false;
  r.fault = 0;
  r.kind = ReadKind::kRead;
  if (h.opcode == wire::kReadRequest) return;
  r.kind = h.opcode == wire::kCompareSwap ? ReadKind::kCompareSwap : ReadKind::kFetchAdd;
  r.swap_or_add = h.a;
  r.value = h.b;
}

bool may_read(const QueuePair& q, const wire::Header& h) {
  return (q.access & (h.opcode == wire::kReadRequest ? kRemoteRead : kRemoteAtomic)) != 0;
}

// The memory that it names.
Placed check_read(Engine& e, const QueuePair& q, const wire::Header& h) {
  const bool read = h.opcode == wire::kReadRequest;
  if (read && h.dma_len == 0) return Placed::kDone;
  if (read && h.dma_len > kLongestMessage) return Placed::kInvalid;
  RegionId region;
  std::uint64_t offset = 0;
  if (e.keys.check_remote(h.rkey, q.pd, q.qpn, read ? kRemoteRead : kRemoteAtomic, h.va, read ? h.dma_len : 8,
                          region, offset) != KeyTable::Denied::kNo)
    return Placed::kAccess;
  return read || h.va % 8 == 0 ? Placed::kDone : Placed::kInvalid;
}

// irn: the requester asks, so it lives: what waits long to be sent again, or was given up, goes out once
// more.
void resume_responses(Engine& e, QueuePair& q) {
  if (!q.served.outstanding()) return;
  e.responses(q).resend();
  q.served.backoff = 1;
}

// irn: READs become active in the order of their serial numbers, each taking its response numbers.
void activate(QueuePair& q, ColdQueuePair& c, Engine& e, ReadServed& r) {
  q.rx_flags |= kAnswers;
  r.state = ReadState::kActive;
  r.first = c.response_next;
  if (!q.rx_dialect().names_messages) r.msn = q.requests.msn;
  r.charged_before = c.response_charged;
  c.response_charged += e.charge(r.length, q.mtu, r.packets);
  c.response_next += r.packets;
  ++c.served_tail;
}

// What a request that fails tells its requester, and its receive if it has taken one
// (docs/protocol/verbs.md#faults).
struct Refusal {
  std::uint8_t nak;
  WcStatus receive;
};

constexpr Refusal refusal_of(Placed v) {
  switch (v) {
    case Placed::kAccess:
      return {wire::kSyndromeNakAccess, WcStatus::kLocalAccess};
    case Placed::kOperation:
      return {wire::kSyndromeNakOperation, WcStatus::kLocalAccess};
    case Placed::kLocalFault:
      return {wire::kSyndromeNakOperation, WcStatus::kLocalProtection};
    case Placed::kWrongLength:
    case Placed::kLocalLength:
      return {wire::kSyndromeNakInvalid, WcStatus::kLocalLength};
    default:
      return {wire::kSyndromeNakInvalid, WcStatus::kRemoteInvalidRequest};
  }
}

// Only what fails behind the check for a receive has taken one
// (docs/protocol/reliable.md#checks-of-the-responder), or what breaks into a SEND that has begun.
bool took_receive(const QueuePair& q, Placed v, const wire::Header& h, const RcOpcode& op) {
  if (q.rq_head == q.rq_tail) return false;
  if (v != Placed::kInvalid) return op.kind == RcKind::kSend || op.imm;
  return q.inbound == Inbound::kSend || (op.kind == RcKind::kSend && h.psn_offset != 0);
}

}  // namespace

Placed rc_record_read(Engine& e, QueuePair& q, const wire::Header& h, Seq seq) {
  ColdQueuePair& c = e.cold(q);
  const std::uint32_t rows = c.attr.max_dest_rd_atomic;  // the ring may have more
  if (!q.rx_dialect().response_stream) {
    if (q.inbound != Inbound::kNone || !may_read(q, h) || rows == 0) return Placed::kInvalid;
    const bool full = c.served_tail - c.served_head == rows;
    const ReadServed& oldest = row(c, c.served_head);
    const bool owed = full && oldest.next < oldest.end;
    // The requester may not have more READs than this outstanding. If this one was answered in full once, it
    // has the answers, and asked again only because they were late.
    if (owed && !oldest.answered) return Placed::kInvalid;
    if (const Placed v = check_read(e, q, h); v != Placed::kDone) return v;
    if (owed) --q.responses_owed;
    if (full) ++c.served_head;
    ReadServed& r = row(c, c.served_tail++);
    fill(q, r, h, seq);
    r.first = seq;
    r.begin = r.next = r.sent = 0;
    r.end = r.packets;
    r.msn = (q.requests.msn + 1) & kPsnMask;
    r.state = ReadState::kActive;
    ++q.responses_owed;
    return Placed::kDone;
  }
  // Serial numbers count from zero at connection; widen around the next one to activate.
  const std::int32_t delta = q.rx_dialect().serial_ahead(h.sn, c.served_tail);
  const std::uint32_t serial = c.served_tail + static_cast<std::uint32_t>(delta);
  if (!may_read(q, h) || delta < 0 || static_cast<std::uint32_t>(delta) >= rows) return Placed::kInvalid;
  // The requester has a limited number outstanding: this request tells that rows it would overwrite
  // were answered completely, even if the last READ ACK was lost.
  const bool silent = q.served.backoff > kResponderTries;
  while (serial - c.served_head >= rows) {
    if (c.served_head == c.served_tail) return Placed::kInvalid;
    ReadServed& old = row(c, c.served_head);
    Seq end = old.first + old.packets;
    if (end > q.served.max) return Placed::kInvalid;
    if (end > q.served.una) {
      Sending half = e.responses(q);
      half.pass(half.past_sacked(end));
    }
    rc_release_served(e, q);
  }
  if (const Placed v = check_read(e, q, h); v != Placed::kDone) return v;
  ReadServed& r = row(c, serial);
  fill(q, r, h, seq);
  r.state = ReadState::kWaiting;
  q.set(kReadsWaiting);
  if (silent || in_doubt(q.served)) resume_responses(e, q);
  return Placed::kDone;
}

RecvWqe* rc_receive_for(Engine& e, QueuePair& q, std::uint32_t sn, std::uint16_t& slot) {
  const std::int32_t ahead = q.rx_dialect().serial_ahead(sn, q.recv_sn);
  const auto posted = static_cast<std::uint16_t>(q.rq_tail - q.rq_head);
  if (ahead < 0) return nullptr;
  for (auto bound = posted; ahead >= bound; ++bound) {
    if (!rc_take_shared(e, q)) return nullptr;
  }
  slot = static_cast<std::uint16_t>(q.rq_head + ahead);
  return &e.recv_wqe(e.cold(q), slot);
}

bool rc_activate_reads(Engine& e, QueuePair& q) {
  if (!q.has(kReadsWaiting)) return false;
  ColdQueuePair& c = e.cold(q);
  bool more = false;
  bool atomics = false;
  while (c.served_tail - c.served_head <= c.served_mask) {
    ReadServed& r = row(c, c.served_tail);
    if (r.state != ReadState::kWaiting || r.request >= q.requests.expected) break;
    activate(q, c, e, r);
    more = true;
    atomics = atomics || r.kind != ReadKind::kRead;
  }
  if (more) {
    bool waiting = false;
    for (std::uint32_t i = 0; i <= c.served_mask; ++i)
      waiting = waiting || c.served[i].state == ReadState::kWaiting;
    if (!waiting) q.clear(kReadsWaiting);
  }
  return atomics;
}

void rc_complete_receives(Engine& e, QueuePair& q, Seq upto) {
  if (q.rq_head == q.rq_tail) return;  // the cold part stays cold
  ColdQueuePair& c = e.cold(q);
  while (q.rq_head != q.rq_tail) {
    const RecvWqe& r = e.recv_wqe(c, q.rq_head);
    if ((r.flags & kRecvEnded) == 0 || r.end >= upto) break;
    Completion done;
    done.wr_id = r.wr_id;
    done.opcode = (r.flags & kRecvWriteImm) != 0 ? WcOpcode::kReceiveWriteImm : WcOpcode::kReceive;
    done.flags = (r.flags & kRecvWithImm) != 0 ? kWcWithImm : 0;
    if ((r.flags & kRecvInvalidate) != 0) {
      done.flags = kWcWithInvalidate;
      if (!e.keys.invalidate({r.imm}, q.qpn)) done.status = WcStatus::kRemoteInvalidRequest;
    }
    done.byte_len = r.byte_len;
    done.imm = r.imm;
    done.qpn = q.qpn;
    done.src_qp = q.remote;
    e.complete(c.init.recv_cq, done, (r.flags & kRecvSolicited) != 0);
    ++q.rq_head;
    ++q.recv_sn;
    if (done.status != WcStatus::kSuccess) {
      // The SEND was received, so it is acknowledged; what came behind it was not.
      q.requests.expected = r.end + 1;
      rc_enter_error(e, q);
      return;
    }
  }
}

void rc_duplicate(Engine& e, QueuePair& q, const wire::Header& h, RcKind kind, Seq seq, bool congestion) {
  ColdQueuePair& c = e.cold(q);
  if (kind != RcKind::kRead && kind != RcKind::kAtomic) {
    if (q.rx_dialect().acks_every_packet || (h.bits & wire::kAckReq) != 0 || seq + 1 == q.requests.expected) {
      rc_ack_duplicate(e, q, e.received_requests(q), h, congestion);
    }
    return;
  }
  if (q.rx_dialect().response_stream) {
    rc_ack_duplicate(e, q, e.received_requests(q), h, congestion);
    // Either the ACK of the request was lost, or the requester misses responses. Our own timer is for the
    // latter; only if it has run out already, and waits longer now, is this a reason to start over.
    const SendStream& s = q.served;
    if (in_doubt(s) || (s.backoff > 0 && !s.recovering())) resume_responses(e, q);
    return;
  }
  // roce: a part of a recorded READ is executed again (docs/protocol/reliable.md#repeated-requests).
  for (std::uint32_t i = c.served_head; i != c.served_tail; ++i) {
    ReadServed& r = row(c, i);
    if (seq < r.first || seq >= r.first + r.packets) continue;
    if ((r.kind != ReadKind::kRead) != (kind == RcKind::kAtomic)) break;
    const auto k = static_cast<std::uint32_t>(seq - r.first);
    const std::uint64_t skip = std::uint64_t{k} * q.mtu;
    if (h.va != r.va + skip || h.rkey != r.rkey ||
        h.dma_len > r.length - std::min<std::uint64_t>(skip, r.length))
      break;
    const bool owed = r.next < r.end;
    r.begin = r.next = k;
    r.end = k + Engine::packets_for(h.dma_len, q.mtu);
    r.asked = static_cast<std::uint32_t>(skip) + h.dma_len;
    if (!owed) ++q.responses_owed;
    return;
  }
  e.counters.add(Counter::drop_duplicate_read);
}

void rc_fail_receive(Engine& e, QueuePair& q, WcStatus status) {
  ColdQueuePair& c = e.cold(q);
  Completion failed;
  failed.wr_id = e.recv_wqe(c, q.rq_head).wr_id;
  failed.status = status;
  failed.opcode = WcOpcode::kReceive;
  failed.qpn = q.qpn;
  ++q.rq_head;
  ++q.recv_sn;
  e.complete(c.init.recv_cq, failed, true);
}

void rc_refuse(Engine& e, QueuePair& q, Placed v, const wire::Header& h, const RcOpcode& op) {
  if (v == Placed::kNoReceive) {
    q.rx_flags |= kNakSent;  // what follows is ahead of a packet that was refused, not lost
    rc_nak(e, q, static_cast<std::uint8_t>(wire::kSyndromeRnr | e.cold(q).attr.min_rnr_timer));
    return;
  }
  const Refusal r = refusal_of(v);
  if (took_receive(q, v, h, op)) {
    rc_fail_receive(e, q, r.receive);
  } else {
    rc_raise_fault(e, q, r.nak);
  }
  rc_nak(e, q, r.nak);
}

}  // namespace weft
