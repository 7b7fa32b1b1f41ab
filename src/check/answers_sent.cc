// Judges what the responder sends: it acknowledges only what arrived and was placed, and answers READs in
// their turn.
#include <algorithm>

#include "check/half_connection.h"
#include "check/opcodes.h"

namespace weft::check {
namespace {

unsigned long long ull(std::uint64_t v) { return v; }

}  // namespace

void HalfConnection::ack_sent(const wire::Header& h, Time now) {
  check_mode(h, now);
  check_ack(requests_, h, now);
  if (selective()) reads_taken(said_by(h, requests_.frontier).upto);
}

void HalfConnection::read_ack_sent(const wire::Header& h, Time now) {
  check_mode(h, now);
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
  // The NAK of a READ that fails while it is answered names a request that was acknowledged before.
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
    // Skip every READ whose responses were all sent.
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
  check_mode(h, now);
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
    const std::uint8_t answer = is_atomic(p->header.opcode)
                                    ? std::uint8_t{wire::kAtomicAcknowledge}
                                    : response_opcode(static_cast<std::uint32_t>(seq - c.first), c.packets);
    fits = fits || h.opcode == answer;
  }
  if (!fits)
    bad(now, "READ", "response psn %u opcode 0x%02x fits no request that arrived", h.psn.v,
        static_cast<unsigned>(h.opcode));
  // docs/protocol/reliable.md#atomics: an atomic that is asked for again gets its saved answer.
  if (is_atomic(p->header.opcode)) {
    if (p->emitted != 0 && p->value != h.va) bad(now, "atomic", "psn %u is answered anew", h.psn.v);
    p->value = h.va;
  }
  if (index > p->emitted) bad(now, "READ", "response psn %u skips its predecessors", h.psn.v);
  p->emitted = std::max(p->emitted, index + 1);
}

void HalfConnection::selective_response_sent(const wire::Header& h, std::uint32_t payload, Time now) {
  Stream& s = responses_;
  const Seq seq = expand(h.psn, s.max);
  const std::uint32_t brings = h.opcode == wire::kAtomicAcknowledge ? 8 : payload;
  if (seq > s.max) return bad(now, "numbering", "response psn %u leaves a gap", h.psn.v);
  if (seq < s.max) {
    Packet* p = s.find(seq);
    if (p == nullptr)
      return bad(now, "cause", "response psn %u is far behind what was acknowledged", h.psn.v);
    wire::Header known = p->header;
    known.imm = h.imm;  // AETH.MSN moves on
    if (p->payload != brings || !same_packet(known, h))
      bad(now, "numbering", "response psn %u is resent as another packet", h.psn.v);
    // A responder that fell silent forgot what was SACKed. It may have been asked again since.
    if (p->times > kResponderTries) gave_up_ = true;
    return resent(s, *p, seq, responder_.selective_rto, responder_.remembers_sacks && !gave_up_, now);
  }
  if (read_cursor_ >= reads_.size()) return bad(now, "READ", "response psn %u belongs to no READ", h.psn.v);
  const ReadAsked& read = reads_[read_cursor_];
  advance(requests_);
  if (requests_.frontier <= read.request)
    bad(now, "READ", "response psn %u before its request was due", h.psn.v);
  if (s.una == s.max) s.progress = now;
  if (s.told >= s.max) {
    s.told_at = now;
    gave_up_ = false;
  }
  const std::uint64_t in_flight = s.max - std::max(s.una, may_know_);
  if (responder_.bdp_cap != 0 && in_flight >= responder_.bdp_cap) {
    bad(now, "window", "response psn %u with %llu in flight, cap %u", h.psn.v, ull(in_flight),
        responder_.bdp_cap);
  }
  const std::uint32_t mtu = requester_.mtu;
  const std::uint32_t bytes = std::min(mtu, read.length - std::min(read.length, read_packet_ * mtu));
  check_response_extension(h, read, now);
  const std::uint8_t opcode =
      read.atomic ? std::uint8_t{wire::kAtomicAcknowledge} : response_opcode(read_packet_, read.packets);
  if (payload != bytes || h.opcode != opcode) {
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
  p.payload = brings;
  s.max += 1;
  s.packets.push_back(std::move(p));
  trim(s);
}

}  // namespace weft::check
