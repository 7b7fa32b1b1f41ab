// Halves of a dialect whose packets say where they belong (`places_itself` in core's table): what comes ahead
// of a gap is kept, too, and each packet is answered by itself, as an endpoint of that dialect does
// (docs/protocol/irn.md#what-a-receiver-keeps).
//
//     delivered        expected
//   -----|----------------|  x  o o  x  o  |------>      o = kept ahead   x = missing
//        | kept, in order |  `held` of them
//
// The requester does not send again what it was told is kept. So a half that is to be let go of still takes
// what lies between, and nothing behind; what stays missing for `give_up` comes from nobody any more.
//
// What the far box has not got is lost with this one, so where a half is acknowledged `far`, a packet ahead
// is kept but not said to be: its requester sends it again.
//
// READs and atomics take one number and are kept like WRITEs: their answers have numbers of their own, and
// pass.
#include "core/transport/rc/report.h"
#include "wan/logic/box_state.h"

namespace weft::wan {
namespace {

void tell_of(BoxState& b, Taking& t, const Frame& f, Seq seq, bool kept) {
  if (t.trigger_count < t.ahead.triggers.size()) {
    Trigger& n = t.ahead.triggers[t.trigger_count++];
    n = {seq, echo_of(f.header), {}, kept, marked(f)};
    if (kept) n.hole = hole_before(b.pool, t, seq);
  } else if (marked(f) && t.marks < UINT16_MAX) {
    ++t.marks;  // the next acknowledgement echoes it
  }
  queue(b.answering, t.answering, b.index_of(t));
}

// It was taken before.
void tell_again(BoxState& b, Taking& t, const Frame& f) {
  t.ahead.copy = echo_of(f.header);
  t.copy_due = true;
  answer(b, t, t.ack_due);
}

void take_ahead(BoxState& b, Taking& t, const Frame& f, Seq seq) {
  const bool behind_all = t.held == 0 || seq > b.pool.top(t.block);
  if (behind_all && (t.draining || t.held_back)) {
    hold_back(t, f, seq);
    b.counters.add(BoxCounter::drop_waiting);
    return let_go(b, f);
  }
  LossContext loss{b.pool, b.loss, 1, false};
  const LossScheme& scheme = loss_scheme(t.mode);
  const Arrival what = scheme.classify(loss, t, seq);
  const bool kept = what == Arrival::kKeep && may_be_kept(f) && b.outgoing.has_room_to_spare(f, t.bytes);
  if (kept) {
    b.outgoing.put(b.index_of(t), seq, 0, f);
    t.bytes += Store::cost(f);
    t.ahead.bytes += Store::cost(f);
    scheme.hold(loss, t, seq, ends_request(f.header.opcode));
    b.counters.add(BoxCounter::kept_ahead);
  }
  const bool has = kept || what == Arrival::kDuplicate;
  const bool early = b.config.acknowledge == Acknowledge::kEarly;
  if (what != Arrival::kBeyond) tell_of(b, t, f, seq, has && early);
  if (kept) return;
  b.counters.add(what == Arrival::kDuplicate ? BoxCounter::site_duplicate : BoxCounter::drop_gap);
  if (t.held == 0) release_block(b.pool, t.block);
  let_go(b, f);
}

}  // namespace

void take_any(BoxState& b, Taking& t, const Frame& f, Time now) {
  const Seq seq = expand(f.header.psn, t.expected);
  const bool fetch = is_fetch(f.header.opcode);
  if (seq < t.from) {
    // The far endpoint's answer tells of what is the pair's by now, and ends at the far box.
    answer(b, t, t.ack_due);
    return pass(b, Side::kLine, f);
  }
  if (seq < t.expected || seq - t.expected < b.pool.window()) {
    t.heard = now;
    if (marked(f) && t.marks < UINT16_MAX && seq <= t.expected) ++t.marks;
  }
  if (seq == t.expected) return take_next(b, t, f, now);
  if (seq > t.expected) {
    if (t.held == 0) t.ahead.gap_since = now;
    take_ahead(b, t, f, seq);
  } else {
    b.counters.add(BoxCounter::site_duplicate);
    tell_again(b, t, f);
    // It asks for answers that were lost. Before that it has to come there.
    if (fetch && seq < t.delivered) {
      pass(b, Side::kLine, f);
    } else {
      let_go(b, f);
    }
  }
  arm(b, t, now);
}

void joined(BoxState& b, Taking& t, Seq from) {
  for (Seq s = from; s < t.expected; ++s) {
    Kept* row = b.outgoing.find(b.index_of(t), s);
    CHECK(row != nullptr);
    if (ends_request(row->frame.header.opcode)) t.msn = (t.msn + 1) & kPsnMask;
    row->msn = t.msn;
    t.ahead.bytes -= Store::cost(row->frame);
    t.ahead.last = echo_of(row->frame.header);
    if (fills_its_packet(row->frame.header.opcode)) t.mtu = row->frame.payload;
    t.awaits_answers = is_fetch(row->frame.header.opcode);
    b.counters.add(BoxCounter::taken);
  }
}

void forget_ahead(BoxState& b, Taking& t) {
  if (t.block == kNoBlock) return;
  const Seq top = b.pool.top(t.block);
  for (Seq s = t.expected; s <= top; ++s) {
    if (!b.pool.arrived(t.block, s)) continue;
    Kept* row = b.outgoing.find(b.index_of(t), s);
    CHECK(row != nullptr);
    t.bytes -= Store::cost(row->frame);
    b.released.push_back(row->frame.body);
    b.outgoing.take_out(row);
  }
  release_block(b.pool, t.block);
  t.held = 0;
  t.ahead.bytes = 0;
}

}  // namespace weft::wan
