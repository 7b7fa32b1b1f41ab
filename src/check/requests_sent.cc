// Judges what the requester sends: new packets in order, and repeated packets only for a cause.
#include <algorithm>

#include "check/half_connection.h"
#include "check/opcodes.h"

namespace weft::check {
namespace {

unsigned long long ull(std::uint64_t v) { return v; }

}  // namespace

void HalfConnection::request_sent(const wire::Header& h, std::uint32_t payload, Time now) {
  check_mode(h, now);
  const Seq seq = expand(h.psn, requests_.max);
  if (seq > requests_.max)
    return bad(now, "numbering", "psn %u leaves a gap of %llu", h.psn.v, ull(seq - requests_.max));
  // What follows a probe makes the receiver tell what is missing.
  probe_.out = !selective() && seq < requests_.max && seq == requests_.una;
  if (probe_.out) probe_.at = seq;
  if (seq == requests_.max) return new_request(h, payload, now);
  resent_request(h, payload, seq, now);
}

bool HalfConnection::may_probe(const Stream& s, Seq seq, Time now) {
  if (selective() || requester_.probe.ps == 0 || seq != s.una) return false;
  const Duration least = requester_.probe * (std::int64_t{1} << std::min(probe_.count, 10U));
  if (now - std::max(s.progress, probe_.sent) < least) return false;
  ++probe_.count;
  probe_.sent = now;
  return true;
}

void HalfConnection::posted(const SendWr& wr) {
  if (wr.opcode == WrOpcode::kLocalInvalidate || wr.opcode == WrOpcode::kBindWindow) return;
  Posted p;
  p.fence = (wr.flags & kSendFence) != 0;
  if (wr.opcode == WrOpcode::kRead) {
    for (const Sge& s : wr.sges) p.read_left += s.length;
  }
  posted_.push_back(p);
}

// READs and atomics that were sent and cannot be complete at the requester.
bool HalfConnection::answers_missing() {
  if (selective()) {
    advance(responses_);
    return !reads_.empty() && responses_.frontier < reads_.back().first + reads_.back().packets;
  }
  for (auto p = requests_.packets.rbegin(); p != requests_.packets.rend() && p->end() > requests_.una; ++p) {
    if (is_read(*p) && p->received < p->responses) return true;
  }
  return false;
}

// The first packet of a request, or a further piece of a READ.
void HalfConnection::check_start(const wire::Header& h, Time now) {
  if (posted_.empty()) return bad(now, "sequence", "psn %u begins a request that was not posted", h.psn.v);
  Posted& p = posted_.front();
  // docs/protocol/verbs.md#states: SQD finishes what has begun, and begins nothing.
  if (draining_ && !p.begun) bad(now, "drain", "psn %u begins a request in SQD", h.psn.v);
  // docs/protocol/reliable.md#sending-requests.
  if (p.fence && !p.begun && answers_missing())
    bad(now, "fence", "psn %u begins a fenced request before earlier READs are answered", h.psn.v);
  p.begun = true;
  p.read_left -= h.opcode == wire::kReadRequest ? std::min<std::uint64_t>(p.read_left, h.dma_len) : 0;
  if (p.read_left == 0) posted_.pop_front();
}

void HalfConnection::drained(Time now) {
  if (requests_.una != requests_.max || answers_missing() || open_ != Open::kNo)
    bad(now, "drain", "drained with %llu packets unacknowledged", ull(requests_.max - requests_.una));
}

void HalfConnection::new_request(const wire::Header& h, std::uint32_t payload, Time now) {
  Stream& s = requests_;
  const std::uint8_t op = h.opcode;
  const std::uint32_t mtu = requester_.mtu;
  if (s.told >= s.max) s.told_at = now;
  if (s.una == s.max) {
    s.progress = now;
    // Silence goes on while a READ is unanswered or a forgotten SACK is outstanding: a new request starts no
    // new silence then.
    const bool answered = reads_.empty() || confirmed_ >= reads_.back().first + reads_.back().packets;
    const bool forgotten = selective() && !requester_.remembers_sacks && s.told < s.max;
    if (answered && !forgotten) progressed(now);
  }
  const std::uint32_t cap = selective() ? requester_.bdp_cap : requester_.roce_window;
  if (cap != 0 && s.max - s.una >= cap)
    bad(now, "window", "psn %u with %llu packets in flight, cap %u", h.psn.v, ull(s.max - s.una), cap);

  if (starts(op) || is_answered(op)) check_start(h, now);

  Packet p;
  p.header = h;
  p.first = s.max;
  p.payload = payload;
  p.messages = s.packets.empty() ? 0 : s.packets.back().messages;
  if (is_answered(op)) {
    if (open_ != Open::kNo) bad(now, "sequence", "READ psn %u inside a message", h.psn.v);
    if (payload != 0) bad(now, "sequence", "READ psn %u carries bytes", h.psn.v);
    if ((h.bits & wire::kAckReq) == 0) bad(now, "AckReq", "READ psn %u does not ask for an answer", h.psn.v);
    p.responses = answers_to(h, mtu);
    ++p.messages;
    if (selective()) {
      p.response_first = reads_.empty() ? responses_.max : reads_.back().first + reads_.back().packets;
      reads_.push_back({p.first, p.response_first, p.responses, h.dma_len, h.srx_msn, {}, is_atomic(op)});
      check_read_extension(h, p.messages, now);
      ++read_sn_;
    } else {
      p.span = p.responses;
      p.copies.push_back({p.first, p.responses, false});
    }
  } else if (is_send(op) || is_write(op)) {
    const Open kind = is_send(op) ? Open::kSend : Open::kWrite;
    if (starts(op) != (open_ == Open::kNo) || (!starts(op) && open_ != kind)) {
      bad(now, "sequence", "psn %u has opcode 0x%02x out of place", h.psn.v, static_cast<unsigned>(op));
    }
    if (starts(op)) {
      index_ = 0;
      left_ = h.dma_len;
      next_va_ = h.va;
      rkey_ = h.rkey;
    }
    const bool full = !ends(op);
    if (full ? payload != mtu : payload > mtu)
      bad(now, "sequence", "psn %u carries %u bytes, MTU %u", h.psn.v, payload, mtu);
    if (ends(op) && !starts(op) && payload == 0) bad(now, "sequence", "Last psn %u is empty", h.psn.v);
    if (kind == Open::kWrite) {
      // srnic's packets do not say how long their message is.
      if (!srnic() && (payload > left_ || (ends(op) && payload != left_))) {
        bad(now, "sequence", "WRITE psn %u carries %u bytes of %u left", h.psn.v, payload, left_);
      }
    }
    if (selective()) check_extension(h, p.messages + 1, now);
    left_ -= std::min(left_, payload);
    next_va_ += payload;
    ++index_;
    if (ends(op)) {
      ++p.messages;
      open_ = Open::kNo;
      if (kind == Open::kSend || has_imm(op)) ++recv_sn_;
    } else {
      open_ = kind;
    }
    if ((h.bits & wire::kAckReq) == 0 && (ends(op) || selective())) {
      bad(now, "AckReq", "psn %u opcode 0x%02x does not ask for an ACK", h.psn.v, static_cast<unsigned>(op));
    }
    if ((h.bits & wire::kSolicited) != 0 && !(ends(op) && (kind == Open::kSend || has_imm(op)))) {
      bad(now, "sequence", "psn %u has a solicited bit where none belongs", h.psn.v);
    }
  } else {
    bad(now, "sequence", "psn %u has opcode 0x%02x, not a request", h.psn.v, static_cast<unsigned>(op));
  }
  s.max += p.span;
  s.packets.push_back(std::move(p));
  trim(s);
}

void HalfConnection::resent_request(const wire::Header& h, std::uint32_t payload, Seq seq, Time now) {
  Stream& s = requests_;
  Packet* p = s.find(seq);
  if (p == nullptr) return bad(now, "cause", "psn %u is far behind what was acknowledged", h.psn.v);
  if (h.opcode == wire::kReadRequest && p->header.opcode == h.opcode && !selective()) {
    // docs/protocol/reliable.md#read-requests-in-pieces: a retry asks for the part that is missing.
    const auto skipped = static_cast<std::uint32_t>(seq - p->first);
    const std::uint64_t va = p->header.va + static_cast<std::uint64_t>(skipped) * requester_.mtu;
    const std::uint32_t length = p->header.dma_len - skipped * requester_.mtu;
    if (h.va != va || h.rkey != p->header.rkey || h.dma_len > length || (skipped > 0 && h.dma_len == 0)) {
      bad(now, "numbering", "READ psn %u asks again for something else", h.psn.v);
    }
  } else if (p->payload != payload || !same_packet(p->header, h)) {
    bad(now, "numbering", "psn %u is resent as another packet", h.psn.v);
  }
  if (is_read(*p) && !selective()) p->copies.push_back({seq, answers_to(h, requester_.mtu), false});
  // irn: the requester repeats an acknowledged READ request when no responses come.
  if (is_read(*p) && selective() && seq < (requester_.remembers_sacks ? s.una : s.told)) {
    if (confirmed_ >= p->response_first + p->responses)
      bad(now, "cause", "READ psn %u is resent though answered", h.psn.v);
    const auto read = std::lower_bound(reads_.begin(), reads_.end(), seq,
                                       [](const ReadAsked& r, Seq v) { return r.request < v; });
    if (now - std::max(read_progress_, read->acknowledged) < requester_.selective_rto)
      bad(now, "cause", "READ psn %u is resent too early", h.psn.v);
    return;
  }
  resent(s, *p, seq, shortest_rto(), requester_.remembers_sacks, now);
}

Duration HalfConnection::shortest_rto() const {
  return selective() ? requester_.selective_rto : verbs_timeout(requester_);
}

void HalfConnection::progressed(Time now) {
  if (silence_.until != kNever) return;
  if (silence_.since != now) before_ = silence_;
  silence_ = {now, 0};
}

bool HalfConnection::requester_failed(Time now) {
  if (silence_.until != kNever) return false;
  // The packets of one instant are reported together. The queue pair may have failed at one of them, and the
  // packets after that one may show progress.
  if (silence_.since == now) silence_ = before_;
  silence_.until = now;
  return true;
}

void HalfConnection::resent(Stream& s, Packet& p, Seq seq, Duration shortest_rto, bool remembers, Time now) {
  ++p.times;
  const bool forgotten = selective() && !remembers && seq >= s.told;
  if (seq < s.una && !forgotten)
    return bad(now, "cause", "psn %u is resent though acknowledged", p.header.psn.v);
  // The oldest outstanding packet may be resent even if it is SACKed, because its duplicate brings a new ACK
  // (docs/protocol/irn.md#recovery). A READ request may have told which response is the oldest;
  // one that has arrived ahead of another tells when the other is there.
  const bool oldest =
      seq == s.una ||
      (&s == &responses_ && std::find(told_oldest_.begin(), told_oldest_.end(), seq) != told_oldest_.end());
  if (p.sacked && remembers && !oldest)
    bad(now, "cause", "psn %u is resent though selectively acknowledged", p.header.psn.v);
  // After a silence as long as a time-out, everything sent before the silence may be resent.
  // Without a bitmap, silence counts from the last cumulative ACK.
  const Time since = seq < s.una ? s.told_at : s.progress;
  const bool silent = now - since >= shortest_rto;
  if (!silent && seq < s.excused_below) return;
  if (!silent && may_probe(s, seq, now)) return;
  if (silent) probe_.count = 0;
  if (!silent) {
    bad(now, "cause", "psn %u is resent without NAK after %lld ns of silence", p.header.psn.v,
        static_cast<long long>((now - since).ns()));
  }
  s.excused_below = s.max;
}

}  // namespace weft::check
