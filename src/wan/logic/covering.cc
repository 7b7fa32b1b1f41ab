// Parity for what leaves on the line: every data frame of an owned half joins the open group, whatever
// connection it belongs to, because the line loses frames and knows no connections. So many slow connections
// fill groups as one fast connection does.
//
//   frame 0 ... frame k-1 | parity 0 ... parity m-1 | frame 0 ...
//   opened                  closing                   opened
//
// One group at a time: no data leaves between its last member and its parity, so the world needs the rows of
// one group only. A group that does not fill is closed by time.
#include <algorithm>

#include "core/wire/codec.h"
#include "wan/logic/box_state.h"

namespace weft::wan {
namespace {

bool covers(const BoxState& b) { return b.config.parity.there() && b.partner.parity.there(); }

Time closes_at(const BoxState& b) { return b.covering.opened.after(parity_wait(b) / 2); }

void close(BoxState& b) {
  Covering& c = b.covering;
  c.closing = true;
  c.next_row = 0;
  c.header_bytes = 0;
  if (c.members < b.config.parity.data) b.counters.add(BoxCounter::parity_short);
}

void begin(BoxState& b, const Frame& f, Time now) {
  Covering& c = b.covering;
  c.group = {};
  c.group.repair = b.config.parity.repair;
  c.group.sender = b.config.instance;
  c.group.receiver = b.partner.instance;
  c.group.number = ++c.number;
  c.first = f;
  c.members = 0;
  c.longest = 0;
  c.opened = now;
}

bool is_member(const ParityHeader& h, std::uint64_t lease, WirePsn psn) {
  for (std::uint32_t i = 0; i < h.runs; ++i) {
    const ParityRun& r = h.run[i];
    if (r.lease == lease && ((psn.v - r.first.v) & kPsnMask) < r.count) return true;
  }
  return false;
}

}  // namespace

std::uint8_t cover(BoxState& b, const Taking& t, Seq seq, bool again, const Frame& f, Time now) {
  if (!covers(b)) return Out::kNoMember;
  if (f.payload > b.config.covered) {
    b.counters.add(BoxCounter::uncovered);
    return Out::kNoMember;
  }
  Covering& c = b.covering;
  DCHECK(!c.closing);
  if (c.members == 0) begin(b, f, now);
  ParityHeader& h = c.group;
  const WirePsn psn = seq.wire();
  // Two members would be lost, and restored, as one.
  if (again && is_member(h, t.lease, psn)) return Out::kNoMember;
  ParityRun* last = h.runs == 0 ? nullptr : &h.run[h.runs - 1U];
  if (last != nullptr && last->lease == t.lease && ((last->first.v + last->count) & kPsnMask) == psn.v) {
    ++last->count;
  } else {
    h.run[h.runs++] = {t.lease, psn, 1};
  }
  c.longest = std::max(c.longest, kAroundPacket + wire::data_packet_bytes(f.header, f.payload) +
                                      static_cast<std::uint32_t>(wire::kIcrcBytes));
  const std::uint8_t member = c.members++;
  b.counters.add(BoxCounter::covered);
  // The next one may need a run of its own.
  if (c.members == b.config.parity.data || h.runs == kMostRuns) {
    close(b);
  } else if (member == 0) {
    b.deadlines.at_latest(b.parity_row(), closes_at(b));
  }
  return member;
}

bool next_parity(BoxState& b, Out& out, Time) {
  Covering& c = b.covering;
  if (!c.closing) return false;
  if (c.group.receiver != b.partner.instance || !covers(b)) {  // nobody would understand it
    c.closing = false;
    c.members = 0;
    return false;
  }
  if (c.header_bytes == 0) c.header_bytes = encode(c.group, b.key, c.bytes);
  out = {};
  wire::Header& h = out.frame.header;
  h.opcode = kParityOpcode;
  h.dest_qp = {1};
  h.psn = {static_cast<std::uint32_t>(c.group.number) & kPsnMask};
  out.frame.source = c.first.source;
  out.frame.destination = c.first.destination;
  out.frame.tos = c.first.tos;
  out.frame.payload = c.header_bytes + c.longest;
  out.last = true;
  out.row = c.next_row;
  c.bytes[0] = c.next_row;  // the row is not signed
  out.parity = std::span(c.bytes).first(c.header_bytes);
  b.counters.add(BoxCounter::parity_sent);
  if (++c.next_row == c.group.repair) {
    c.closing = false;
    c.members = 0;
  }
  return true;
}

void arm_parity(BoxState& b) {
  Time at = restoring_deadline(b);
  if (b.covering.members != 0 && !b.covering.closing) at = std::min(at, closes_at(b));
  if (at != kNever) b.deadlines.at_latest(b.parity_row(), at);
}

void on_parity_timer(BoxState& b, Time now) {
  const Covering& c = b.covering;
  if (c.members != 0 && !c.closing && closes_at(b) <= now) close(b);
  tell_what_is_due(b, now);
  forget_groups(b, now);
  forget_recent(b, now);
  arm_parity(b);
}

}  // namespace weft::wan
