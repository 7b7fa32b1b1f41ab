// What passes, and what is learned from it. A data packet names its receiver only, so who sends it, the queue
// pair that acknowledgements go to, and how the responder counts messages, are learned from the
// acknowledgements: several in a row must fit one stream and no other, by the packet that they name and by
// the messages between them.
#include "core/transport/rc/report.h"
#include "wan/logic/box_state.h"

namespace weft::wan {

const Watch::Mark* Watch::find(Seq seq) const {
  for (std::uint32_t i = 0; i < mark_count; ++i) {
    const Mark& m = marks[(oldest_mark + i) % kMarks];
    if (m.seq == seq) return &m;
  }
  return nullptr;
}

void Watch::mark(Seq seq, Time now, Time horizon) {
  for (; mark_count != 0 && at(0).at < horizon; --mark_count) oldest_mark = (oldest_mark + 1) % kMarks;
  if (mark_count == 0) stride = 1;
  if (mark_count != 0 && ++passed_over < stride) return;
  if (mark_count == kMarks) {  // every second one stays
    for (std::uint32_t i = 0; i < kMarks / 2; ++i) at(i) = at(2 * i + 1);
    mark_count = kMarks / 2;
    stride *= 2;
  }
  at(mark_count++) = {seq, now, ends};
  passed_over = 0;
}

void ask_along(BoxState& b, const HalfName& name, Time now) {
  b.here = name.requester;
  b.there = name.responder;
  wish_for_partner(b, now);
}

namespace {

bool rests(const BoxState& b, const Taking& t, Time now) { return now - t.passed_at > patience(b); }
// What passed so long ago is not acknowledged any more.
bool forgotten(const BoxState& b, const Taking& t, Time now) {
  return b.partner.trip.ps != 0 && rests(b, t, now);
}

// The stream begins anew with the packet at `next`; who its requester is stays known.
void start_watching(Watch& w, Seq next, std::uint32_t ends, Time now) {
  w.seen = true;
  w.since = now;
  w.asks = false;
  w.calm = 0;
  w.next = next;
  w.ends = ends;
  w.first = w.confirmed = w.acked = next;
  w.forget_marks();
}

HalfName between(const HalfName& n) { return {n.requester, n.responder, {}}; }

// Acknowledgements are looked for among the streams between their two addresses whose requester is not known.
void join_unlearned(BoxState& b, Taking& t) {
  if (std::exchange(t.among_unlearned, true)) return;
  const std::uint32_t index = b.index_of(t);
  const auto [it, alone] = b.unlearned.insert({between(t.name), index});
  t.last_unlearned = kNobody;
  t.next_unlearned = alone ? kNobody : it->second;
  if (alone) return;
  b.takings[it->second].last_unlearned = index;
  it.value() = index;
}

void leave_unlearned(BoxState& b, Taking& t) {
  if (!std::exchange(t.among_unlearned, false)) return;
  if (t.next_unlearned != kNobody) b.takings[t.next_unlearned].last_unlearned = t.last_unlearned;
  if (t.last_unlearned != kNobody) {
    b.takings[t.last_unlearned].next_unlearned = t.next_unlearned;
  } else if (t.next_unlearned != kNobody) {
    b.unlearned[between(t.name)] = t.next_unlearned;
  } else {
    b.unlearned.erase(between(t.name));
  }
}

void unlearn(BoxState& b, Taking& t) {
  if (!t.learned) return;
  b.acked_taking_of.erase(acked_name(t.name, t.requester_qpn));
  b.counters.add(BoxCounter::unlearned);
  t.learned = false;
  t.requester_qpn = kNoQpn;
  t.watch = {};
  join_unlearned(b, t);
}

void watch(BoxState& b, Taking& t, const Frame& f, Time now) {
  const wire::Header& h = f.header;
  Watch& w = t.watch;
  // Nothing travels for so long: a connection may begin anew with lower numbers.
  const bool anew = now - t.forwarded_at > patience(b);
  Seq seq = t.forwarded == Seq{} ? Seq::start(h.psn) : expand(h.psn, t.forwarded);
  if (anew && seq < t.forwarded) seq = Seq::start(h.psn);  // or the count sinks below zero, a rest at a time
  t.passed_at = now;
  if (seq >= t.forwarded || anew) {
    t.forwarded = seq;
    t.forwarded_at = now;
  }
  if (is_fetch(h.opcode) && !numbers_answers_apart(h.mode)) {
    const std::uint32_t numbers = numbers_of(h, t.mtu);
    const bool again = seq < w.next && !anew;
    w.calm = 0;
    w.seen = w.seen && numbers != 0 && (seq == w.next || again);
    if (!w.seen || again) return;
    w.next += numbers;
    ++w.ends;
    w.asks = false;
    t.forwarded = std::max(t.forwarded, w.next - 1);
    return;
  }
  if (fills_its_packet(h.opcode)) t.mtu = f.payload;
  if (!w.seen) {
    unlearn(b, t);  // the count of messages is broken
    start_watching(w, seq, 0, now);
  }
  if (seq > w.next || (seq < w.next && anew)) {  // the box missed some, or the numbers begin anew
    w.seen = false;
    return watch(b, t, f, now);
  }
  if (seq < w.next) return;
  ++w.next;
  ++w.calm;
  if (ends_request(h.opcode)) ++w.ends;
  w.asks = (h.bits & wire::kAckReq) != 0;
  if (w.asks) w.mark(seq, now, now - std::min(now - Time{}, line_wait(b) * 2));
}

// Everything sent so far will be acknowledged, and nothing after it was ever on its way.
void ask(BoxState& b, Taking& t, Time now) {
  const Watch& w = t.watch;
  if (t.phase != Phase::kWatching || !t.learned || !w.seen || w.calm < b.config.calm) return;
  if (w.next <= t.forwarded || (!w.asks && w.acked != w.next) || now < t.not_before) return;
  if (b.leaving || b.partner.leaving) return;
  if (!partner_there(b, now)) return ask_along(b, t.name, now);
  if (!is_behind_partner(b, t.name, now)) return;
  b.here = t.name.requester;
  b.there = t.name.responder;
  t.phase = Phase::kAsking;
  t.from = w.next;
  t.confirmed = t.held_back = t.draining = t.forget = t.full = t.nak_sent = false;
  t.ack_due = t.nak_due = t.copy_due = false;
  t.trigger_count = 0;
  t.marks = 0;
  t.strange = t.asked = 0;
  t.heard = t.owing = now;
  ++b.owned;
  arm_partner(b);
  renew(b, t, now);
}

Taking* place(BoxState& b, const HalfName& name, wire::Mode mode, Time now) {
  if (b.free_takings.empty()) {
    b.blind_since = now;
    // The next one that only passes, or rests, gives its place up: a stranger costs a stranger.
    for (std::uint32_t i = 0; i < b.most() && b.free_takings.empty(); ++i) {
      Taking& t = b.takings[b.oldest++ % b.most()];
      if (t.phase == Phase::kWatching && (!t.learned || rests(b, t, now))) forget(b, t);
      if (i == 8) break;
    }
  }
  if (b.free_takings.empty()) return nullptr;
  Taking& t = b.takings[b.free_takings.back()];
  b.free_takings.pop_back();
  t.name = name;
  t.mode = mode;
  t.phase = Phase::kWatching;
  b.taking_of[name] = b.index_of(t);
  join_unlearned(b, t);
  return &t;
}

// One acknowledgement says: requester_qpn sends the stream that has this mark.
void agree(BoxState& b, Taking& t, const Watch::Mark& m, const wire::Header& h) {
  Watch& w = t.watch;
  const std::uint32_t offset = (h.aeth_msn() - m.ends) & kPsnMask;
  if (w.agreed == 0 || w.candidate != h.dest_qp || w.offset != offset) {
    w.agreed = 1;
    w.candidate = h.dest_qp;
    w.offset = offset;
    w.confirmed = m.seq + 1;
    return;
  }
  if (m.seq + 1 <= w.confirmed) return;  // again
  w.confirmed = m.seq + 1;
  if (++w.agreed < b.config.agreements) return;
  const HalfName name = acked_name(t.name, h.dest_qp);
  if (b.acked_taking_of.contains(name)) return;
  leave_unlearned(b, t);
  t.learned = true;
  t.requester_qpn = h.dest_qp;
  w.acked = w.confirmed;
  b.acked_taking_of[name] = b.index_of(t);
  b.counters.add(BoxCounter::learned);
}

void learn(BoxState& b, const Frame& f, Time now) {
  Taking* found = nullptr;
  const Watch::Mark* mark = nullptr;
  bool clear = settled(b, b.blind_since, now);
  const auto head = b.unlearned.find(HalfName{f.destination, f.source, {}});
  for (std::uint32_t i = head == b.unlearned.end() ? kNobody : head->second; i != kNobody;
       i = b.takings[i].next_unlearned) {
    Taking& t = b.takings[i];
    b.counters.add(BoxCounter::compared);
    if (t.mode != f.header.mode) continue;
    if (forgotten(b, t, now)) continue;
    if (b.partner.trip.ps == 0) ask_along(b, t.name, now);
    const Seq seq = rc_report(f.header, t.watch.next).to - 1;
    const Watch::Mark* m = t.watch.seen ? t.watch.find(seq) : nullptr;
    if (m != nullptr) {
      clear = clear && found == nullptr;
      found = &t;
      mark = m;
    } else if (t.watch.may_have_asked(seq)) {
      clear = false;  // or its own, which was passed over
    } else {
      clear = clear && t.watch.seen && settled(b, t.watch.since, now);
      if (t.watch.candidate == f.header.dest_qp) t.watch.agreed = 0;  // it is not what it was taken for
    }
  }
  if (found == nullptr || !clear) return b.counters.add(BoxCounter::ambiguous);
  agree(b, *found, *mark, f.header);
}

void confirm(BoxState& b, Taking& t, const wire::Header& h, Time now) {
  Watch& w = t.watch;
  if (!w.seen) return;
  const Report report = rc_report(h, w.next);
  const Seq seq = report.to - 1;
  if (!report.positive) return;
  // What never passed, or passed long ago, is acknowledged: the queue pair sends to somebody else by now.
  if (seq >= w.next || forgotten(b, t, now)) return unlearn(b, t);
  const Watch::Mark* m = w.find(seq);
  if (m != nullptr && ((h.aeth_msn() - m->ends) & kPsnMask) != w.offset) return unlearn(b, t);
  w.acked = std::max(w.acked, seq + 1);
}

}  // namespace

void forget(BoxState& b, Taking& t) {
  CHECK_OP(t.bytes, ==, 0U);
  pass_farewell(b, t);
  if (t.learned) b.acked_taking_of.erase(acked_name(t.name, t.requester_qpn));
  leave_unlearned(b, t);
  b.taking_of.erase(t.name);
  b.deadlines.remove(b.index_of(t));
  const bool queued[3] = {t.talking, t.answering, t.ready};
  t = Taking{};
  t.talking = queued[0];
  t.answering = queued[1];
  t.ready = queued[2];
  b.free_takings.push_back(b.index_of(t));
}

// What was owned passes again, from `expected` on; or nothing of it is known any more.
void watch_again(BoxState& b, Taking& t, Time now) {
  if (t.over) return forget(b, t);
  const bool strange = t.forget;
  t.phase = Phase::kWatching;
  t.confirmed = t.draining = t.forget = false;
  if (strange) return unlearn(b, t);
  start_watching(t.watch, t.expected, t.msn - t.watch.offset, now);
  t.forwarded = std::max(t.forwarded, t.expected - 1);
  t.forwarded_at = t.passed_at = now;
  if (t.held_back) {
    t.nak_due = true;
    queue(b.answering, t.answering, b.index_of(t));
  }
  t.held_back = false;
}

// Another dialect under the same names is another connection.
bool is_another(BoxState& b, Taking& t, const Frame& f, Time now) {
  if (t.mode == f.header.mode) return false;
  b.counters.add(BoxCounter::other_mode);
  if (t.phase != Phase::kWatching) {
    if (!t.over) end_soon(b, t, now);
    let_go(b, f);
    return true;
  }
  unlearn(b, t);
  t.watch = {};
  t.forwarded = {};
  t.mode = f.header.mode;
  return false;
}

void follow(BoxState& b, const HalfName& name, wire::Mode mode, Qpn requester_qpn, WirePsn first,
            std::uint32_t mtu, Time now) {
  const auto it = b.taking_of.find(name);
  Taking* t = it == b.taking_of.end() ? place(b, name, mode, now) : &b.takings[it->second];
  if (t == nullptr) return b.counters.add(BoxCounter::table_full);
  if (t->phase != Phase::kWatching) {
    t->over = true;
    return end_soon(b, *t, now);
  }
  unlearn(b, *t);
  const HalfName acked = acked_name(name, requester_qpn);
  if (const auto held = b.acked_taking_of.find(acked); held != b.acked_taking_of.end()) {
    Taking& earlier = b.takings[held->second];
    if (earlier.phase != Phase::kWatching) return;  // the acknowledgements will teach it
    unlearn(b, earlier);
  }
  t->mode = mode;
  t->mtu = mtu;
  t->forwarded = Seq::start(first) - 1;
  t->forwarded_at = t->passed_at = now;
  t->watch = {};
  start_watching(t->watch, Seq::start(first), 0, now);
  leave_unlearned(b, *t);
  t->learned = true;
  t->requester_qpn = requester_qpn;
  b.acked_taking_of[acked] = b.index_of(*t);
  b.counters.add(BoxCounter::followed);
}

void on_site_request(BoxState& b, const Frame& f, Time now) {
  const HalfName name{f.source, f.destination, f.header.dest_qp};
  if (is_fetch(f.header.opcode)) ask_again(b, f);
  const auto it = b.taking_of.find(name);
  Taking* t = it == b.taking_of.end() ? place(b, name, f.header.mode, now) : &b.takings[it->second];
  if (t == nullptr) {
    b.counters.add(BoxCounter::table_full);
    return pass(b, Side::kLine, f);
  }
  if (is_another(b, *t, f, now)) return;
  if (t->over) {
    if (expand(f.header.psn, t->from) < t->from) return pass(b, Side::kLine, f);
    b.counters.add(BoxCounter::drop_waiting);
    return let_go(b, f);
  }
  switch (t->phase) {
    case Phase::kWatching:
      watch(b, *t, f, now);
      pass(b, Side::kLine, f);
      return ask(b, *t, now);
    case Phase::kAsking:
    case Phase::kReleasing: {
      const Seq border = t->phase == Phase::kAsking ? t->from : t->expected;
      const Seq seq = expand(f.header.psn, border);
      if (seq < t->from) return pass(b, Side::kLine, f);
      t->heard = now;
      if (seq < border && !t->forget) {
        answer(b, *t, t->ack_due);
        // It asks for answers that were lost.
        if (is_fetch(f.header.opcode) && numbers_answers_apart(t->mode)) return pass(b, Side::kLine, f);
      } else {
        hold_back(*t, f, seq);
      }
      b.counters.add(BoxCounter::drop_waiting);
      return let_go(b, f);
    }
    case Phase::kOwned:
      return take(b, *t, f, now);
    case Phase::kFailed:
      return refuse_again(b, *t, f, now);
    case Phase::kFree:
      break;
  }
}

bool on_line_acknowledge(BoxState& b, const Frame& f, Time now) {
  const auto it = b.acked_taking_of.find(HalfName{f.destination, f.source, f.header.dest_qp});
  if (it == b.acked_taking_of.end()) {
    if (f.header.syndrome <= wire::kSyndromeAck) learn(b, f, now);
    return false;
  }
  Taking& t = b.takings[it->second];
  if (t.mode != f.header.mode) return false;
  if (t.phase == Phase::kWatching) {
    confirm(b, t, f.header, now);
    ask(b, t, now);
    return false;
  }
  // Below `from` it is the endpoint's, and tells when everything is acknowledged.
  // `expected` may be further from there than numbers of the wire tell apart.
  const Report report = rc_report(f.header, t.phase == Phase::kAsking ? t.from : t.expected);
  const bool acks = report.positive;
  const Seq seq = report.to;
  if (seq <= t.from && !(seq == t.from && !acks)) {
    if (t.phase == Phase::kAsking && acks) {
      t.watch.acked = std::max(t.watch.acked, seq);
      if (t.confirmed && t.watch.acked == t.from) begin_owning(b, t, now);
    }
    return false;
  }
  // Answering a READ failed.
  if (t.phase == Phase::kOwned && t.reading && !acks && seq >= t.expected && seq < t.read_end) return false;
  if (numbers_answers_apart(t.mode) && f.header.syndrome > wire::kSyndromeNakSequence && seq < t.expected)
    return false;
  b.counters.add(BoxCounter::swallowed);
  return true;
}

}  // namespace weft::wan
