// For tests: a pair of boxes between two endpoints that speak what the parameter says.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/transport/rc/report.h"
#include "tests/wan/by_hand.h"

namespace weft::wan {

// A requester at site 0 that sends what the test says, one message a packet, and a responder at site 1 that
// keeps what comes ahead. While `repairs`, the requester sends again what a NACK says is missing.
class Speaking : public testing::TestWithParam<wire::Mode> {
 protected:
  static constexpr wire::Address kA = wire::Address::v4(10, 0, 0, 1);
  static constexpr wire::Address kB = wire::Address::v4(10, 0, 1, 1);
  static constexpr Qpn kRequester{11};
  static constexpr Qpn kResponder{21};

  void begin(const std::function<void(std::uint32_t, BoxConfig&)>& change = {}) {
    boxes = std::make_unique<ByHand>(change);
    first = next = una = expected = Seq::start({0xFF'FFF8});
    boxes->heard = [this](std::uint32_t site, const ByHand::Seen& s) { hear(site, s.frame); };
    repairs = true;
    for (int i = 0; i < 100 && count(0, BoxCounter::owned) == 0; ++i) {
      write(1);
      boxes->run(milliseconds(2));
    }
    ASSERT_EQ(count(0, BoxCounter::owned), 1U);
    boxes->run(milliseconds(3));
    ASSERT_EQ(una, next);
    repairs = false;
    told.clear();
    given.clear();
  }
  std::uint64_t count(std::uint32_t box, BoxCounter c) const { return boxes->count(box, c); }
  void write(std::uint32_t n) {
    for (; n > 0; --n) emit(next);
  }
  void emit(Seq seq, std::uint8_t opcode = wire::kWriteOnly, std::uint8_t tos = 0) {
    next = std::max(next, seq + 1);
    Frame f;
    wire::Header& h = f.header;
    h.opcode = opcode;
    h.mode = GetParam();
    h.bits = wire::kAckReq;
    h.dest_qp = kResponder;
    h.psn = seq.wire();
    h.dma_len = 64;
    h.srx_msn = message(seq);
    f.payload = is_fetch(opcode) ? 0 : 64;
    f.source = kA;
    f.destination = kB;
    f.tos = tos;
    boxes->from_site(0, f);
  }
  // Of the packet's message, from 1.
  std::uint32_t message(Seq seq) const { return static_cast<std::uint32_t>(seq - first) + 1; }
  wire::Header said(std::uint8_t syndrome, Seq to, Seq trigger, bool kept) const {
    wire::Header h;
    h.opcode = wire::kAcknowledge;
    h.mode = GetParam();
    h.dest_qp = kRequester;
    const bool ack = syndrome == wire::kSyndromeAck;
    h.psn = ack ? (to - 1).wire() : to.wire();
    h.set_aeth(syndrome, static_cast<std::uint32_t>(to - first));
    if (syndrome > wire::kSyndromeNakSequence || syndrome < wire::kSyndromeAck) return h;
    if (GetParam() == wire::Mode::kSrnic && (ack || syndrome == wire::kSyndromeNakSequence)) {
      h.psn = trigger.wire();
      h.set_sack(to.wire());
      h.set_echo(message(trigger), 0);
      if (kept) h.ext_flags = wire::kEcxOutOfOrder;
    } else if (GetParam() == wire::Mode::kIrn && syndrome == wire::kSyndromeNakSequence) {
      h.set_sack(trigger.wire());
      if (!kept) h.ext_flags = wire::kSackNotKept;
    }
    return h;
  }
  void from_responder(const wire::Header& h) {
    Frame f;
    f.header = h;
    f.source = kB;
    f.destination = kA;
    boxes->from_site(1, f);
  }
  // Anybody on the line can say farewell.
  void farewell_from_line() {
    wire::CmMessage m;
    m.kind = wire::CmKind::kDreq;
    m.qpn = kRequester;
    wire::Mad mad;
    encode(m, mad);
    Frame f;
    f.header = wire::mad_packet({7});
    f.payload = wire::kMadBytes;
    f.source = kB;
    f.destination = kA;
    boxes->from_line(0, f, &mad);
  }
  // A packet of roce under the same names.
  void stray() {
    Frame f;
    f.header.opcode = wire::kWriteOnly;
    f.header.dest_qp = kResponder;
    f.header.psn = next.wire();
    f.payload = 64;
    f.source = kA;
    f.destination = kB;
    boxes->from_site(0, f);
  }
  // How many echoes of congestion marks the requester was told.
  std::size_t echoes() const {
    return static_cast<std::size_t>(std::count_if(told.begin(), told.end(), [](const wire::Header& h) {
      return (h.bits & wire::kBecn) != 0 || (h.ext_flags & wire::kCeEcho) != 0;
    }));
  }
  void hear(std::uint32_t site, const Frame& f) {
    const wire::Header& h = f.header;
    if (site == 0 && h.opcode == wire::kAcknowledge) {
      told.push_back(h);
      const Report r = rc_report(h, una);
      una = std::max(una, r.to);
      if (!repairs || h.syndrome != wire::kSyndromeNakSequence) return;
      const Seq last = keeps_ahead(GetParam()) ? r.trigger : next - 1;
      for (Seq s = r.to; s <= last; ++s) emit(s);
      return;
    }
    if (site != 1 || (!is_push(h.opcode) && !is_fetch(h.opcode))) return;
    const Seq seq = expand(h.psn, expected);
    given.push_back(seq);
    if (!answers || lost.erase(seq) != 0) return;
    if (seq > expected) ahead.insert(seq);
    if (seq == expected) ++expected;
    while (ahead.erase(expected) != 0) ++expected;
    const bool gap = seq > expected;
    from_responder(
        said(gap ? wire::kSyndromeNakSequence : wire::kSyndromeAck, expected, gap ? seq : expected - 1, gap));
  }
  Report last() const { return rc_report(told.back(), una); }

  std::unique_ptr<ByHand> boxes;
  Seq first{};
  Seq next{};      // to be sent
  Seq una{};       // everything before was acknowledged to the requester
  Seq expected{};  // of the responder
  std::set<Seq> ahead;
  std::set<Seq> lost;  // at the responder, once
  bool answers = true;
  bool repairs = false;
  std::vector<wire::Header> told;
  std::vector<Seq> given;
};
using Packets = std::vector<Seq>;

inline std::string name_of(const testing::TestParamInfo<wire::Mode>& i) {
  return std::string(wire::mode_name(i.param));
}

}  // namespace weft::wan
