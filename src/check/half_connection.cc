#include "check/half_connection.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "check/opcodes.h"

namespace weft::check {
namespace {

constexpr std::uint32_t kResponderTries = 4;  // how often it sends again what nobody acknowledges

unsigned long long ull(std::uint64_t v) { return v; }

// Equal but for AckReq, which a sender may set on any copy.
bool same_packet(wire::Header a, wire::Header b) {
  a.bits = static_cast<std::uint8_t>(a.bits & ~wire::kAckReq);
  b.bits = static_cast<std::uint8_t>(b.bits & ~wire::kAckReq);
  return a == b;
}

}  // namespace

HalfConnection::HalfConnection(const QpFacts& requester, const QpFacts& responder, Report& report)
    : requester_(requester), responder_(responder), report_(report) {
  requests_.start(Seq::start(requester.sq_psn));
  responses_.start(Seq::start(requester.sq_psn));
  answered_ = requests_.max;
  confirmed_ = responses_.max;
}

void HalfConnection::Stream::start(Seq s) { max = una = acked = frontier = in_order = excused_below = s; }

HalfConnection::Packet* HalfConnection::Stream::find(Seq s) {
  auto it =
      std::upper_bound(packets.begin(), packets.end(), s, [](Seq v, const Packet& p) { return v < p.first; });
  if (it == packets.begin()) return nullptr;
  --it;
  return s < it->end() ? &*it : nullptr;
}

void HalfConnection::trim(Stream& s) {
  while (s.packets.size() > kHistory && s.packets.front().end() <= std::min({s.una, s.frontier, answered_})) {
    s.packets.pop_front();
  }
}

void HalfConnection::bad(Time now, const char* rule, const char* format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  report_.add(now, rule, "host %u qp 0x%x -> host %u qp 0x%x: %s", requester_.self.host.v,
              requester_.self.qpn.v, responder_.self.host.v, responder_.self.qpn.v, text);
}

void HalfConnection::mark(const wire::Header& h, Time now) {
  if (h.mode != requester_.mode)
    bad(now, "marking", "psn %u bears mode %u", h.psn.v, static_cast<unsigned>(h.mode));
}

// --- the requester sends ---

void HalfConnection::request_sent(const wire::Header& h, std::uint32_t payload, Time now) {
  mark(h, now);
  const Seq seq = expand(h.psn, requests_.max);
  if (seq > requests_.max)
    return bad(now, "numbering", "psn %u leaves a gap of %llu", h.psn.v, ull(seq - requests_.max));
  if (seq == requests_.max) return new_request(h, payload, now);
  resent_request(h, payload, seq, now);
}

void HalfConnection::new_request(const wire::Header& h, std::uint32_t payload, Time now) {
  Stream& s = requests_;
  const std::uint8_t op = h.opcode;
  const std::uint32_t mtu = requester_.mtu;
  if (s.una == s.max) {
    s.progress = now;
    // New requests do not make up for an unanswered READ.
    if (reads_.empty() || confirmed_ >= reads_.back().first + reads_.back().packets) progressed(now);
  }
  const std::uint32_t cap = selective() ? requester_.bdp_cap : requester_.roce_window;
  if (cap != 0 && s.max - s.una >= cap)
    bad(now, "window", "psn %u with %llu packets in flight, cap %u", h.psn.v, ull(s.max - s.una), cap);

  Packet p;
  p.header = h;
  p.first = s.max;
  p.payload = payload;
  p.messages = s.packets.empty() ? 0 : s.packets.back().messages;
  if (op == wire::kReadRequest) {
    if (open_ != Open::kNo) bad(now, "sequence", "READ psn %u inside a message", h.psn.v);
    if (payload != 0) bad(now, "sequence", "READ psn %u carries bytes", h.psn.v);
    if ((h.bits & wire::kAckReq) == 0) bad(now, "AckReq", "READ psn %u does not ask for an answer", h.psn.v);
    p.responses = packets_of(h.dma_len, mtu);
    ++p.messages;
    if (selective()) {
      p.response_first = reads_.empty() ? responses_.max : reads_.back().first + reads_.back().packets;
      reads_.push_back({p.first, p.response_first, p.responses, h.dma_len, h.srx_msn, {}});
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
  if (is_read(*p) && !selective()) {
    // wire-reference §2.1: a retry asks for the part that is missing.
    const auto skipped = static_cast<std::uint32_t>(seq - p->first);
    const std::uint64_t va = p->header.va + static_cast<std::uint64_t>(skipped) * requester_.mtu;
    const std::uint32_t length = p->header.dma_len - skipped * requester_.mtu;
    if (h.opcode != wire::kReadRequest || h.va != va || h.rkey != p->header.rkey || h.dma_len > length ||
        (skipped > 0 && h.dma_len == 0)) {
      bad(now, "numbering", "READ psn %u asks again for something else", h.psn.v);
    }
    p->copies.push_back({seq, packets_of(h.dma_len, requester_.mtu), false});
  } else if (p->payload != payload || !same_packet(p->header, h)) {
    bad(now, "numbering", "psn %u is resent as another packet", h.psn.v);
  }
  // irn: the requester asks again for a READ whose responses stay away, though the request arrived.
  if (is_read(*p) && selective() && seq < s.una) {
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
  return selective() ? requester_.selective_rto : verbs_timeout(requester_.timeout);
}

void HalfConnection::progressed(Time now) {
  if (silence_.until != kNever) return;
  if (silence_.since != now) before_ = silence_;
  silence_ = {now, 0};
}

void HalfConnection::requester_failed(Time now) {
  if (silence_.until != kNever) return;
  // Packets of one instant are reported together: it may have failed at one of them, with progress behind it.
  if (silence_.since == now) silence_ = before_;
  silence_.until = now;
}

void HalfConnection::resent(Stream& s, Packet& p, Seq seq, Duration shortest_rto, bool remembers, Time now) {
  ++p.times;
  if (seq < s.una) return bad(now, "cause", "psn %u is resent though acknowledged", p.header.psn.v);
  // The oldest one may go out again whatever is known of it (wire-reference §5.6, "first resend = cumulative
  // PSN"): it alone brings another ACK.
  if (p.sacked && remembers && seq != s.una)
    bad(now, "cause", "psn %u is resent though selectively acknowledged", p.header.psn.v);
  // Silence excuses everything sent before it, whatever an earlier NAK excused.
  const bool silent = now - s.progress >= shortest_rto;
  if (!silent && seq < s.excused_below) return;
  if (!silent) {
    bad(now, "cause", "psn %u is resent without NAK after %lld ns of silence", p.header.psn.v,
        static_cast<long long>((now - s.progress).ns()));
  }
  s.excused_below = s.max;
}

// --- the responder answers ---

void HalfConnection::ack_sent(const wire::Header& h, Time now) {
  mark(h, now);
  check_ack(requests_, h, now);
  if (selective()) reads_taken(said_by(h, requests_.frontier).upto);
}

void HalfConnection::read_ack_sent(const wire::Header& h, Time now) {
  mark(h, now);
  if (!selective()) return bad(now, "sequence", "READ ACK in roce");
  check_ack(responses_, h, now);
  confirmed_ = std::max(confirmed_, said_by(h, responses_.frontier).upto);
}

std::uint64_t HalfConnection::messages_below(Seq s) {
  const auto& packets = requests_.packets;
  auto it =
      std::lower_bound(packets.begin(), packets.end(), s, [](const Packet& p, Seq v) { return p.first < v; });
  return it == packets.begin() ? 0 : std::prev(it)->messages;
}

void HalfConnection::check_ack(Stream& s, const wire::Header& h, Time now) {
  const bool of_requests = &s == &requests_;
  advance(s);
  // A READ that fails while it is answered has been acknowledged before.
  const bool fatal = h.syndrome > wire::kSyndromeNakSequence;
  if (!fatal && ++s.acks_sent > s.packets_arrived) bad(now, "ACK", "more ACKs than packets");
  // What it acknowledges: everything below `upto`.
  const Said said = said_by(h, s.frontier);
  const Seq upto = said.upto;
  const std::uint8_t kind = h.syndrome & 0x60U;
  if (upto > s.frontier) {
    bad(now, "ACK", "acknowledges all below psn %u, but below psn %u something is missing or not placed",
        upto.wire().v, s.frontier.wire().v);
  }
  if (said.echoes) check_echo(s, h, said, now);
  if (kind == wire::kSyndromeRnr) {
    const Packet* p = s.find(upto);
    if (p == nullptr || !(is_send(p->header.opcode) || has_imm(p->header.opcode))) {
      bad(now, "ACK", "RNR NAK of psn %u, which needs no receive", h.psn.v);
    }
  }
  if (!of_requests) return;
  if (!selective()) {
    // Move past every READ that was answered in full.
    while (answered_ < s.max) {
      const Packet* p = s.find(answered_);
      if (p == nullptr || (is_read(*p) && p->emitted < p->responses)) break;
      answered_ = p->end();
    }
    if (upto > answered_) bad(now, "ACK", "psn %u overtakes READ responses", h.psn.v);
  }
  if (h.syndrome <= wire::kSyndromeAck || h.syndrome == wire::kSyndromeNakSequence) {
    const std::uint64_t least = messages_below(upto), most = messages_below(s.frontier);
    const auto above = static_cast<std::uint32_t>((h.aeth_msn() - least) & kPsnMask);
    if (upto <= s.frontier && above > most - least) {
      bad(now, "ACK", "psn %u says MSN %u, between %llu and %llu messages are complete", h.psn.v,
          h.aeth_msn(), ull(least), ull(most));
    }
  }
}

void HalfConnection::response_sent(const wire::Header& h, std::uint32_t payload, Time now) {
  mark(h, now);
  selective() ? selective_response_sent(h, payload, now) : roce_response_sent(h, payload, now);
}

void HalfConnection::roce_response_sent(const wire::Header& h, std::uint32_t payload, Time now) {
  Stream& s = requests_;
  const Seq seq = expand(h.psn, s.in_order);
  Packet* p = s.find(seq);
  if (p == nullptr || !is_read(*p)) return bad(now, "READ", "response psn %u belongs to no READ", h.psn.v);
  if (p->first >= s.in_order) return bad(now, "READ", "response psn %u before its request was due", h.psn.v);
  const auto index = static_cast<std::uint32_t>(seq - p->first);
  const std::uint32_t expected =
      std::min(requester_.mtu, p->header.dma_len - std::min(p->header.dma_len, index * requester_.mtu));
  if (payload != expected)
    bad(now, "READ", "response psn %u carries %u bytes, not %u", h.psn.v, payload, expected);
  bool fits = false;
  for (const Copy& c : p->copies) {
    if (!c.arrived || seq < c.first || seq >= c.first + c.packets) continue;
    fits = fits || h.opcode == response_opcode(static_cast<std::uint32_t>(seq - c.first), c.packets);
  }
  if (!fits)
    bad(now, "READ", "response psn %u opcode 0x%02x fits no request that arrived", h.psn.v,
        static_cast<unsigned>(h.opcode));
  if (index > p->emitted) bad(now, "READ", "response psn %u skips its predecessors", h.psn.v);
  p->emitted = std::max(p->emitted, index + 1);
}

void HalfConnection::selective_response_sent(const wire::Header& h, std::uint32_t payload, Time now) {
  Stream& s = responses_;
  const Seq seq = expand(h.psn, s.max);
  if (seq > s.max) return bad(now, "numbering", "response psn %u leaves a gap", h.psn.v);
  if (seq < s.max) {
    Packet* p = s.find(seq);
    if (p == nullptr)
      return bad(now, "cause", "response psn %u is far behind what was acknowledged", h.psn.v);
    wire::Header known = p->header;
    known.imm = h.imm;  // AETH.MSN moves on
    if (p->payload != payload || !same_packet(known, h))
      bad(now, "numbering", "response psn %u is resent as another packet", h.psn.v);
    return resent(s, *p, seq, responder_.selective_rto, responder_.remembers_sacks, now);
  }
  if (read_cursor_ >= reads_.size()) return bad(now, "READ", "response psn %u belongs to no READ", h.psn.v);
  const ReadAsked& read = reads_[read_cursor_];
  advance(requests_);
  if (requests_.frontier <= read.request)
    bad(now, "READ", "response psn %u before its request was due", h.psn.v);
  if (s.una == s.max) s.progress = now;
  const std::uint64_t in_flight = s.max - std::max(s.una, may_know_);
  if (responder_.bdp_cap != 0 && in_flight >= responder_.bdp_cap) {
    bad(now, "window", "response psn %u with %llu in flight, cap %u", h.psn.v, ull(in_flight),
        responder_.bdp_cap);
  }
  const std::uint32_t mtu = requester_.mtu;
  const std::uint32_t bytes = std::min(mtu, read.length - std::min(read.length, read_packet_ * mtu));
  check_response_extension(h, read, now);
  if (payload != bytes || h.opcode != response_opcode(read_packet_, read.packets)) {
    bad(now, "READ", "response psn %u opcode 0x%02x with %u bytes is not packet %u of %u", h.psn.v,
        static_cast<unsigned>(h.opcode), payload, read_packet_, read.packets);
  }
  if (++read_packet_ == read.packets) {
    read_packet_ = 0;
    ++read_cursor_;
  }
  Packet p;
  p.header = h;
  p.first = s.max;
  p.payload = payload;
  s.max += 1;
  s.packets.push_back(std::move(p));
  trim(s);
}

// --- arrivals ---

// READ n can only be asked for when READ n - reads_kept has had all its answers: everything below this.
Seq HalfConnection::answered_before(std::size_t read) const {
  const std::size_t kept = responder_.reads_kept;
  if (kept == 0 || read < kept) return responses_.una;
  return reads_[read - kept].first + reads_[read - kept].packets;
}

// The responder acknowledges: it has looked at every READ request below `upto`. One that merely arrived may
// have been dropped unseen, ahead of a loss, for want of a bitmap.
void HalfConnection::reads_taken(Seq upto) {
  while (reads_taken_ < reads_.size() && reads_[reads_taken_].request < upto) ++reads_taken_;
  if (reads_taken_ == 0) return;
  responses_.una = std::max(responses_.una, answered_before(reads_taken_ - 1));
  responses_.acked = std::max(responses_.acked, responses_.una);
}

void HalfConnection::request_arrived(const wire::Header& h) {
  Stream& s = requests_;
  ++s.packets_arrived;
  const Seq seq = expand(h.psn, s.in_order);
  Packet* p = s.find(seq);
  if (p == nullptr) return;
  if (selective()) {
    p->arrived = true;
    if (is_read(*p)) {
      const auto read = std::lower_bound(reads_.begin(), reads_.end(), seq,
                                         [](const ReadAsked& r, Seq v) { return r.request < v; });
      may_know_ = std::max(may_know_, answered_before(static_cast<std::size_t>(read - reads_.begin())));
    }
    return;
  }
  if (seq == s.in_order) {
    p->arrived = true;
    s.in_order = p->end();
  }
  if (is_read(*p) && h.opcode == wire::kReadRequest && seq < s.in_order) {
    const std::uint32_t n = packets_of(h.dma_len, requester_.mtu);
    for (Copy& c : p->copies) c.arrived = c.arrived || (c.first == seq && c.packets == n);
  }
}

void HalfConnection::response_arrived(const wire::Header& h, Time now) {
  if (selective()) {
    ++responses_.packets_arrived;
    const Seq seq = expand(h.psn, responses_.frontier);
    if (Packet* p = responses_.find(seq); p != nullptr && !p->arrived) {
      p->arrived = true;
      // One without bytes is surely taken in order; ahead of a loss it may be dropped for want of a bitmap.
      if (p->payload == 0 && seq == confirmed_) {
        progressed(now);
        read_progress_ = now;
      }
    }
    // A READ is executed only after everything before it, so its response acknowledges that.
    const auto read = std::upper_bound(reads_.begin(), reads_.end(), seq,
                                       [](Seq v, const ReadAsked& r) { return v < r.first; });
    if (read != reads_.begin() && seq < responses_.max) {
      requests_.acked = std::max(requests_.acked, std::prev(read)->request + 1);
      advance_una(now);
    }
    return;
  }
  Stream& s = requests_;
  const Seq seq = expand(h.psn, s.una);
  Packet* p = s.find(seq);
  if (p == nullptr || !is_read(*p) || seq < s.una) return;
  if (seq > s.acked) s.acked = seq;  // acknowledges all requests before its own
  advance_una(now);
  if (seq == s.una) {
    ++p->received;
    advance_una(now);
  } else {
    implied_nak();  // an earlier response is missing
  }
}

void HalfConnection::ack_arrived(const wire::Header& h, Time now) { learn(requests_, h, now); }

void HalfConnection::read_ack_arrived(const wire::Header& h, Time now) { learn(responses_, h, now); }

void HalfConnection::learn(Stream& s, const wire::Header& h, Time now) {
  const std::uint8_t kind = h.syndrome & 0x60U;
  const Said said = said_by(h, s.una);
  const Seq upto = said.upto;
  // A NACK that was overtaken still tells of its trigger.
  const bool tells = selective() && h.syndrome == wire::kSyndromeNakSequence;
  if (upto > s.max || (upto + 1 < s.una && !tells)) return;
  if (upto > s.acked) s.acked = upto;
  if (&s == &requests_) {
    advance_una(now);
    if (!selective() && s.una < s.acked) implied_nak();  // READ responses skipped
    if (h.syndrome == wire::kSyndromeNakSequence) ++silence_.naks;
  } else if (s.acked > s.una) {
    s.una = s.acked;
    heard(s, responder_.selective_rto, now);
  }
  if (kind != 0) s.excused_below = s.max;
  if (said.keeps) {
    if (Packet* p = s.find(said.trigger)) p->sacked = true;
  }
}

// roce: a requester that goes back for a READ need not remember what lay behind it (wire-reference §2.1,
// "retry from that READ").
void HalfConnection::implied_nak() {
  requests_.excused_below = requests_.max;
  requests_.acked = requests_.una;
  ++silence_.naks;
}

// The end of a silence that was long enough: what was outstanding may have been presumed lost meanwhile, and
// waits for its turn to be sent (ARCHITECTURE, "After a time-out irn presumes everything outstanding lost").
void HalfConnection::heard(Stream& s, Duration rto, Time now) {
  if (now - s.progress >= rto) s.excused_below = s.max;
  s.progress = now;
}

// Moves the requester's una over what is acknowledged; a roce READ is done when its responses are here.
void HalfConnection::advance_una(Time now) {
  Stream& s = requests_;
  const Seq before = s.una;
  if (selective()) {
    s.una = std::max(s.una, s.acked);
    // READs below una wait for their answers from now on.
    for (auto r = reads_.rbegin(); r != reads_.rend() && r->request >= before; ++r) {
      if (r->request < s.una) r->acknowledged = now;
    }
  } else {
    while (Packet* p = s.find(s.una)) {
      if (is_read(*p)) {
        s.una = p->first + p->received;
        if (p->received < p->responses) break;
      } else if (p->first < s.acked) {
        s.una = p->end();
      } else {
        break;
      }
    }
  }
  if (s.una == before) return;
  heard(s, shortest_rto(), now);
  progressed(now);
}

void HalfConnection::request_placed(WirePsn psn, std::uint32_t bytes) {
  if (Packet* p = requests_.find(
          expand(psn, requests_.in_order > requests_.frontier ? requests_.in_order : requests_.frontier))) {
    p->placed += bytes;
  }
}

void HalfConnection::response_placed(WirePsn psn, std::uint32_t bytes, Time now) {
  if (!selective()) return;
  progressed(now);
  read_progress_ = now;
  if (Packet* p = responses_.find(expand(psn, responses_.frontier))) p->placed += bytes;
}

void HalfConnection::advance(Stream& s) {
  while (s.frontier < s.max) {
    const Packet* p = s.find(s.frontier);
    if (p == nullptr || !p->arrived || p->placed < p->payload) return;
    s.frontier = p->end();
  }
}

void HalfConnection::finish(Time now) {
  advance(requests_);
  if (requests_.una != requests_.max) {
    bad(now, "complete", "%llu packets were never acknowledged", ull(requests_.max - requests_.una));
  }
  if (requests_.frontier != requests_.max) {
    bad(now, "complete", "%llu packets never got through", ull(requests_.max - requests_.frontier));
  }
  if (!selective()) return;
  advance(responses_);
  // Nobody asks again for what has arrived, so a responder to which no READ ACK came through is left with it,
  // and falls silent after its tries (ARCHITECTURE, "A responder falls silent").
  const Packet* unheard = responses_.find(std::max(responses_.una, may_know_));
  if (responses_.frontier != responses_.max || (unheard != nullptr && unheard->times <= kResponderTries)) {
    bad(now, "complete", "READ responses were left over");
  }
  if (read_cursor_ != reads_.size()) bad(now, "complete", "a READ was never answered");
}

}  // namespace weft::check
