// Answers that come over the line for requesters of the site (answers.h). Where they take the numbers of
// requests (`roce`) a requester that sees a gap asks again for all behind it; so what comes ahead of a gap is
// held until the partner has sent what is missing, and so is an ACK that would tell of the gap. Where they
// have numbers of their own every answer is handed on as it comes.
//
// A gap is given up after `gap_patience`: what is held is handed on, and the requester asks, as on a wire. It
// asks sooner if it is impatient, and then what is held goes: the responder will read its memory again.
#include "wan/logic/answers.h"
#include "wan/logic/box_state.h"

namespace weft::wan {
namespace {

constexpr std::uint16_t kReportAfter = 16;  // answers

std::uint32_t row_in_store(const BoxState& b, const Ordering& o) { return b.most() + b.index_of(o); }

void report(BoxState& b, Ordering& o) {
  o.report_due = true;
  queue(b.talking, o.talking, b.row_of(o));
}

void take_out(BoxState& b, Ordering& o, Kept* held) {
  o.bytes -= Store::cost(held->frame);
  --b.answers_held;
  b.incoming.take_out(held);
}

void let_go_of_held(BoxState& b, Ordering& o, Seq from) {
  for (Seq s = from; s < o.top && o.bytes != 0; ++s) {
    Kept* held = b.incoming.find(row_in_store(b, o), s);
    if (held == nullptr) continue;
    b.released.push_back(held->frame.body);
    take_out(b, o, held);
  }
}

void hand_on(BoxState& b, const Frame& f, Time now) {
  on_line_answer(b, f, now);
  pass(b, Side::kSite, f);
}

void pass_behind(BoxState& b, Ordering& o) {
  if (std::exchange(o.behind.there, false)) pass(b, Side::kSite, o.behind.frame);
}

// What is in order goes on; what is behind a gap goes.
void let_go_of_all(BoxState& b, Ordering& o, Time now) {
  for (const Seq end = o.in_order(); o.given < end; ++o.given) {
    Kept* held = b.incoming.find(row_in_store(b, o), o.given);
    if (held == nullptr) continue;
    const Frame f = held->frame;
    take_out(b, o, held);
    hand_on(b, f, now);
  }
  let_go_of_held(b, o, o.given);
  CHECK_OP(o.bytes, ==, 0U);
  pass_behind(b, o);
}

void remove(BoxState& b, Ordering& o, Time now) {
  let_go_of_all(b, o, now);
  end_row(b, b.free_orderings, b.ordering_of, o);
}

void begin_lease(Ordering& o, const Message& m, Time now) {
  o.lease = m.lease;
  o.mode = m.mode;
  o.given = o.top = Seq::start(m.stored);
  o.missing.clear();
  o.voids.clear();
  o.gap_since = now;
}

// `given` may have moved on, or the first of what is missing.
void settle(BoxState& b, Ordering& o, Time now, bool moved) {
  for (const Span& v : o.voids) {
    o.missing.remove(v.from, v.end);
    if (v.from <= o.top && o.top < v.end) o.top = v.end;
  }
  if (moved) o.gap_since = now;
  if (o.bytes == 0) o.given = o.in_order();
  o.voids.drop_before(o.given);
  if (o.given != o.in_order() || (o.behind.there && o.given == o.top))
    queue(b.ordering_ready, o.ready, b.index_of(o));
}

void miss(Ordering& o, Seq from, Seq end, Time now) {
  if (o.missing.empty()) o.gap_since = now;
  o.missing.add(from, end);
}

Ordering* find(BoxState& b, const HalfName& name) {
  const auto it = b.ordering_of.find(name);
  return it == b.ordering_of.end() ? nullptr : &b.orderings[it->second];
}

// One more hole would find no place.
bool splits(const Ordering& o, Seq seq) {
  return o.missing.full() && std::any_of(o.missing.begin(), o.missing.end(),
                                         [seq](const Span& s) { return s.from < seq && seq + 1 < s.end; });
}

}  // namespace

void on_answers(BoxState& b, const Message& m, Time now) {
  Ordering* o = find(b, m.half);
  if (o != nullptr && o->lease >> 20U > m.lease >> 20U) return;  // of an older lease
  if (o == nullptr) {
    if (!b.config.repair_answers || b.leaving || b.free_orderings.empty()) {
      (void)b.refusals.push({m.half, m.lease});
      return;
    }
    o = &begin_row(b.orderings, b.free_orderings, b.ordering_of, m.half, m.mode);
    begin_lease(*o, m, now);
    arm_partner(b);
  } else if (o->lease != m.lease) {
    let_go_of_all(b, *o, now);
    begin_lease(*o, m, now);
  }
  o->heard = now;
  const Seq before = o->in_order();
  const Seq end = expand(m.delivered, o->top);
  if (end > o->top && end - o->top <= b.config.window) {
    miss(*o, o->top, end, now);
    o->top = end;
  }
  o->voids.clear();
  for (std::size_t i = 0; i + 1 < m.ahead_count; i += 2) {
    const Seq from = expand(m.ahead[i], o->given);
    const Seq to = expand(m.ahead[i + 1], o->given);
    if (from < to && to - from <= b.config.window) o->voids.add(from, to);
  }
  // What the partner does not keep any more nobody waits for.
  const Seq kept_from = expand(m.from, o->given);
  if (kept_from > o->given && kept_from - o->given <= b.config.window * 2) {
    o->missing.drop_before(kept_from);
    o->top = std::max(o->top, kept_from);
  }
  settle(b, *o, now, o->in_order() != before);
  report(b, *o);
  arm(b, *o);
}

bool order_answer(BoxState& b, const Frame& f, Time now) {
  Ordering* found = find(b, answers_name(f));
  if (found == nullptr || found->mode != f.header.mode) return false;
  Ordering& o = *found;
  const bool apart = numbers_answers_apart(o.mode);
  const Seq seq = expand(f.header.psn, o.top);
  o.heard = now;
  if (seq < o.given || (seq >= o.top && seq - o.given >= b.config.window)) return false;
  const bool ahead = seq > o.top;
  if (seq < o.top && !o.missing.contains(seq)) {
    if (apart || b.incoming.find(row_in_store(b, o), seq) == nullptr) return false;
    b.counters.add(BoxCounter::line_duplicate);
    let_go(b, f);
    return true;
  }
  const bool next = seq == o.given;
  const bool hole = ahead && o.missing.full();
  if (!apart && !next && (hole || splits(o, seq) || !b.incoming.has_room(f, o.bytes))) {
    b.counters.add(BoxCounter::drop_line_full);  // the partner sends it again
    let_go(b, f);
    if (seq >= o.top && !hole) {
      miss(o, o.top, seq + 1, now);
      o.top = seq + 1;
    }
    arm(b, o);
    return true;
  }
  const Seq before = o.in_order();
  if (ahead) {
    miss(o, o.top, seq, now);
    b.counters.add(BoxCounter::answers_ahead);
    report(b, o);
  }
  if (seq < o.top) report(b, o);
  o.missing.remove(seq, seq + 1);
  o.top = std::max(o.top, seq + 1);
  if (apart) {
    o.given = o.in_order();
  } else if (next) {
    hand_on(b, f, now);
    ++o.given;
  } else {
    b.incoming.put(row_in_store(b, o), seq, 0, f);
    o.bytes += Store::cost(f);
    ++b.answers_held;
  }
  settle(b, o, now, o.in_order() != before);
  if (++o.unsaid >= kReportAfter || ends_answer(f.header.opcode)) report(b, o);
  if (o.report_at == kNever) o.report_at = now + b.partner.trip / 4;
  arm(b, o);
  return !apart;
}

bool waits_behind_held(BoxState& b, const Frame& f) {
  Ordering* o = find(b, answers_name(f));
  if (o == nullptr || o->mode != f.header.mode || numbers_answers_apart(o->mode)) return false;
  if (o->given == o->top || expand(f.header.psn, o->given) < o->given) return false;
  if (o->behind.there) let_go(b, o->behind.frame);
  o->behind = {true, {}, f};
  return true;
}

void ask_again(BoxState& b, const Frame& f) {
  if (b.answers_held == 0 || numbers_answers_apart(f.header.mode)) return;
  for (Ordering& o : b.orderings) {
    if (!o.used || o.missing.empty() || o.mode != f.header.mode) continue;
    if (o.name.requester != f.source || o.name.responder != f.destination) continue;
    const Seq seq = expand(f.header.psn, o.given);
    if (seq >= o.top || seq + b.config.window < o.given) continue;
    const Seq from = o.in_order();
    let_go_of_held(b, o, from);
    o.missing.clear();
    o.missing.add(from, o.top);
    b.counters.add(BoxCounter::answers_asked_again);
    report(b, o);
  }
}

bool next_answer_for_site(BoxState& b, Out& out, Time now) {
  for (std::uint32_t index = 0; b.ordering_ready.take(index);) {
    Ordering& o = b.orderings[index];
    o.ready = false;
    if (!o.used) continue;
    for (const Seq end = o.in_order(); o.given < end;) {
      Kept* held = b.incoming.find(row_in_store(b, o), o.given);
      ++o.given;
      if (held == nullptr) continue;
      out = {held->frame, nullptr, true};
      take_out(b, o, held);
      on_line_answer(b, out.frame, now);
      settle(b, o, now, false);
      return true;
    }
    if (o.given == o.top && std::exchange(o.behind.there, false)) {
      out = {o.behind.frame, nullptr, true};
      return true;
    }
  }
  return false;
}

bool say(Ordering& o, Message& m) {
  if (!o.used || !std::exchange(o.report_due, false)) return false;
  o.unsaid = 0;
  o.report_at = kNever;
  m.lease = o.lease;
  m.from = o.top.wire();
  m.delivered = o.in_order().wire();
  for (const Span& s : o.missing) {
    m.ahead[m.ahead_count++] = s.from.wire();
    m.ahead[m.ahead_count++] = s.end.wire();
  }
  return true;
}

void end_ordering(BoxState& b, const HalfName& name, Time now) {
  if (Ordering* o = find(b, name); o != nullptr) remove(b, *o, now);
}

void partner_gone_for_orderings(BoxState& b, Time now) {
  for (Ordering& o : b.orderings) {
    if (o.used) remove(b, o, now);
  }
}

Time deadline_of(const BoxState& b, const Ordering& o) {
  if (!o.used) return kNever;
  const Time end = o.missing.empty() ? o.heard.after(quiet(b)) : o.gap_since.after(gap_patience(b));
  return std::min(end, o.report_at);
}

void on_timer(BoxState& b, Ordering& o, Time now) {
  if (!o.used) return;
  if (o.report_at <= now) {
    o.report_at = kNever;
    report(b, o);
  }
  if (deadline_of(b, o) <= now) {
    if (o.missing.empty() && o.given == o.top && !o.behind.there) return remove(b, o, now);
    if (o.missing.empty()) {
      o.heard = now;  // until it was polled
    } else {
      b.counters.add(BoxCounter::answers_given_up);
      o.missing.clear();
    }
    settle(b, o, now, true);
    report(b, o);
  }
  arm(b, o);
}

}  // namespace weft::wan
