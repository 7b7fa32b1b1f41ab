// What the two boxes say to each other (message.h), and whether the other one is there.
//
// A box asks for its partner while it wants or holds an ownership: a question with a number drawn at random,
// which only an answer to it repeats. So no recorded answer proves that anybody is there, and a partner that
// was started anew is known by its instance. Everything else counts only from the instance that answered, to
// this instance.
#include "wan/logic/box_state.h"

namespace weft::wan {
namespace {

bool needs_partner(const BoxState& b) {
  return b.owned != 0 || b.free_givings.size() != b.givings.size() ||
         b.free_keepings.size() != b.keepings.size() || b.free_orderings.size() != b.orderings.size();
}

void ask(BoxState& b, Time now) {
  Partner& p = b.partner;
  if (p.question == 0) {  // the answer may take longer than it takes to ask again
    p.question = b.random.next() | 1U;
    p.unanswered_since = now;
  }
  p.ask_due = true;
  p.asked = now;
  arm_partner(b);
}

// Silence counts from the first question that has no answer yet. A partner that nobody asks may be gone, too.
Time given_up_at(const BoxState& b) {
  const Partner& p = b.partner;
  return (p.question != 0 ? p.unanswered_since : p.heard).after(patience(b));
}

// Between these two addresses a message of the partner came: whatever else passes does not decide where it is
// looked for.
void along(BoxState& b, const Frame& f) {
  b.here = f.destination;
  b.there = f.source;
}

constexpr Duration kLongest = seconds(60);  // that is believed

// How far away it is: of late, at most.
void measure(BoxState& b, const Message& answer, Time now) {
  const Duration trip = now - Time{static_cast<std::int64_t>(answer.asked_at - b.clock_starts)};
  if (trip.ps < 0 || trip > kLongest) return;  // not our clock
  Duration& known = b.partner.trip;
  known = std::max({known - (known - trip) / 8, trip, Duration{1}});
  // Data that is sent again before it can be acknowledged tells no time, so nothing else would lengthen this.
  if (!b.line_trip.measured() || b.line_trip.timeout() < trip) b.line_trip.sample(trip);
}
HalfName behind(const HalfName& half) { return {{}, half.responder, {}}; }

// Everything that was agreed with the partner is void.
void partner_gone(BoxState& b, bool anew, Time now) {
  partner_gone_for_keepings(b, anew, now);
  partner_gone_for_orderings(b, now);
  for (Giving& g : b.givings) {
    if (g.used && !g.orphan) orphan(b, g, now);
  }
}

void on_hello(BoxState& b, const Frame& f, const Message& m, Time now) {
  Partner& p = b.partner;
  if (m.answer) {  // a question
    p.answer_due = true;
    p.answer_to = m.sender;
    p.answer_with = m.lease;
    p.answer_asked_at = m.asked_at;
    p.answer_from = f.destination;
    p.answer_at = f.source;
    p.answer_about = m.half;
    if (!partner_there(b, now) || p.instance != m.sender) {
      if (b.partner.instance == 0) along(b, f);
      wish_for_partner(b, now);
      (void)is_behind_partner(b, {f.destination, f.source, {}}, now);  // surely along the way that it came
    }
    return;
  }
  const bool about = p.about_question != 0 && m.lease == p.about_question;
  const bool usual = p.question != 0 && m.lease == p.question;
  if (m.receiver != b.config.instance || (!usual && !about)) return b.counters.add(BoxCounter::not_heard);
  if (p.behind.size() == b.config.halves) p.behind.clear();  // what is needed is asked for again
  p.behind[behind(m.half)] = 0;
  if (about) {
    p.about_question = 0;
    if (!usual && partner_there(b, now)) return;
  }
  p.question = 0;
  p.heard = now;
  p.patience = nanoseconds(static_cast<std::int64_t>(std::min<std::uint64_t>(m.patience_ns, kLongest.ns())));
  p.parity = m.parity;
  p.parity_wait =
      nanoseconds(static_cast<std::int64_t>(std::min<std::uint64_t>(m.parity_wait_ns, kLongest.ns())));
  measure(b, m, now);
  along(b, f);
  const bool back = !std::exchange(p.there, true);
  if (std::exchange(p.lost, false) || p.instance != m.sender) b.counters.add(BoxCounter::partner_found);
  if (back && p.instance == m.sender) {
    for (Taking& t : b.takings) {
      if (t.phase == Phase::kOwned) renew(b, t, now);  // it let go of everything
    }
  }
  if (p.instance != m.sender) {
    const bool first = p.instance == 0;
    p.instance = m.sender;
    p.messages = p.leases = {};
    b.restoring.newest = 0;
    p.leaving = false;
    if (!first) {
      partner_gone(b, true, now);
      for (Taking& t : b.takings) {
        if (t.phase == Phase::kOwned || t.phase == Phase::kAsking) renew(b, t, now);
        // A new partner has nothing to let go of.
        else if (t.phase == Phase::kReleasing || t.phase == Phase::kFailed)
          on_released(b, t, now);
      }
    }
  }
  arm_partner(b);
}

// What is being asked for becomes an ownership or not; it is let go of when this is repeated.
void let_go_of_all(BoxState& b, Time now) {
  for (Taking& t : b.takings) {
    if (t.phase == Phase::kOwned && !t.draining) drain(b, t, now);
  }
}

void stamp(BoxState& b, Message& m, Say say) {
  m.say = say;
  m.sender = b.config.instance;
  m.receiver = b.partner.instance;
  m.number = ++b.messages;
}

Message message(BoxState& b, Say say) {
  Message m;
  stamp(b, m, say);
  if (say == Say::kHello) {
    m.patience_ns = static_cast<std::uint64_t>(patience(b).ns());
    m.parity = b.config.parity;
    if (m.parity.there()) m.parity_wait_ns = static_cast<std::uint64_t>(parity_wait(b).ns());
  }
  return m;
}

bool send(BoxState& b, const Message& m, const wire::Address& from, const wire::Address& to, Out& out) {
  encode(m, b.key, b.mad);
  out = {};
  out.frame.header = wire::mad_packet({static_cast<std::uint32_t>(m.number) & kPsnMask});
  out.frame.source = from;
  out.frame.destination = to;
  out.frame.payload = wire::kMadBytes;
  out.mad = &b.mad;
  out.last = true;
  b.counters.add(BoxCounter::said);
  return true;
}

bool question_along(BoxState& b, std::uint64_t question, Time asked, const wire::Address& here,
                    const wire::Address& there, Out& out) {
  Message m = message(b, Say::kHello);
  m.answer = true;
  m.lease = question;
  m.asked_at = static_cast<std::uint64_t>(asked.ps) + b.clock_starts;
  m.half.requester = here;
  m.half.responder = there;
  return send(b, m, here, there, out);
}

// A question that nobody may hear is not asked: the half knows when its partner has let go of everything.
bool say(BoxState& b, Taking& t, Out& out, Time now) {
  const bool own = std::exchange(t.own_due, false) && partner_there(b, now);
  const bool release = std::exchange(t.release_due, false);
  if (!own && !release) return false;
  Message m = message(b, own ? Say::kOwn : Say::kRelease);
  m.lease = t.lease;
  m.half = t.name;
  m.mode = t.mode;
  m.requester_qpn = t.requester_qpn;
  m.from = (t.phase == Phase::kOwned ? t.delivered : t.from).wire();
  return send(b, m, t.name.requester, t.name.responder, out);
}

bool say(BoxState& b, Giving& g, Out& out) {
  if (!g.used || g.orphan || (!g.owned_due && !g.report_due)) return false;
  const bool owned = std::exchange(g.owned_due, false);
  if (!owned) g.report_due = false;
  Message m = message(b, owned ? Say::kOwned : Say::kReport);
  m.lease = g.lease;
  m.stored = g.line.expected.wire();
  m.delivered = g.sender.una.wire();
  m.syndrome = g.syndrome;
  if (!owned) {
    m.refused = std::exchange(g.refused, false);
    if (m.refused) m.from = g.refused_at.wire();
    m.ahead_count = std::exchange(g.ahead_count, std::uint8_t{0});
    for (std::size_t i = 0; i < m.ahead_count; ++i) m.ahead[i] = g.ahead[i].wire();
  }
  if (g.report_due) queue(b.talking, g.talking, b.row_of(g));
  return send(b, m, g.name.responder, g.name.requester, out);
}

bool say_of_answers(BoxState& b, std::uint32_t row, Out& out) {
  const std::uint32_t index = (row - 2 * b.most() - 1) % b.most();
  if (row <= 3 * b.most()) {
    Keeping& k = b.keepings[index];
    k.talking = false;
    Message m;
    if (!say(k, m)) return false;
    stamp(b, m, Say::kAnswers);
    return send(b, m, k.name.responder, k.name.requester, out);
  }
  Ordering& o = b.orderings[index];
  o.talking = false;
  Message m;
  if (!say(o, m)) return false;
  stamp(b, m, Say::kAnswered);
  return send(b, m, o.name.requester, o.name.responder, out);
}

}  // namespace

bool partner_there(const BoxState& b, Time now) { return b.partner.there && now < given_up_at(b); }

bool is_behind_partner(BoxState& b, const HalfName& half, Time now) {
  Partner& p = b.partner;
  if (p.behind.contains(behind(half))) return true;
  if (p.asked_about != kNever && p.asked_about.after(b.config.hello) > now) return false;
  if (p.about_question == 0) p.about_question = b.random.next() | 1U;
  p.about = {half.requester, half.responder, {}};
  p.asked_about = now;
  p.about_due = true;
  return false;
}

void wish_for_partner(BoxState& b, Time now) {
  if (b.partner.asked == kNever || b.partner.asked.after(between_hellos(b)) <= now) ask(b, now);
}

bool on_message(BoxState& b, const Frame& f, std::span<const std::uint8_t> mad, Time now) {
  Message m;
  if (!decode(mad, b.key, m) || m.sender == b.config.instance) {
    b.counters.add(BoxCounter::not_heard);
    return false;
  }
  if (m.say == Say::kHello) {
    on_hello(b, f, m, now);
    b.counters.add(BoxCounter::heard);
    return true;
  }
  if (m.receiver != b.config.instance || m.sender != b.partner.instance) {
    b.counters.add(BoxCounter::not_heard);
    if (m.say != Say::kOwn) return true;
    if (b.partner.instance == 0) along(b, f);
    wish_for_partner(b, now);
    (void)is_behind_partner(b, {f.destination, f.source, {}}, now);
    return true;
  }
  // Numbers on the wire wrap: an old report would tell of packets that were not sent yet.
  if (!b.partner.messages.fresh(m.number)) {
    b.counters.add(BoxCounter::not_heard);
    return true;
  }
  along(b, f);
  b.counters.add(BoxCounter::heard);
  if (m.say == Say::kOwn) {
    on_own(b, m, now);
    return true;
  }
  if (m.say == Say::kRelease) {
    on_release(b, m);
    return true;
  }
  if (m.say == Say::kAnswers || m.say == Say::kAnswered) {
    m.say == Say::kAnswers ? on_answers(b, m, now) : on_answered(b, m, now);
    return true;
  }
  if (m.say == Say::kLeave) {
    b.partner.leaving = true;
    let_go_of_all(b, now);
    return true;
  }
  const auto index = static_cast<std::uint32_t>(m.lease & 0xF'FFFFU);
  if (index >= b.most()) return true;
  Taking& t = b.takings[index];
  if (t.lease != m.lease) {  // of an ownership that is over: its question came late, or somebody repeated it
    const bool asks_anew = (t.phase == Phase::kAsking || t.phase == Phase::kOwned) && !t.confirmed;
    if (m.say == Say::kOwned && !asks_anew) (void)b.disowned.push({{f.destination, f.source, {}}, m.lease});
    return true;
  }
  if (m.say == Say::kOwned) on_owned(b, t, now);
  // An agreement says how far it is, too.
  if (m.say == Say::kReport || m.say == Say::kOwned) on_report(b, t, m, now);
  if (m.say == Say::kReleased) on_released(b, t, now);
  return true;
}

bool next_message(BoxState& b, Out& out, Time now) {
  Partner& p = b.partner;
  if (std::exchange(p.answer_due, false)) {
    Message m = message(b, Say::kHello);
    m.receiver = p.answer_to;
    m.lease = p.answer_with;
    m.asked_at = p.answer_asked_at;
    m.half = p.answer_about;
    return send(b, m, p.answer_from, p.answer_at, out);
  }
  if (std::exchange(p.ask_due, false)) return question_along(b, p.question, p.asked, b.here, b.there, out);
  if (std::exchange(p.about_due, false))
    return question_along(b, p.about_question, p.asked_about, p.about.requester, p.about.responder, out);
  if (std::exchange(b.leave_due, false) && partner_there(b, now)) {
    return send(b, message(b, Say::kLeave), b.here, b.there, out);
  }
  if (Farewell f; b.farewells.take(f)) {
    Message m = message(b, Say::kReleased);
    m.lease = f.lease;
    return send(b, m, f.name.responder, f.name.requester, out);
  }
  if (Farewell f; b.disowned.take(f)) {
    Message m = message(b, Say::kRelease);
    m.lease = f.lease;
    return send(b, m, f.name.requester, f.name.responder, out);
  }
  if (Farewell f; b.refusals.take(f)) {
    Message m = message(b, Say::kAnswered);
    m.refused = true;
    m.lease = f.lease;
    return send(b, m, f.name.requester, f.name.responder, out);
  }
  for (std::uint32_t row = 0; b.talking.take(row);) {
    if (row > 2 * b.most()) {
      if (say_of_answers(b, row, out)) return true;
    } else if (row < b.most()) {
      b.takings[row].talking = false;
      if (say(b, b.takings[row], out, now)) return true;
    } else {
      b.givings[row - b.most()].talking = false;
      if (say(b, b.givings[row - b.most()], out)) return true;
    }
  }
  return false;
}

Time partner_deadline(const BoxState& b) {
  Time at = kNever;
  if (b.partner.there) at = given_up_at(b);
  if (needs_partner(b))
    at = std::min(at, b.partner.asked == kNever ? Time{} : b.partner.asked.after(between_hellos(b)));
  return at;
}

void on_partner_timer(BoxState& b, Time now) {
  Partner& p = b.partner;
  if (p.there && !partner_there(b, now)) {
    p.there = false;
    p.lost = p.question != 0;
    if (p.lost) b.counters.add(BoxCounter::partner_lost);
    partner_gone(b, false, now);
  }
  // It asked for an ownership, and was never heard since.
  for (Giving& g : b.givings) {
    if (!p.there && g.used && !g.orphan && g.agreed.after(patience(b)) <= now) orphan(b, g, now);
  }
  if (needs_partner(b)) wish_for_partner(b, now);
  if (b.leaving) leave(b, now);
  arm_partner(b);
}

void leave(BoxState& b, Time now) {
  b.leaving = b.leave_due = true;
  let_go_of_all(b, now);
}

}  // namespace weft::wan
