// Messages out over the unreliable services (docs/protocol/unreliable.md).
//
// No packet is awaited, sent again or timed: a message is complete when its last packet has left. "Left" is
// when the world has gathered the burst, and by the contract it has when it next calls the Device; so what
// transmit() sent stays unsettled until then, and gather_failed() can still take it back.
//
// A request that cannot be sent is the send queue's error and nobody else's: it completes with its status,
// what was posted after it is flushed, and the queue pair stands in SQE, where it still receives, until it is
// modified to RTS (docs/protocol/verbs.md#states).
//
// UD differs in its header, and in that every message names its own path (ud/requester.cc).
#include "core/transport/uc/requester.h"

#include <algorithm>

#include "core/transport/engine.h"
#include "core/transport/fill.h"
#include "core/transport/rc/acknowledge.h"
#include "core/transport/rc/failure.h"
#include "core/transport/rc/opcodes.h"
#include "core/transport/rc/requester.h"
#include "core/transport/ud/requester.h"

namespace weft {
namespace {

void uc_header(const QueuePair& q, const SendWqe& w, std::uint32_t k, wire::Header& h) {
  const bool first = k == 0;
  const bool last = k + 1 == w.packets;
  const bool write = w.opcode == WrOpcode::kWrite || w.opcode == WrOpcode::kWriteImm;
  const bool imm = last && (w.opcode == WrOpcode::kWriteImm || w.opcode == WrOpcode::kSendImm);
  const std::uint8_t operation =
      write ? write_opcode(first, last, imm) : send_opcode(first, last, imm, false);
  h.opcode = kUcOpcodes | operation;
  h.dest_qp = q.remote;
  h.psn = q.requests_out.nxt.wire();
  if (imm) h.imm = w.imm;
  if (write && first) {
    h.va = w.remote_address;
    h.rkey = w.rkey;
    h.dma_len = w.length;
  }
  if (last && (w.flags & kSendSolicited) != 0 && (!write || imm)) h.bits |= wire::kSolicited;
}

std::uint32_t payload_of(const QueuePair& q, const SendWqe& w) {
  return q.send_offset + 1 == w.packets ? w.length - q.send_offset * q.mtu : q.mtu;
}

// SQD finishes the message that has begun; local requests run when what is before them is settled.
bool may_start(const QueuePair& q, const SendWqe& w) {
  return !is_local(w.opcode) && (q.send_offset != 0 || q.state != QpState::kSqd);
}

// Of the message at sq_send. A queue pair's own path is that of its last burst, or the one it waits for.
const Path& next_path(Engine& e, QueuePair& q) {
  if (q.type != QpType::kUd) return e.path_of(q);
  return e.paths[ud_path(e.send_wqe(e.cold(q), q.sq_send)).v];
}

std::uint64_t cost(const Engine& e, std::uint32_t payload) { return payload + e.config.path_overhead.n; }

void give_back(Engine& e, const PresumedFlights::Flight& f) {
  Path& path = e.paths[f.path.v];
  path.in_flight -= f.bytes;
  e.wake_path(path);  // it may be another than that of the queue pair which is reconciled
}

// The packets of a burst, charged one by one, come back together.
void presume(Engine& e, QueuePair& q, std::uint64_t bytes, Time now) {
  if (e.presumed.full()) give_back(e, e.presumed.pop());
  const Time until = now.after(e.config.presumed_flight);
  e.presumed.push({e.index_of(q), q.path, bytes, until});
  e.arm(q, until);
}

}  // namespace

PathNeed uc_need(Engine& e, QueuePair& q) {
  if (!q.sends() || q.sq_send == q.sq_tail) return PathNeed::kNone;
  const SendWqe& w = e.send_wqe(e.cold(q), q.sq_send);
  if (!may_start(q, w)) return PathNeed::kNone;
  return next_path(e, q).admits(cost(e, payload_of(q, w))) ? PathNeed::kEnough : PathNeed::kTooLittle;
}

bool uc_sendable(Engine& e, QueuePair& q) {
  const PathNeed need = uc_need(e, q);
  // Who already stands in the path's line is called from there.
  return (need == PathNeed::kEnough && e.in_turn(q, next_path(e, q))) ||
         (need != PathNeed::kNone && !q.has(kWaitingPath));
}

namespace {
// The walk over the ring (fill.h).
class MessageSource {
 public:
  MessageSource(Engine& e, QueuePair& q) : e_(e), q_(q), c_(e.cold(q)) {}

  bool next(wire::TxPacket& packet, bool first) {
    if (q_.sq_send == q_.sq_tail) return false;
    w_ = &e_.send_wqe(c_, q_.sq_send);
    if (!may_start(q_, *w_)) return false;
    if (q_.type == QpType::kUd) {
      if (!first && ud_path(*w_) != q_.path) return false;  // a burst has one path
      q_.path = ud_path(*w_);
      if (w_->length > q_.mtu) {
        failed = WcStatus::kLocalLength;
        return false;
      }
    }
    packet = {};
    packet.payload = payload_of(q_, *w_);
    const Path& path = e_.path_of(q_);
    if (!e_.in_turn(q_, path) || !path.admits(cost(e_, packet.payload))) {
      if (first) e_.wait_for_path(q_);
      return false;
    }
    if (q_.type == QpType::kUd) {
      ud_header(e_, q_, *w_, packet.header);
    } else {
      uc_header(q_, *w_, q_.send_offset, packet.header);
    }
    return true;
  }
  std::uint32_t pieces() const { return w_->sge_count; }
  bool gather(const wire::TxPacket& packet, std::uint32_t& segments) {
    if (rc_gather(e_, c_, *w_, q_.sq_send, q_.send_offset * q_.mtu, packet.payload, segments)) return true;
    failed = WcStatus::kLocalProtection;
    return false;
  }
  void left(const wire::TxPacket& packet) {
    if (Path& path = e_.path_of(q_); path.bounded()) {
      path.in_flight += cost(e_, packet.payload);
      charged += cost(e_, packet.payload);
    }
    SendStream& s = q_.requests_out;
    ++s.nxt;
    s.max = s.nxt;
    if (++q_.send_offset == w_->packets) {
      q_.send_offset = 0;
      ++q_.sq_send;
    }
  }

  std::uint64_t charged = 0;  // path bytes of the burst
  WcStatus failed = WcStatus::kSuccess;

 private:
  Engine& e_;
  QueuePair& q_;
  ColdQueuePair& c_;
  const SendWqe* w_ = nullptr;
};
}  // namespace

Filled uc_send(Engine& e, QueuePair& q, Time now, Budget budget) {
  MessageSource source(e, q);
  const Filled filled = fill(e, source, budget);
  if (filled.packets == 0) {
    // Whatever was sent before is settled, so the request that cannot go is the oldest.
    if (source.failed != WcStatus::kSuccess) rc_fail_send_queue(e, q, source.failed);
    return {};
  }
  e.counters.add(Counter::tx_packets, filled.packets);
  if (source.charged != 0) presume(e, q, source.charged, now);
  e.unsettled = e.index_of(q);
  return filled;
}

void uc_settle(Engine& e) {
  QueuePair& q = e.qp(e.unsettled);
  e.unsettled = Engine::kSettled;
  q.requests_out.una = q.requests_out.nxt;
  q.sq_acked = q.sq_send;
  rc_complete_requests(e, q, {});
}

void uc_gather_failed(Engine& e, QueuePair& q, WirePsn psn) {
  if (e.unsettled != e.index_of(q)) return;
  const Seq seq = expand(psn, q.requests_out.una);
  // Messages before the one that failed have left.
  q.sq_send = rc_slot_of(e, q, seq);
  q.send_offset = static_cast<std::uint32_t>(seq - e.send_wqe(e.cold(q), q.sq_send).first);
  uc_settle(e);
  rc_fail_send_queue(e, q, WcStatus::kLocalProtection);
}

void uc_on_timer(Engine& e, QueuePair& q, Time now) {
  while (!e.presumed.empty() && e.presumed.oldest().until <= now) give_back(e, e.presumed.pop());
  if (!e.presumed.empty()) e.arm(q, e.presumed.oldest().until);
}

void uc_release(Engine& e, QueuePair& q) {
  if (e.unsettled == e.index_of(q)) e.unsettled = Engine::kSettled;
  q.requests_out.una = q.requests_out.nxt;
  e.deadlines.remove(e.index_of(q));
  e.presumed.end(e.index_of(q), [&](const PresumedFlights::Flight& f) { give_back(e, f); });
  if (q.path.v < e.paths.size()) e.leave_path(q);  // a datagram queue pair may never have had one
}

}  // namespace weft
