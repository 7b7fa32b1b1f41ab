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
#include "core/transport/rc/read_responder.h"

#include <algorithm>

#include "core/transport/congestion.h"
#include "core/transport/engine.h"
#include "core/transport/fill.h"
#include "core/transport/rc/control.h"
#include "core/transport/rc/opcodes.h"
#include "core/transport/rc/timers.h"

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

namespace {
// Answers with numbers of their own: repairs, then what stands at nxt (fill.h). Without such numbers: the
// rows that owe something, from the oldest on.
class AnswerSource {
 public:
  AnswerSource(Engine& e, QueuePair& q, Sending& half, Time now)
      : e_(e), q_(q), c_(e.cold(q)), half_(half), stream_(q.rx_dialect().response_stream), now_(now) {}

  bool next(wire::TxPacket& packet, bool first) {
    if (!(stream_ ? find_numbered() : find_owed())) return false;
    const auto k = static_cast<std::uint32_t>(seq_ - r_->first);
    if (r_->fault != 0) {
      rc_nak_read(e_, q_, r_->fault, stream_ ? r_->request : seq_);
      return false;
    }
    const bool begins = k == (stream_ ? 0 : r_->begin);
    const bool ends = k + 1 == (stream_ ? r_->packets : r_->end);
    const std::uint32_t from = k * q_.mtu;
    const std::uint32_t payload = std::min<std::uint32_t>(q_.mtu, r_->asked - std::min(r_->asked, from));
    const bool fresh = stream_ ? seq_ == half_.s.max : r_->next >= r_->sent;
    packet = {response_header(q_, *r_, seq_, k, begins, ends), payload, 0, 0, !fresh};
    if (!stream_ || !fresh) return true;
    const Path& path = e_.path_of(q_);
    if (e_.in_turn(q_, path) && path.admits(cost(packet))) return true;
    if (first) e_.wait_for_path(q_);
    return false;
  }
  static std::uint32_t pieces() { return 1; }
  bool gather(const wire::TxPacket& packet, std::uint32_t& segments) {
    if (packet.payload == 0) return true;
    const std::uint64_t at = r_->va + (seq_ - r_->first) * q_.mtu;
    RegionId region;
    std::uint64_t offset = 0;
    if (e_.keys.check_remote(r_->rkey, q_.pd, q_.qpn, kRemoteRead, at, packet.payload, region, offset) !=
        KeyTable::Denied::kNo) {
      // What is already in this burst still goes; the NAK follows it and the connection ends.
      rc_nak_read(e_, q_, wire::kSyndromeNakAccess, stream_ ? r_->request : seq_);
      return false;
    }
    e_.burst_segments[segments++] = {region, packet.payload, offset};
    return true;
  }
  void left(const wire::TxPacket& packet) {
    if (stream_) return half_.left({seq_, 1, cost(packet), origin_}, now_);
    ++r_->next;
    r_->sent = std::max(r_->sent, r_->next);
    if (r_->next == r_->end) {
      --q_.responses_owed;
      r_->answered = r_->answered || r_->end == r_->packets;
    }
    e_.counters.add(Counter::tx_packets);
    if (packet.retransmission) half_.count_again();
  }

 private:
  bool find_numbered() {
    Sender& s = half_.s;
    if (Seq lost; half_.next_repair(lost)) {
      origin_ = Origin::kRepair;
      seq_ = lost;
    } else {
      if (s.nxt < s.max) s.nxt = half_.scheme.skip_received(half_.loss, s, s.nxt);
      if (s.nxt >= c_.response_next || s.nxt - s.una >= window(e_, q_)) return false;
      if (in_doubt(s) && s.nxt == s.max) return false;
      origin_ = Origin::kNext;
      seq_ = s.nxt;
    }
    r_ = rc_find_served(e_, q_, seq_);
    CHECK(r_ != nullptr);
    return true;
  }
  bool find_owed() {
    r_ = oldest_owed(c_);
    if (r_ != nullptr) seq_ = r_->first + r_->next;
    return r_ != nullptr;
  }
  std::uint64_t cost(const wire::TxPacket& packet) const {
    return packet.payload + e_.config.path_overhead.n;
  }

  Engine& e_;
  QueuePair& q_;
  ColdQueuePair& c_;
  Sending& half_;
  const bool stream_;
  const Time now_;
  // Of the packet that was named last.
  ReadServed* r_ = nullptr;
  Seq seq_{};
  Origin origin_ = Origin::kNext;
};
}  // namespace

Filled rc_send_responses(Engine& e, QueuePair& q, Time now, Budget budget) {
  Sending half = e.responses(q);
  Sender& s = half.s;
  const bool was_idle = !s.outstanding();
  AnswerSource source(e, q, half, now);
  const Filled filled = fill(e, source, budget);
  if (!q.rx_dialect().response_stream) {
    if (q.responses_owed == 0) rc_reads_drained(e, q);
  } else if (filled.packets > 0) {
    if (was_idle) {
      half.begin(now);
      s.progress = now;
    }
    e.arm(q, rc_deadline(e, q));
  }
  return filled;
}

}  // namespace weft
