// READ responses out (docs/protocol/reliable.md#read-responses; IRN §5.2, §5.4).
//
// Every READ that the peer asked for has a row in the replay ring, always resident.
//
//   roce   A row says which responses [next, end) are owed. A repeated request resets that range. Rows
//          live until they are overwritten; nothing tells us that responses arrived.
//   irn    Responses are a send stream of their own (`served`), with window, SACK and time-out like
//          any other. A row is freed when its last response is acknowledged.
//
// The key is checked again for every packet: rights may have gone since the request came.
#include <algorithm>

#include "core/transport/congestion.h"
#include "core/transport/engine.h"
#include "core/transport/rc/opcodes.h"
#include "core/wire/codec.h"

namespace weft {
namespace {

ReadServed& row(ColdQueuePair& c, std::uint32_t serial) { return c.served[serial & c.served_mask]; }

ReadServed* oldest_owed(ColdQueuePair& c) {
  for (std::uint32_t i = c.served_head; i != c.served_tail; ++i) {
    ReadServed& r = row(c, i);
    if (r.state == ReadState::kActive && r.next < r.end) return &r;
  }
  return nullptr;
}

std::uint64_t window(const Engine& e, const QueuePair& q) {
  return controlled(q) ? congestion_window(e, q, q.requests_out, e.config.bdp_cap) : e.config.bdp_cap;
}

wire::Header response_header(const QueuePair& q, const ReadServed& r, Seq seq, std::uint32_t k, bool first,
                             bool last) {
  wire::Header h;
  h.mode = static_cast<wire::Mode>(q.rx_mode);
  h.dest_qp = q.remote;
  h.psn = seq.wire();
  h.opcode = response_opcode(first, last);
  if (r.kind != ReadKind::kRead) {
    h.opcode = wire::kAtomicAcknowledge;
    h.va = r.value;
  }
  if (q.rx_dialect().names_messages) {
    h.srx_msn = r.msn & kPsnMask;
    h.psn_offset = k;
  }
  if (first || last) h.set_aeth(wire::kSyndromeAck, r.msn);
  return h;
}

}  // namespace

// The row that response number `response` belongs to.
ReadServed* rc_find_served(Engine& e, QueuePair& q, Seq response) {
  ColdQueuePair& c = e.cold(q);
  for (std::uint32_t i = c.served_head; i != c.served_tail; ++i) {
    ReadServed& r = row(c, i);
    if (r.state == ReadState::kActive && response >= r.first && response < r.first + r.packets) return &r;
  }
  return nullptr;
}

void rc_release_served(Engine& e, QueuePair& q) {
  ColdQueuePair& c = e.cold(q);
  std::uint64_t acked = 0;
  while (c.served_head != c.served_tail) {
    ReadServed& r = row(c, c.served_head);
    if (r.state != ReadState::kActive) break;
    const std::uint64_t reached =
        q.served.una > r.first ? std::min<std::uint64_t>(q.served.una - r.first, r.packets) : 0;
    acked = r.charged_before + e.charge(r.length, q.mtu, reached);
    if (reached < r.packets) break;
    r.state = ReadState::kFree;
    ++c.served_head;
  }
  e.responses(q).settle(acked);
}

bool rc_responses_sendable(Engine& e, QueuePair& q) {
  if (!q.rx_dialect().response_stream) return q.responses_owed > 0;
  SendStream& s = q.served;
  if (Seq seq; s.recovering() && e.responses(q).next_repair(seq)) return true;
  if (s.nxt >= e.cold(q).response_next || s.nxt - s.una >= window(e, q)) return false;
  if (in_doubt(s) && s.nxt == s.max) return false;
  // It may have been called, and its requests have gone back into the line for want of more than this takes.
  return s.nxt < s.max || !q.has(kWaitingPath) || e.path_of(q).called == e.index_of(q);
}

bool rc_response_again(Engine& e, QueuePair& q) {
  if (q.rx_dialect().response_stream) return e.responses(q).again();
  const ReadServed* r = oldest_owed(e.cold(q));
  return r != nullptr && r->next < r->sent;
}

PathNeed rc_responses_need(Engine& e, QueuePair& q) {
  const SendStream& s = q.served;
  if (!q.receives() || !q.rx_dialect().response_stream || s.nxt < s.max || in_doubt(s))
    return PathNeed::kNone;
  if (s.nxt >= e.cold(q).response_next || s.nxt - s.una >= window(e, q)) return PathNeed::kNone;
  const ReadServed* r = rc_find_served(e, q, s.nxt);
  CHECK(r != nullptr);
  const std::uint64_t left = r->length - std::min<std::uint64_t>(r->length, (s.nxt - r->first) * q.mtu);
  const std::uint64_t cost = std::min<std::uint64_t>(q.mtu, left) + e.config.path_overhead.n;
  const Path& path = e.path_of(q);
  return path.admits(cost) && e.worth_a_turn(path) ? PathNeed::kEnough : PathNeed::kTooLittle;
}

Filled rc_send_responses(Engine& e, QueuePair& q, Time now, Budget budget) {
  ColdQueuePair& c = e.cold(q);
  Sender& s = q.served;
  const bool stream = q.rx_dialect().response_stream;
  Sending half = e.responses(q);
  const bool was_idle = !s.outstanding();
  const std::size_t most =
      std::min<std::size_t>({budget.packets, e.burst_packets.size(), e.burst_segments.size()});
  std::uint32_t n = 0;
  std::uint32_t frame = 0;
  std::uint32_t total = 0;
  while (n < most) {
    Seq seq;
    ReadServed* r = nullptr;
    bool repair = false;
    if (stream) {
      repair = half.next_repair(seq);
      if (!repair) {
        if (s.nxt < s.max) s.nxt = half.scheme.skip_received(half.loss, s, s.nxt);
        if (s.nxt >= c.response_next || s.nxt - s.una >= window(e, q)) break;
        if (in_doubt(s) && s.nxt == s.max) break;
        seq = s.nxt;
      }
      r = rc_find_served(e, q, seq);
      CHECK(r != nullptr);
    } else {
      r = oldest_owed(c);
      if (r == nullptr) break;
      seq = r->first + r->next;
    }
    const auto k = static_cast<std::uint32_t>(seq - r->first);
    const bool first = k == (stream ? 0 : r->begin);
    const bool last = k + 1 == (stream ? r->packets : r->end);
    if (r->fault != 0) {
      rc_nak_read(e, q, r->fault, stream ? r->request : seq);
      break;
    }
    const std::uint32_t payload = std::min<std::uint32_t>(q.mtu, r->asked - std::min(r->asked, k * q.mtu));
    wire::TxPacket& p = e.burst_packets[n];
    p = {response_header(q, *r, seq, k, first, last), payload, n, 1, false};
    const std::uint32_t bytes = wire::data_packet_bytes(p.header, payload);
    const bool fresh = stream ? seq == s.max : r->next >= r->sent;
    const std::uint64_t cost = payload + e.config.path_overhead.n;
    if (stream && fresh && !(e.in_turn(q, e.path_of(q)) && e.path_of(q).admits(cost))) {
      if (n == 0) e.wait_for_path(q);
      break;
    }
    if (n > 0 && (bytes > frame || total + bytes > budget.bytes)) break;
    p.retransmission = !fresh;
    if (payload > 0) {
      RegionId region;
      std::uint64_t offset = 0;
      const auto denied = e.keys.check_remote(r->rkey, q.pd, q.qpn, kRemoteRead,
                                              r->va + std::uint64_t{k} * q.mtu, payload, region, offset);
      if (denied != KeyTable::Denied::kNo) {
        // What is already in this burst still goes; the NAK follows it and the connection ends.
        rc_nak_read(e, q, wire::kSyndromeNakAccess, stream ? r->request : seq);
        break;
      }
      e.burst_segments[n] = {region, payload, offset};
    } else {
      e.burst_segments[n] = {};
      p.segment_count = 0;
    }
    ++n;
    if (frame == 0) frame = bytes;
    total += bytes;
    if (stream) {
      half.left({seq, 1, cost, repair ? Origin::kRepair : Origin::kNext}, now);
    } else {
      ++r->next;
      r->sent = std::max(r->sent, r->next);
      if (r->next == r->end) {
        --q.responses_owed;
        r->answered = r->answered || r->end == r->packets;
      }
      e.counters.add(Counter::tx_packets);
      if (!fresh) half.count_again();
    }
    if (bytes < frame) break;
  }
  if (stream && n > 0) {
    if (was_idle) {
      half.begin(now);
      s.progress = now;
    }
    e.arm(q, rc_deadline(e, q));
  }
  if (!stream && q.responses_owed == 0) rc_reads_drained(e, q);
  return {n, n};
}

}  // namespace weft
