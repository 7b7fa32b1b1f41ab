#include "check/half_connection.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "check/opcodes.h"

namespace weft::check {
namespace {

unsigned long long ull(std::uint64_t v) { return v; }

}  // namespace

HalfConnection::HalfConnection(const QpFacts& requester, const QpFacts& responder, Report& report)
    : requester_(requester), responder_(responder), report_(report) {
  requests_.start(Seq::start(requester.sq_psn));
  responses_.start(Seq::start(requester.sq_psn));
  answered_ = requests_.max;
  confirmed_ = responses_.max;
}

void HalfConnection::Stream::start(Seq s) {
  max = una = told = acked = frontier = in_order = excused_below = s;
}

HalfConnection::Packet* HalfConnection::Stream::find(Seq s) {
  auto it =
      std::upper_bound(packets.begin(), packets.end(), s, [](Seq v, const Packet& p) { return v < p.first; });
  if (it == packets.begin()) return nullptr;
  --it;
  return s < it->end() ? &*it : nullptr;
}

// An implied acknowledgement that reaches `at` also covers the SACKed packets that follow.
Seq HalfConnection::past_sacked(Stream& s, Seq at) {
  for (const Packet* p = s.find(at); p != nullptr && p->sacked; p = s.find(at)) at = p->end();
  return at;
}

void HalfConnection::trim(Stream& s) {
  while (s.packets.size() > kHistory && s.packets.front().end() < std::min({s.una, s.frontier, answered_})) {
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

void HalfConnection::check_mode(const wire::Header& h, Time now) {
  if (h.mode != requester_.mode)
    bad(now, "marking", "psn %u bears mode %u", h.psn.v, static_cast<unsigned>(h.mode));
}

// --- what arrives ---

// The requester may send READ n only when READ n - reads_kept has all its answers. So a READ request tells
// that all responses below the returned number arrived.
Seq HalfConnection::answered_before(std::size_t read) const {
  const std::size_t kept = responder_.reads_kept;
  if (kept == 0 || read < kept) return responses_.una;
  return reads_[read - kept].first + reads_[read - kept].packets;
}

// An acknowledgement tells that the responder accepted every READ request below `upto`. An arrival does not:
// behind a loss, a responder without a bitmap drops a READ request unseen.
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
      const Seq told =
          past_sacked(responses_, answered_before(static_cast<std::size_t>(read - reads_.begin())));
      may_know_ = std::max(may_know_, told);
      std::erase_if(told_oldest_, [this](Seq v) { return v < responses_.una; });
      told_oldest_.push_back(told);
    }
    return;
  }
  if (seq == s.in_order) {
    p->arrived = true;
    s.in_order = p->end();
  }
  if (is_read(*p) && h.opcode == p->header.opcode && seq < s.in_order) {
    const std::uint32_t n = answers_to(h, requester_.mtu);
    for (Copy& c : p->copies) c.arrived = c.arrived || (c.first == seq && c.packets == n);
  }
}

void HalfConnection::response_arrived(const wire::Header& h, Time now) {
  if (selective()) {
    ++responses_.packets_arrived;
    const Seq seq = expand(h.psn, responses_.frontier);
    if (Packet* p = responses_.find(seq); p != nullptr && !p->arrived) {
      p->arrived = true;
      // An empty packet has no placement to show that it was taken. In order it was surely taken. Behind a
      // loss it may have been dropped, because the receiver had no bitmap.
      if (p->payload == 0 && seq == confirmed_) {
        progressed(now);
        read_progress_ = now;
      }
    }
    // A READ is executed after every request before it, so its response acknowledges all of them.
    const auto read = std::upper_bound(reads_.begin(), reads_.end(), seq,
                                       [](Seq v, const ReadAsked& r) { return v < r.first; });
    if (read != reads_.begin() && seq < responses_.max) {
      const Seq told = std::prev(read)->request + 1;
      tell(requests_, told, shortest_rto(), now);
      if (told > requests_.una) requests_.acked = std::max(requests_.acked, past_sacked(requests_, told));
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
  tell(s, upto, &s == &requests_ ? shortest_rto() : responder_.selective_rto, now);
  if (upto > s.acked) s.acked = upto;
  if (&s == &requests_) {
    advance_una(now);
    if (!selective() && s.una < s.acked) implied_nak();  // READ responses skipped
    if (h.syndrome == wire::kSyndromeNakSequence) ++silence_.naks;
    if (kind != 0) probe_.count = 0;
  } else if (s.acked > s.una) {
    s.una = s.acked;
    // A READ ACK restarts no timer if a READ request had told the same before.
    if (s.una > may_know_) heard(s, responder_.selective_rto, now);
  }
  if (kind != 0) s.excused_below = s.max;
  if (requester_.probe.ps != 0 && kind == 0 && probe_.out && upto == probe_.at + 1) s.excused_below = s.max;
  if (said.keeps) {
    if (Packet* p = s.find(said.trigger)) p->sacked = true;
  }
}

// roce: a requester that goes back for a READ may forget which later packets were acknowledged
// (docs/protocol/reliable.md#implied-nak).
void HalfConnection::implied_nak() {
  requests_.excused_below = requests_.max;
  requests_.acked = requests_.una;
  probe_.count = 0;
  ++silence_.naks;
}

// Progress ends a silence. If the silence was long enough for a time-out, the requester may have presumed
// lost everything outstanding, so it may resend all of that, now or later
// (docs/protocol/irn.md#retransmission-time-outs).
void HalfConnection::heard(Stream& s, Duration rto, Time now) {
  if (now - s.progress >= rto) s.excused_below = s.max;
  s.progress = now;
}

// Moves the requester's una over what is acknowledged; a roce READ is done when its responses are here.
void HalfConnection::tell(Stream& s, Seq upto, Duration rto, Time now) {
  if (upto <= s.told) return;
  if (now - s.told_at >= rto) s.excused_below = s.max;
  s.told = upto;
  s.told_at = now;
}

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
  probe_.count = 0;
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
  // A requester that has all responses does not ask again. If all its READ ACKs were lost, the responder
  // keeps the responses and falls silent after its tries (docs/protocol/irn.md#silence-of-the-responder).
  const Packet* unheard = responses_.find(std::max(responses_.una, may_know_));
  if (responses_.frontier != responses_.max || (unheard != nullptr && unheard->times <= kResponderTries)) {
    bad(now, "complete", "READ responses were left over");
  }
  if (read_cursor_ != reads_.size()) bad(now, "complete", "a READ was never answered");
}

}  // namespace weft::check
