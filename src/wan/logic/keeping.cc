// Answers of the site's responders, on their way over the line (answers.h): each is kept until the partner
// has it, and leaves from the store in its turn. What the partner misses is sent again, and so is what nobody
// says anything of. At most a window of them is on the line.
//
// What an answer says is decided once: while a copy is kept, the same answer of the responder is not sent
// instead of it, because what comes behind may be older. An answer that begins where none is kept, with
// others on their way, belongs to a READ that was repeated: then a new lease begins, and waits.
//
// Where there is no room an answer passes without a copy, unless others wait before it: then it is dropped,
// as a full queue drops it. An ACK waits for the answers before it, and no longer. A partner that says
// nothing for kMostTries time-outs is left alone: answers pass, and what the responder repeats is dropped for
// as long as the partner may still hold what came before (`let_go_by`).
#include "wan/logic/answers.h"
#include "wan/logic/box_state.h"

namespace weft::wan {
namespace {

constexpr std::uint8_t kMostTries = 6;
constexpr std::uint16_t kSayAgain = 32;            // answers, until an unconfirmed lease is said again
constexpr std::uint32_t kTail = 32;                // answers that a time-out sends again
constexpr std::uint32_t kMostNumbers = 1U << 22U;  // kept of a stream: half of what can be told apart

std::uint32_t row_in_store(const BoxState& b, const Keeping& k) { return b.most() + b.index_of(k); }
Kept* copy_of(BoxState& b, const Keeping& k, Seq seq) { return b.outgoing.find(row_in_store(b, k), seq); }

// When a copy left last, in 2^20 ps; the store has 32 bits for it.
std::uint32_t stamp(Time now) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(now.ps) >> 20U);
}
// It may still be on its way. `trip` is the longest of late, and stamps are rounded.
bool left_lately(const BoxState& b, const Kept& copy, Time now) {
  return Duration{static_cast<std::int64_t>(stamp(now) - copy.msn) << 20U} < b.partner.trip * 7 / 8;
}

Duration timeout(const BoxState& b, const Keeping& k) {
  const Duration once =
      b.partner.trip.ps == 0 ? b.config.line_timeout : b.partner.trip * 3 / 2 + b.config.least_line_timeout;
  return once * (std::int64_t{1} << std::min<unsigned>(k.tries, 4));
}

// By then the partner holds nothing of what was sent to it before: it gives a gap up earlier.
Duration let_go_by(const BoxState& b) { return gap_patience(b) * 2 + line_wait(b); }

void say(BoxState& b, Keeping& k) {
  k.say_due = true;
  queue(b.talking, k.talking, b.row_of(k));
}

void send_soon(BoxState& b, Keeping& k) {
  if (!k.waiting && !k.alone) queue(b.line_ready, k.ready, b.most() + b.index_of(k));
}

// What leaves next for the first time is at `sent`: nobody waits at numbers that no answer has.
void skip_voids(BoxState& b, Keeping& k) {
  while (k.sent < k.nxt && copy_of(b, k, k.sent) == nullptr) ++k.sent;
}

void let_go_before(BoxState& b, Keeping& k, Seq upto) {
  for (; k.una < upto; ++k.una) {
    Kept* copy = copy_of(b, k, k.una);
    if (copy == nullptr) continue;
    k.bytes -= Store::cost(copy->frame);
    b.released.push_back(copy->frame.body);
    b.outgoing.take_out(copy);
  }
  k.sent = std::max(k.sent, k.una);
  k.voids.drop_before(k.una);
  k.missing.drop_before(k.una);
  k.repeated.drop_before(k.una);
}

void pass_behind(BoxState& b, Keeping& k) {
  if (std::exchange(k.behind.there, false)) pass(b, Side::kLine, k.behind.frame);
}

// What has not left passes as on a wire.
void pass_unsent(BoxState& b, Keeping& k) {
  let_go_before(b, k, k.sent);
  for (; k.sent < k.nxt; k.una = ++k.sent) {
    Kept* copy = copy_of(b, k, k.sent);
    if (copy == nullptr) continue;
    const Frame f = copy->frame;
    k.bytes -= Store::cost(f);
    b.outgoing.take_out(copy);
    b.counters.add(BoxCounter::answers_unkept);
    pass(b, Side::kLine, f);
  }
  pass_behind(b, k);
}

// The next answer of the responder has this number, and nothing of what was before counts any more.
void begin_lease(BoxState& b, Keeping& k, Seq seq, Time now) {
  // Whoever has everything that left holds nothing.
  const bool holds = !numbers_answers_apart(k.mode) && (k.waiting || k.has != k.sent);
  let_go_before(b, k, k.nxt);
  // While it waits nothing has left, so the same word of the partner will do.
  if (!k.waiting) {
    k.lease = (++b.leases << 20U) | b.index_of(k);
    b.counters.add(BoxCounter::answers_anew, holds ? 1 : 0);
  }
  k.una = k.sent = k.nxt = k.has = k.starts = k.asked_upto = k.repair = k.seen = seq;
  k.voids.clear();
  k.missing.clear();
  k.repeated.clear();
  k.confirmed = false;
  k.waiting = holds;
  k.tries = 0;
  k.unheard = 0;
  k.timer = now;
  say(b, k);
}

void remove(BoxState& b, Keeping& k) {
  let_go_before(b, k, k.nxt);
  CHECK_OP(k.bytes, ==, 0U);
  pass_behind(b, k);
  end_row(b, b.free_keepings, b.keeping_of, k);
}

// `may_hold`: for all that is known the partner holds answers that were sent before.
void leave_alone(BoxState& b, Keeping& k, bool may_hold, Time now) {
  k.may_hold = may_hold && !numbers_answers_apart(k.mode);
  if (std::exchange(k.waiting, false) && k.may_hold) let_go_before(b, k, k.nxt);
  pass_unsent(b, k);
  k.alone = true;
  k.alone_since = now;
}

Keeping* place(BoxState& b, const Frame& f, Time now) {
  if (b.leaving || b.partner.leaving || f.payload > kMostPayload) return nullptr;
  const HalfName along{f.source, f.destination, {}};
  if (!partner_there(b, now)) {
    ask_along(b, along, now);
    return nullptr;
  }
  if (!is_behind_partner(b, along, now) || b.free_keepings.empty()) return nullptr;
  Keeping& k = begin_row(b.keepings, b.free_keepings, b.keeping_of, answers_name(f), f.header.mode);
  begin_lease(b, k, Seq::start(f.header.psn), now);
  arm_partner(b);
  return &k;
}

void put(BoxState& b, Keeping& k, const Frame& f, Seq seq) {
  b.outgoing.put(row_in_store(b, k), seq, 0, f);
  k.bytes += Store::cost(f);
  send_soon(b, k);
}

bool has_room(BoxState& b, const Keeping& k, const Frame& f, Seq seq) {
  return f.payload <= kMostPayload && b.outgoing.has_room(f, k.bytes) && seq - k.una < kMostNumbers;
}

// The responder sends again what it sent before. True: it was dealt with; false: a new lease begins with it.
bool again(BoxState& b, Keeping& k, const Frame& f, Seq seq, Time now) {
  Kept* copy = seq < k.una ? nullptr : copy_of(b, k, seq);
  const bool apart = numbers_answers_apart(k.mode);
  if (copy == nullptr) {
    // One that does not begin an answer was overtaken at the site.
    const std::uint8_t op = f.header.opcode;
    const bool late = !k.waiting && k.voids.contains(seq) &&
                      (op == wire::kReadResponseMiddle || op == wire::kReadResponseLast);
    if (apart || late) pass(b, Side::kLine, f);
    return apart || late;
  }
  const bool same = copy->frame.header.opcode == f.header.opcode && copy->frame.payload == f.payload;
  if (!same && !apart) return false;  // a READ of what is missing begins here
  let_go(b, f);
  // What was lost of it the partner asks for. What has not left yet will.
  if (seq < k.sent && !(apart && left_lately(b, *copy, now))) {
    k.repeated.add(seq, seq + 1);
    send_soon(b, k);
  }
  return true;
}

void keep(BoxState& b, Keeping& k, const Frame& f, Seq seq) {
  const bool room = has_room(b, k, f, seq);
  if (!room && (k.waiting || k.sent != k.nxt)) {
    b.counters.add(k.waiting ? BoxCounter::drop_answer : BoxCounter::drop_full);
    return let_go(b, f);
  }
  if (seq > k.nxt) {
    k.voids.add(k.nxt, seq);
    say(b, k);
  }
  k.nxt = seq + 1;
  if (room) put(b, k, f, seq);
  if (!k.waiting) skip_voids(b, k);
  if (room) return;
  b.counters.add(BoxCounter::answers_unkept);
  pass(b, Side::kLine, f);
}

// Of what has left, what the partner misses and what the responder repeated.
Kept* next_again(BoxState& b, Keeping& k, Time now) {
  for (const Span& span : k.missing) {
    for (Seq s = std::max(span.from, k.repair); s < span.end; ++s) {
      k.repair = s + 1;
      Kept* copy = copy_of(b, k, s);
      if (copy != nullptr && !left_lately(b, *copy, now)) return copy;
    }
  }
  while (!k.repeated.empty()) {
    const Seq s = k.repeated.front().from;
    k.repeated.drop_before(s + 1);
    if (Kept* copy = copy_of(b, k, s); copy != nullptr) return copy;
  }
  return nullptr;
}

}  // namespace

bool keep_answer(BoxState& b, const Frame& f, Time now) {
  if (!b.config.repair_answers) return false;
  const auto it = b.keeping_of.find(answers_name(f));
  Keeping* found = it == b.keeping_of.end() ? place(b, f, now) : &b.keepings[it->second];
  if (found == nullptr) return false;
  Keeping& k = *found;
  if (k.mode != f.header.mode) return false;
  const Seq seq = expand(f.header.psn, k.nxt);
  k.heard = now;
  if (k.alone) {
    const bool back = k.may_hold && seq < k.nxt;
    k.nxt = k.sent = k.una = std::max(k.nxt, seq + 1);
    if (back) {
      b.counters.add(BoxCounter::drop_answer);
      let_go(b, f);
    }
    return back;
  }
  if (seq < k.nxt) {
    if (again(b, k, f, seq, now)) return true;
    begin_lease(b, k, seq, now);
  } else if (seq > k.nxt && (k.has == k.nxt || seq - k.nxt > b.config.window / 2)) {
    // The partner is told of no gap as wide as that, and a new lease would leave out what has not left.
    if (k.sent != k.nxt) {
      b.counters.add(BoxCounter::drop_full);
      let_go(b, f);
      return true;
    }
    begin_lease(b, k, seq, now);
  }
  keep(b, k, f, seq);
  arm(b, k);
  return true;
}

bool waits_behind_kept(BoxState& b, const Frame& f) {
  const auto it = b.keeping_of.find(answers_name(f));
  if (it == b.keeping_of.end()) return false;
  Keeping& k = b.keepings[it->second];
  if (k.mode != f.header.mode || numbers_answers_apart(k.mode)) return false;
  const Seq seq = expand(f.header.psn, k.sent);
  if (k.waiting ? seq < k.una : k.sent == k.nxt || seq < k.sent) return false;
  if (k.behind.there) let_go(b, k.behind.frame);
  // A NAK tells of what is before its number, an ACK of that number, too.
  k.behind = {true, f.header.syndrome <= wire::kSyndromeAck ? seq + 1 : seq, f};
  return true;
}

void on_answered(BoxState& b, const Message& m, Time now) {
  const auto index = static_cast<std::uint32_t>(m.lease & 0xF'FFFFU);
  if (index >= b.most() || !b.keepings[index].used || b.keepings[index].lease != m.lease) return;
  Keeping& k = b.keepings[index];
  if (k.alone) return;
  if (m.refused) {  // it has no place, so it holds nothing
    b.counters.add(BoxCounter::answers_declined);
    leave_alone(b, k, false, now);
    return arm(b, k);
  }
  if (std::exchange(k.waiting, false)) {
    skip_voids(b, k);
    k.timer = now;
  }
  k.confirmed = true;
  const Seq upto = expand(m.delivered, k.una);
  if (upto > k.has && upto <= k.sent) {
    k.has = upto;
    k.tries = 0;  // whatever else it says: it goes on
  }
  if (k.has > k.una) {
    let_go_before(b, k, k.has);
    k.timer = now;
  }
  k.seen = std::min(std::max(k.seen, expand(m.from, k.una)), k.sent);
  if (upto < k.una) say(b, k);  // what it waits for is not kept
  k.missing.clear();
  for (std::size_t i = 0; i + 1 < m.ahead_count; i += 2) {
    const Seq from = std::max(expand(m.ahead[i], k.una), k.una);
    const Seq end = std::min(expand(m.ahead[i + 1], k.una), k.sent);
    k.missing.add(from, end);
    // What is not kept cannot be waited for.
    for (Seq s = from; s < end; ++s) {
      if (copy_of(b, k, s) != nullptr) continue;
      k.voids.add(s, s + 1);
      say(b, k);
    }
  }
  k.repair = k.una;
  send_soon(b, k);
  arm(b, k);
}

bool next_for_line(BoxState& b, Keeping& k, Out& out, Time now) {
  k.ready = false;
  if (!k.used || k.waiting || k.alone) return false;
  Kept* copy = next_again(b, k, now);
  if (copy != nullptr) {
    b.counters.add(BoxCounter::answers_resent);
  } else if (k.behind.there && (k.sent == k.nxt || k.sent >= k.behind.seq)) {
    k.behind.there = false;
    b.counters.add(BoxCounter::passed);
    out = {k.behind.frame, nullptr, true};
    send_soon(b, k);
    return true;
  } else {
    if (k.sent == k.nxt || k.sent - k.una >= b.config.window) return false;
    copy = copy_of(b, k, k.sent);
    CHECK(copy != nullptr);
    if (k.una == k.sent) k.timer = now;
    ++k.sent;
    skip_voids(b, k);
    b.counters.add(BoxCounter::answers_kept);
    if (!k.confirmed && ++k.unheard >= kSayAgain) {
      k.starts = k.sent;
      k.unheard = 0;
      say(b, k);
    }
  }
  copy->msn = stamp(now);
  out = {copy->frame, nullptr, false};
  send_soon(b, k);
  arm(b, k);
  return true;
}

bool say(Keeping& k, Message& m) {
  if (!k.used || !std::exchange(k.say_due, false)) return false;
  m.lease = k.lease;
  m.mode = k.mode;
  m.half = k.name;
  m.from = k.una.wire();
  m.stored = k.starts.wire();
  m.delivered = k.asked_upto.wire();
  for (const Span& v : k.voids) {
    m.ahead[m.ahead_count++] = v.from.wire();
    m.ahead[m.ahead_count++] = v.end.wire();
  }
  return true;
}

void end_keeping(BoxState& b, const HalfName& name) {
  if (const auto it = b.keeping_of.find(name); it != b.keeping_of.end()) remove(b, b.keepings[it->second]);
}

void partner_gone_for_keepings(BoxState& b, bool anew, Time now) {
  for (Keeping& k : b.keepings) {
    if (!k.used) continue;
    if (anew) {
      pass_unsent(b, k);  // who begins anew holds nothing
      remove(b, k);
    } else if (!k.alone) {
      leave_alone(b, k, true, now);
      arm(b, k);
    }
  }
}

Time deadline_of(const BoxState& b, const Keeping& k) {
  if (!k.used) return kNever;
  if (k.alone) return k.alone_since.after(let_go_by(b));
  if (k.una != k.sent || k.waiting) return k.timer.after(timeout(b, k));
  if (k.sent != k.nxt) return kNever;  // the line has no time for it yet
  return k.heard.after(quiet(b));
}

void on_timer(BoxState& b, Keeping& k, Time now) {
  if (!k.used) return;
  if (deadline_of(b, k) > now) return arm(b, k);
  if (k.alone) return remove(b, k);
  const bool rests = k.una == k.nxt && !k.waiting;
  if (rests && (k.has == k.nxt || numbers_answers_apart(k.mode))) return remove(b, k);
  if (rests || ++k.tries > kMostTries) {
    leave_alone(b, k, true, now);
    return arm(b, k);
  }
  k.timer = now;
  if (!k.waiting) {
    // A partner that knew of the lease and does not any more has nothing to wait for.
    k.starts = k.confirmed || k.sent - k.una > kTail ? k.sent : k.una;
    k.asked_upto = k.sent;
    const Seq unseen = std::max(k.una, k.seen);
    k.missing.add(unseen, std::min(k.sent, unseen + kTail));
    k.repair = k.una;
    send_soon(b, k);
  }
  say(b, k);
  arm(b, k);
}

}  // namespace weft::wan
