// Requests out: turning posted requests (post_request.cc) into bursts (reliable.md#sending-requests; SRNIC
// §4.3.1 for "resume in mid-message"). Sending is a walk over the ring, and sending again is the same walk
// from another place, so a retransmitted packet is the packet that was lost, bit by bit.
//
//   sq_head        sq_acked            sq_send                sq_tail
//   | incomplete   | unacknowledged    | being sent           | free
//                                      ^ send_offset packets of it are out; nxt is its next number
#include "core/transport/rc/requester.h"

#include <algorithm>
#include <utility>

#include "core/transport/congestion.h"
#include "core/transport/engine.h"
#include "core/transport/fill.h"
#include "core/transport/rc/failure.h"
#include "core/transport/rc/opcodes.h"
#include "core/transport/rc/timers.h"
#include "core/transport/uc/requester.h"

namespace weft {
namespace {

constexpr std::uint64_t kMaxOutstanding = (1U << 23U) - 1U;  // docs/protocol/reliable.md#sequence-numbers

// A READ or an atomic: one request packet, answered by numbered responses.
bool is_read(const SendWqe& w) { return has_response(w.opcode); }
bool has_imm(const SendWqe& w) {
  return w.opcode == WrOpcode::kSendImm || w.opcode == WrOpcode::kWriteImm ||
         w.opcode == WrOpcode::kSendInvalidate;
}

std::uint64_t window(const Engine& e, const QueuePair& q) {
  // Nothing behind a packet that found no receive will be taken before it is: it goes alone, to ask.
  if (q.rnr_retries != 0) return 1;
  const std::uint64_t cap = q.tx_dialect().acks_every_packet ? e.config.bdp_cap
                            : e.config.roce_window == 0      ? kMaxOutstanding
                                                             : e.config.roce_window;
  return controlled(q) ? congestion_window(e, q, q.served, cap) : cap;
}

// Bytes of the READ request that may go out now (roce may ask for a long READ in pieces).
std::uint32_t read_piece(const Engine& e, const QueuePair& q, const SendWqe& w, std::uint32_t k) {
  const std::uint32_t left = w.length - k * q.mtu;
  if (q.tx_dialect().response_stream || e.config.read_chunk == 0) return left;
  // Pieces end at fixed places of the message, so that asking again for the rest of one stays inside it.
  const std::uint32_t piece = std::max<std::uint32_t>(e.config.read_chunk / q.mtu, 1);
  const std::uint64_t end = (std::uint64_t{k} / piece + 1) * piece * q.mtu;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(w.length, end) - std::uint64_t{k} * q.mtu);
}

// Written where it leaves from: packet k of the message in `slot`. Returns how many sequence numbers it
// takes.
std::uint32_t draft(Engine& e, const QueuePair& q, const Dialect& form, const SendWqe& w, std::uint16_t slot,
                    std::uint32_t k, Seq seq, wire::TxPacket& packet) {
  std::uint32_t numbers = 1;
  packet = {};
  wire::Header& h = packet.header;
  const std::uint32_t done = k * q.mtu;
  const bool first = k == 0;
  const bool last = k + 1 == w.packets;
  h.mode = static_cast<wire::Mode>(q.tx_mode);
  h.dest_qp = q.remote;
  h.psn = seq.wire();
  if (form.names_messages) {
    h.srx_msn = e.cold(q).sq_msn[slot & e.cold(q).sq_mask] & kPsnMask;
    h.psn_offset = k;
  }
  if (is_read(w)) {
    h.va = w.remote_address + done;
    h.rkey = w.rkey;
    h.bits = wire::kAckReq;
    h.sn = form.response_stream ? w.sn & form.serial_mask() : 0;
    if (is_atomic(w.opcode)) {
      const SendOperands& o = e.cold(q).sq_operands[slot & e.cold(q).sq_mask];
      const bool swap = w.opcode == WrOpcode::kCompareSwap;
      h.opcode = swap ? wire::kCompareSwap : wire::kFetchAdd;
      h.a = swap ? o.swap : o.compare_or_add;
      h.b = swap ? o.compare_or_add : 0;
    } else {
      h.opcode = wire::kReadRequest;
      h.dma_len = read_piece(e, q, w, k);
      if (!form.response_stream) numbers = Engine::packets_for(h.dma_len, q.mtu);
    }
  } else {
    const bool write = w.opcode == WrOpcode::kWrite || w.opcode == WrOpcode::kWriteImm;
    const bool imm = has_imm(w) && last;
    h.opcode = write ? write_opcode(first, last, imm)
                     : send_opcode(first, last, imm, w.opcode == WrOpcode::kSendInvalidate);
    if (imm) h.imm = w.imm;
    if (write && (first || form.places_itself)) {
      h.va = w.remote_address + done;
      h.rkey = w.rkey;
      h.dma_len = form.names_messages ? 0 : w.length - done;
    }
    // The receive's number goes where one is consumed; who names messages has room for it in every packet.
    if (form.places_itself && (!write || imm || (form.names_messages && w.opcode == WrOpcode::kWriteImm))) {
      h.sn = w.sn & form.serial_mask();
      h.psn_offset = k;
    }
    packet.payload = last ? w.length - done : q.mtu;
    if (last && (w.flags & kSendSolicited) != 0 && (!write || imm)) h.bits |= wire::kSolicited;
    // A window that may shrink to less than is in flight needs an ACK of every packet.
    const bool clocked = controlled(q) && q.window != UINT32_MAX;
    if (form.acks_every_packet || last || (k + 1) % e.config.ack_every == 0 || clocked)
      h.bits |= wire::kAckReq;
  }
  return numbers;
}

// May the message at sq_send go on at packet k? Fences, ATOMIC WRITEs, READ limits, path credit.
enum class Gate : std::uint8_t { kOpen, kShut, kPath };

Gate gate(Engine& e, QueuePair& q, const SendWqe& w, std::uint32_t k, bool fresh) {
  if (is_local(w.opcode)) return Gate::kShut;  // behind a fence, or it would have run
  // What was sent before may always be sent again: its fence was open then, and READs behind it may be out.
  if (k == 0 && fresh && (w.flags & kSendFence) != 0 && q.reads_outstanding > 0) return Gate::kShut;
  if (k == 0 && fresh && (w.flags & kSendAtomicWrite) != 0 &&
      (w.first > q.requests_out.una || q.reads_outstanding > 0))
    return Gate::kShut;
  if (fresh && (q.rx_flags & kSendStopped) != 0) return Gate::kShut;
  if (k == 0 && fresh && q.state == QpState::kSqd) return Gate::kShut;
  const Path& path = e.path_of(q);
  if (is_read(w)) {
    const bool stream = q.tx_dialect().response_stream;
    if ((fresh || !stream) && q.reads_outstanding >= e.cold(q).attr.max_rd_atomic) return Gate::kShut;
    // roce: its responses take as many numbers as they are packets. The longest goes alone.
    const SendStream& s = q.requests_out;
    if (!stream && s.nxt != s.una && s.nxt - s.una + (w.packets - k) > kMaxOutstanding) return Gate::kShut;
    if (fresh && !stream && path.bounded() &&
        !(e.in_turn(q, path) && path.admits_read(read_piece(e, q, w, k))))
      return Gate::kPath;
    return Gate::kOpen;
  }
  if (fresh && path.bounded()) {
    if (in_doubt(q.requests_out)) return Gate::kShut;
    const std::uint32_t payload = k + 1 == w.packets ? w.length - k * q.mtu : q.mtu;
    if (!e.in_turn(q, path) || !path.admits(payload + e.config.path_overhead.n)) return Gate::kPath;
  }
  return Gate::kOpen;
}

void advance_cursor(Engine& e, QueuePair& q, ColdQueuePair& c, std::uint32_t numbers) {
  q.send_offset += numbers;
  while (q.sq_send != q.sq_tail && q.send_offset >= e.send_wqe(c, q.sq_send).packets) {
    if (is_local(e.send_wqe(c, q.sq_send).opcode) && !e.send_wqe(c, q.sq_send).executed) break;
    q.send_offset -= e.send_wqe(c, q.sq_send).packets;
    ++q.sq_send;
  }
}

void seek(Engine& e, QueuePair& q, ColdQueuePair& c, Seq to) {
  q.requests_out.nxt = to;
  q.sq_send = rc_slot_of(e, q, to);
  // The search passes over requests that send nothing; those that have not run yet are still ahead.
  while (q.sq_send != q.sq_acked) {
    const SendWqe& before = e.send_wqe(c, static_cast<std::uint16_t>(q.sq_send - 1));
    if (!is_local(before.opcode) || before.executed) break;
    --q.sq_send;
  }
  q.send_offset =
      q.sq_send == q.sq_tail ? 0 : static_cast<std::uint32_t>(to - e.send_wqe(c, q.sq_send).first);
}

// No further packet may leave before an ACK comes.
bool stalls(Engine& e, QueuePair& q) {
  const SendStream& s = q.requests_out;
  if (q.sq_send == q.sq_tail) return false;
  if (s.nxt - s.una >= window(e, q)) return true;
  return gate(e, q, e.send_wqe(e.cold(q), q.sq_send), q.send_offset, s.nxt == s.max) == Gate::kPath;
}

void record_read(Engine& e, QueuePair& q, ColdQueuePair& c, const SendWqe& w, std::uint16_t slot,
                 std::uint32_t k, Seq seq, std::uint32_t length, Time now) {
  const std::uint32_t packets = Engine::packets_for(length, q.mtu);
  const Seq first = q.tx_dialect().response_stream ? w.first_response : seq;
  if (q.reads_outstanding == 0) c.read_base = now;
  c.issued[c.issued_tail++ & c.issued_mask] = {first, first + packets, seq, k, slot};
  ++q.reads_outstanding;
  if (!q.tx_dialect().response_stream) e.path_of(q).reads += std::uint64_t{packets} * q.mtu;
}

}  // namespace

std::uint16_t rc_slot_of(Engine& e, QueuePair& q, Seq seq) {
  // Binary search over the messages that are not fully acknowledged; their numbers ascend.
  ColdQueuePair& c = e.cold(q);
  std::uint16_t low = q.sq_acked;
  auto n = static_cast<std::uint16_t>(q.sq_tail - q.sq_acked);
  while (n > 0) {
    const auto half = static_cast<std::uint16_t>(n / 2);
    const auto mid = static_cast<std::uint16_t>(low + half);
    const SendWqe& w = e.send_wqe(c, mid);
    if (w.first + w.packets <= seq) {
      low = static_cast<std::uint16_t>(mid + 1);
      n = static_cast<std::uint16_t>(n - half - 1);
    } else {
      n = half;
    }
  }
  return low;
}

bool rc_gather(Engine& e, const ColdQueuePair& c, const SendWqe& w, std::uint16_t slot, std::uint32_t from,
               std::uint32_t length, std::uint32_t& count) {
  if (length == 0) return true;
  if ((w.flags & kSendInline) != 0) {
    const std::uint64_t base = static_cast<std::uint64_t>(slot & c.sq_mask) * c.init.caps.max_inline;
    e.burst_segments[count++] = {wire::kInlineRegion, length, base + from};
    return true;
  }
  const Sge* sges = e.send_sges(c, slot);
  for (std::uint8_t i = 0; i < w.sge_count && length > 0; ++i) {
    if (from >= sges[i].length) {
      from -= sges[i].length;
      continue;
    }
    const std::uint32_t take = std::min(length, sges[i].length - from);
    RegionId region;
    std::uint64_t offset = 0;
    if (e.keys.check_local(sges[i].lkey, c.init.pd, 0, sges[i].address + from, take, region, offset) !=
        KeyTable::Denied::kNo) {
      return false;
    }
    e.burst_segments[count++] = {region, take, offset};
    length -= take;
    from = 0;
  }
  return true;
}

void rc_rewind(Engine& e, QueuePair& q) {
  ColdQueuePair& c = e.cold(q);
  c.requests_account.timed_at = kNever;
  seek(e, q, c, q.requests_out.nxt);
  if (q.tx_dialect().response_stream) return;  // issued READs stay issued: their responses are numbered apart
  Path& path = e.path_of(q);
  std::uint64_t freed = 0;
  while (c.issued_head != c.issued_tail) {
    const ReadIssued& r = c.issued[c.issued_head++ & c.issued_mask];
    freed += (r.end - r.first) * q.mtu;
  }
  q.reads_outstanding = 0;
  path.reads -= freed;
}

namespace {
// What is left to send has failed, and only answers to READs before it are awaited.
bool halted(Engine& e, QueuePair& q) {
  if ((q.rx_flags & kSendStopped) == 0) return false;
  ColdQueuePair& c = e.cold(q);
  return q.requests_out.una >= e.send_wqe(c, c.stop_slot).first;
}
}  // namespace

bool rc_requests_sendable(Engine& e, QueuePair& q) {
  if (q.type != QpType::kRc) return uc_sendable(e, q);
  if (!q.sends() || q.has(kRnrWaiting)) return false;
  SendStream& s = q.requests_out;
  if ((q.rx_flags & kResendRequest) != 0) return true;
  if (halted(e, q)) return false;
  if (s.probe == Probe::kDue) return true;
  if (Seq seq; s.recovering() && e.requests(q).next_repair(seq)) return true;
  if (q.sq_send == q.sq_tail || s.nxt - s.una >= window(e, q)) return false;
  ColdQueuePair& c = e.cold(q);
  const Gate g = gate(e, q, e.send_wqe(c, q.sq_send), q.send_offset, s.nxt == s.max);
  // Who already stands in the path's line is woken from there; repairs above never wait for credit.
  return g == Gate::kOpen || (g == Gate::kPath && !q.has(kWaitingPath));
}

bool rc_request_again(Engine& e, QueuePair& q) {
  if ((q.rx_flags & kResendRequest) != 0 || q.requests_out.probe == Probe::kDue) return true;
  return q.type == QpType::kRc && e.requests(q).again();
}

PathNeed rc_requests_need(Engine& e, QueuePair& q) {
  if (q.type != QpType::kRc) return uc_need(e, q);
  const SendStream& s = q.requests_out;
  if (!q.sends() || q.has(kRnrWaiting) || halted(e, q)) return PathNeed::kNone;
  if (q.sq_send == q.sq_tail || s.nxt - s.una >= window(e, q)) return PathNeed::kNone;
  Path& path = e.path_of(q);
  const std::uint32_t called = std::exchange(path.called, e.index_of(q));
  const SendWqe& w = e.send_wqe(e.cold(q), q.sq_send);
  const Gate g = gate(e, q, w, q.send_offset, s.nxt == s.max);
  path.called = called;
  if (g == Gate::kShut) return PathNeed::kNone;
  return g == Gate::kOpen && (is_read(w) || e.worth_a_turn(path)) ? PathNeed::kEnough : PathNeed::kTooLittle;
}

// roce: who sends slowly would see its time-out run out before the next packet that asks for an ACK has left.
void rc_ask_in_time(Engine& e, const QueuePair& q, std::size_t packets, Time next) {
  if (q.tx_dialect().acks_every_packet || packets == 0) return;
  wire::Header& last = e.burst_packets[packets - 1].header;
  if ((last.bits & wire::kAckReq) != 0 || rc_opcode(last.opcode).kind == RcKind::kResponse) return;
  const Duration timeout = e.waits(e.cold(q), q.tx_dialect()).verbs();
  if (timeout != kForever && next - q.requests_out.timer >= timeout / 2) last.bits |= wire::kAckReq;
}

namespace {
// The walk over the ring, from wherever it stands, with repairs before it (fill.h).
class RequestSource {
 public:
  RequestSource(Engine& e, QueuePair& q, ColdQueuePair& c, Sending& half, Time now, std::uint32_t requests)
      : e_(e), q_(q), c_(c), half_(half), form_(q.tx_dialect()), now_(now), requests_(requests) {}

  bool next(wire::TxPacket& packet, bool first) {
    Sender& s = half_.s;
    if (Seq lost; half_.next_repair(lost)) {
      origin_ = Origin::kRepair;
      seq_ = lost;
      slot_ = rc_slot_of(e_, q_, seq_);
      k_ = static_cast<std::uint32_t>(seq_ - e_.send_wqe(c_, slot_).first);
    } else {
      if (s.nxt < s.max && form_.places_itself) {
        const Seq skipped = half_.scheme.skip_received(half_.loss, s, s.nxt);
        if (skipped != s.nxt) seek(e_, q_, c_, skipped);
      }
      if (q_.sq_send == q_.sq_tail || s.nxt - s.una >= window(e_, q_)) return false;
      origin_ = Origin::kNext;
      seq_ = s.nxt;
      slot_ = q_.sq_send;
      k_ = q_.send_offset;
    }
    // Requests: the slots of a turn ascend, repairs first.
    if (first) first_slot_ = slot_;
    if (!first && static_cast<std::uint16_t>(slot_ - first_slot_) >= requests_) return false;
    w_ = &e_.send_wqe(c_, slot_);
    fresh_ = seq_ == s.max;
    if (origin_ == Origin::kNext) {
      const Gate g = gate(e_, q_, *w_, k_, fresh_);
      if (g == Gate::kPath && first && !q_.has(kWaitingPath)) e_.wait_for_path(q_);
      if (g != Gate::kOpen) return false;
    }
    numbers_ = draft(e_, q_, form_, *w_, slot_, k_, seq_, packet);
    packet.retransmission = !fresh_;
    return true;
  }
  std::uint32_t pieces() const { return w_->sge_count; }
  bool gather(const wire::TxPacket& packet, std::uint32_t& segments) {
    if (is_read(*w_) || rc_gather(e_, c_, *w_, slot_, k_ * q_.mtu, packet.payload, segments)) return true;
    // A packet that was sent before fails at once: packets behind it are out already, so there is no place
    // where sending could stop and wait.
    fresh_ ? rc_stop_sending(e_, q_, WcStatus::kLocalProtection, slot_, now_)
           : rc_fail(e_, q_, WcStatus::kLocalProtection, slot_, now_);
    return false;
  }
  void left(const wire::TxPacket& packet) {
    const wire::Header& h = packet.header;
    const bool next = origin_ == Origin::kNext;
    if (next && is_read(*w_) && (fresh_ || !form_.response_stream))
      record_read(e_, q_, c_, *w_, slot_, k_, seq_, is_atomic(w_->opcode) ? 8 : h.dma_len, now_);
    // Without a NACK that names its trigger, the time of what is sent after going back is told only by
    // chance.
    const bool timed = (h.bits & wire::kAckReq) != 0 &&
                       (form_.ack_form != AckForm::kPlain || !half_.s.rewound() || half_.waits.unsure());
    const std::uint64_t cost = is_read(*w_) ? 0 : packet.payload + e_.config.path_overhead.n;
    half_.left({seq_, numbers_, cost, origin_, timed}, now_);
    if (!next) return;
    advance_cursor(e_, q_, c_, numbers_);
    if (q_.sq_send != q_.sq_tail && is_local(e_.send_wqe(c_, q_.sq_send).opcode)) rc_run_local(e_, q_, now_);
  }

 private:
  Engine& e_;
  QueuePair& q_;
  ColdQueuePair& c_;
  Sending& half_;
  const Dialect& form_;
  const Time now_;
  const std::uint32_t requests_;  // how many may have a part in this turn
  // Of the packet that was named last.
  const SendWqe* w_ = nullptr;
  Seq seq_{};
  Origin origin_ = Origin::kNext;
  bool fresh_ = false;
  std::uint16_t slot_ = 0;
  std::uint16_t first_slot_ = 0;  // of this turn
  std::uint32_t k_ = 0;
  std::uint32_t numbers_ = 1;
};

// One packet alone, which was sent before; where the walk over the ring stands does not change.
Filled send_alone(Engine& e, QueuePair& q, std::uint16_t slot, std::uint32_t k, Seq seq, Time now) {
  ColdQueuePair& c = e.cold(q);
  const SendWqe& w = e.send_wqe(c, slot);
  wire::TxPacket& packet = e.burst_packets[0];
  draft(e, q, q.tx_dialect(), w, slot, k, seq, packet);
  Filled filled{1, 0};
  if (!is_read(w) && !rc_gather(e, c, w, slot, k * q.mtu, packet.payload, filled.segments)) {
    rc_fail(e, q, WcStatus::kLocalProtection, slot, now);
    return {};
  }
  packet.segment_count = filled.segments;
  packet.retransmission = true;
  packet.header.bits |= wire::kAckReq;
  return filled;
}

// irn: the request of the oldest READ, whose responses stay away.
Filled resend_read(Engine& e, QueuePair& q, Time now) {
  const ColdQueuePair& c = e.cold(q);
  const ReadIssued& r = c.issued[c.issued_head & c.issued_mask];
  const Filled filled = send_alone(e, q, r.slot, r.packet, r.request, now);
  e.counters.add(Counter::tx_packets);
  e.counters.add(Counter::tx_retransmitted);
  e.counters.add(Counter::tx_after_timeout);
  e.arm(q, rc_deadline(e, q));
  return filled;
}

// roce: the oldest packet, asking for an ACK; of a READ, what is missing of it.
Filled probe(Engine& e, QueuePair& q, Time now) {
  const Seq oldest = q.requests_out.una;
  const std::uint16_t slot = rc_slot_of(e, q, oldest);
  const auto k = static_cast<std::uint32_t>(oldest - e.send_wqe(e.cold(q), slot).first);
  const Filled filled = send_alone(e, q, slot, k, oldest, now);
  if (filled.packets == 0) return filled;
  e.requests(q).left({oldest, 1, 0, Origin::kProbe}, now);
  e.arm(q, rc_deadline(e, q));
  return filled;
}
}  // namespace

Filled rc_send_requests(Engine& e, QueuePair& q, Time now, Budget budget) {
  if (q.type != QpType::kRc) return uc_sendable(e, q) ? uc_send(e, q, now, budget) : Filled{};
  if (!q.sends() || q.has(kRnrWaiting)) return {};
  ColdQueuePair& c = e.cold(q);
  if ((q.rx_flags & kResendRequest) != 0) {
    q.rx_flags &= static_cast<std::uint8_t>(~kResendRequest);
    if (c.issued_head != c.issued_tail) return resend_read(e, q, now);
  }
  if (halted(e, q)) return {};
  Sending half = e.requests(q, c);
  if (half.s.probe == Probe::kDue) return probe(e, q, now);
  const bool was_quiet = !half.s.outstanding();
  const bool was_idle = was_quiet && q.reads_outstanding == 0;
  RequestSource source(e, q, c, half, now, budget.requests);
  const Filled filled = fill(e, source, budget);
  if (filled.packets == 0) return {};
  // Whatever makes us wait for an ACK now must have asked for one. Path credit may be used up by others
  // before our next turn, so there every burst asks.
  if (!q.tx_dialect().acks_every_packet && (e.path_of(q).bounded() || stalls(e, q)))
    e.burst_packets[filled.packets - 1].header.bits |= wire::kAckReq;
  // READs may keep the connection busy while no request packet is out: the two timers start apart.
  if (was_idle) q.requests_out.progress = now;
  if (was_quiet) half.begin(now);
  e.arm(q, rc_deadline(e, q));
  rc_ask_in_time(e, q, filled.packets, now);
  return filled;
}

}  // namespace weft
