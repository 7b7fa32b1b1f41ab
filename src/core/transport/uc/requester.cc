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
#include <algorithm>

#include "core/transport/engine.h"
#include "core/transport/rc/opcodes.h"
#include "core/wire/codec.h"

namespace weft {
namespace {

struct Draft {
  wire::TxPacket packet;
  std::uint32_t bytes = 0;  // frame: headers, payload, pad
};

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

Draft draft(const Engine& e, const QueuePair& q, const SendWqe& w) {
  Draft d;
  wire::Header& h = d.packet.header;
  if (q.type == QpType::kUd) {
    ud_header(e, q, w, h);
  } else {
    uc_header(q, w, q.send_offset, h);
  }
  d.packet.payload = payload_of(q, w);
  d.bytes = wire::data_packet_bytes(h, d.packet.payload);
  return d;
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

Filled uc_send(Engine& e, QueuePair& q, Time now, Budget budget) {
  ColdQueuePair& c = e.cold(q);
  SendStream& s = q.requests_out;
  const std::size_t most = std::min<std::size_t>(budget.packets, e.burst_packets.size());
  std::uint32_t n = 0;
  std::uint32_t segments = 0;
  std::uint32_t frame = 0;
  std::uint32_t total = 0;
  std::uint64_t charged = 0;
  WcStatus failed = WcStatus::kSuccess;
  while (n < most && q.sq_send != q.sq_tail) {
    const SendWqe& w = e.send_wqe(c, q.sq_send);
    if (!may_start(q, w)) break;
    if (q.type == QpType::kUd) {
      if (n > 0 && ud_path(w) != q.path) break;  // a burst has one path
      q.path = ud_path(w);
      if (w.length > q.mtu) {
        failed = WcStatus::kLocalLength;
        break;
      }
    }
    Path& path = e.path_of(q);
    if (!e.in_turn(q, path) || !path.admits(cost(e, payload_of(q, w)))) {
      if (n == 0) e.wait_for_path(q);
      break;
    }
    Draft d = draft(e, q, w);
    if (n > 0 && (d.bytes > frame || total + d.bytes > budget.bytes)) break;
    if (segments + w.sge_count > e.burst_segments.size()) break;
    d.packet.first_segment = segments;
    if (!rc_gather(e, c, w, q.sq_send, q.send_offset * q.mtu, d.packet.payload, segments)) {
      failed = WcStatus::kLocalProtection;
      break;
    }
    d.packet.segment_count = segments - d.packet.first_segment;
    e.burst_packets[n++] = d.packet;
    if (frame == 0) frame = d.bytes;
    total += d.bytes;
    if (path.bounded()) {
      path.in_flight += cost(e, d.packet.payload);
      charged += cost(e, d.packet.payload);
    }
    ++s.nxt;
    s.max = s.nxt;
    if (++q.send_offset == w.packets) {
      q.send_offset = 0;
      ++q.sq_send;
    }
    if (d.bytes < frame) break;
  }
  if (n == 0) {
    // Whatever was sent before is settled, so the request that cannot go is the oldest.
    if (failed != WcStatus::kSuccess) rc_fail_send_queue(e, q, failed);
    return {};
  }
  e.counters.add(Counter::tx_packets, n);
  if (charged != 0) presume(e, q, charged, now);
  e.unsettled = e.index_of(q);
  return {n, segments};
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
