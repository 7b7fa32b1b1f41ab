// Halves whose requester stands at our site. Its packets are taken, in order where their dialect asks for
// that (ahead.cc: where it does not), kept until the far endpoint has them, acknowledged as the configuration
// says, and sent over the line with the core's selective repeat.
//
//     from      delivered      una (stored)      nxt         expected
//   ---|------------|---------------|-------------|--------------|------>  sequence numbers
//      |  nobody's  | kept: partner | kept: on    | kept: not    |
//      |  any more  | has it, too   | the line    | sent yet     |
//
// So a partner that starts anew is served again from `delivered`, and nothing that was acknowledged is missed
// unless this box is lost.
#include "core/transport/loss/advance.h"
#include "wan/logic/box_state.h"

namespace weft::wan {
namespace {

void say(BoxState& b, Taking& t, bool& due) {
  due = true;
  queue(b.talking, t.talking, b.index_of(t));
}

void send_soon(BoxState& b, Taking& t) { queue(b.line_ready, t.ready, b.index_of(t)); }

void free_kept(BoxState& b, Taking& t, Seq upto) {
  for (; t.delivered < upto; ++t.delivered) {
    Kept* row = b.outgoing.find(b.index_of(t), t.delivered);
    CHECK(row != nullptr);
    t.bytes -= Store::cost(row->frame);
    t.delivered_msn = row->msn;
    if (keeps_ahead(t.mode)) t.ahead.delivered_last = echo_of(row->frame.header);
    b.released.push_back(row->frame.body);
    b.outgoing.take_out(row);
  }
}

void stop_sending(BoxState& b, Taking& t) {
  Sending s = b.to_line(t);
  s.give_credit_back();
  release_block(b.pool, t.sender.block);
  t.account = {};
  t.silence = {};
}

void say_release(BoxState& b, Taking& t, Time now) {
  say(b, t, t.release_due);
  t.say_again = now + line_wait(b);
}

void maybe_released(BoxState& b, Taking& t, Time now) {
  if (t.phase != Phase::kOwned || !t.draining || t.delivered != t.expected || t.held != 0) return;
  stop_sending(b, t);
  if (t.reading) t.forget = true;  // what is on its way of an answer was not counted
  t.phase = Phase::kReleasing;
  t.asked = 0;
  say_release(b, t, now);
  pass_farewell(b, t);
}

// So long a half may rest.
Duration rest(const BoxState& b, const Taking& t) {
  return t.reading || t.awaits_answers ? patience(b) : quiet(b);
}

// The requester sends something else than what was acknowledged last: another connection with the same
// numbers.
bool strange(Taking& t, Seq seq) { return seq == t.gap && ++t.strange >= 2; }

}  // namespace

void begin_owning(BoxState& b, Taking& t, Time now) {
  t.phase = Phase::kOwned;
  t.expected = t.wanted = t.told = t.delivered = t.from;
  t.msn = t.told_msn = t.stored_msn = t.delivered_msn = (t.watch.ends + t.watch.offset) & kPsnMask;
  t.bytes = 0;
  t.reads = 0;
  t.reading = t.awaits_answers = false;
  t.sender.start(t.from);
  t.account = {};
  t.silence = {};
  t.say_again = kNever;
  t.heard = t.owing = now;
  b.counters.add(BoxCounter::owned);
  if (t.held_back) answer(b, t, t.nak_due);
  t.held_back = false;
  arm(b, t, now);
}

void take(BoxState& b, Taking& t, const Frame& f, Time now) {
  const wire::Header& h = f.header;
  if (keeps_ahead(t.mode)) return take_any(b, t, f, now);
  const Seq seq = expand(h.psn, t.expected);
  if (seq < t.from && !is_fetch(h.opcode)) return pass(b, Side::kLine, f);
  t.heard = now;
  if (is_fetch(h.opcode) && take_read(b, t, f, seq, now)) return arm(b, t, now);
  if (seq < t.from) return pass(b, Side::kLine, f);
  if (t.reading && seq >= t.expected && t.read_end > t.expected) {
    hold_back(t, f, seq);
    b.counters.add(BoxCounter::drop_waiting);
    return let_go(b, f);
  }
  if (seq < t.expected) {
    b.counters.add(BoxCounter::site_duplicate);
    answer(b, t, t.ack_due);
    return let_go(b, f);
  }
  if (seq > t.expected) {
    b.counters.add(BoxCounter::drop_gap);
    if (t.draining || t.full || t.held_back) {
      hold_back(t, f, seq);
    } else if (!t.nak_sent) {
      t.nak_sent = true;
      t.gap = seq;
      t.strange = 0;
      answer(b, t, t.nak_due);
    } else if (strange(t, seq)) {
      t.forget = true;
      drain(b, t, now);
    }
    return let_go(b, f);
  }
  take_next(b, t, f, now);
}

void take_next(BoxState& b, Taking& t, const Frame& f, Time now) {
  const wire::Header& h = f.header;
  const Seq seq = t.expected;
  // What is kept ahead was acknowledged, so the packets between are still taken.
  const bool closed = t.draining && t.held == 0;
  if (closed || !may_be_kept(f)) {
    if (!closed) b.counters.add(BoxCounter::drained_for_read);
    hold_back(t, f, seq);
    drain(b, t, now);
    return let_go(b, f);
  }
  // What is ahead waits for this one, and takes no room away from it.
  if (!b.outgoing.has_room(f, t.held != 0 ? t.bytes - t.ahead.bytes : t.bytes)) {
    b.counters.add(BoxCounter::drop_full);
    if (keeps_ahead(t.mode)) t.ahead.dropped = {seq, echo_of(h), {}, false, false};
    t.full = true;
    return let_go(b, f);
  }
  if (t.delivered == t.expected) t.owing = now;
  if (!t.sender.outstanding()) b.to_line(t).begin(now);
  if (ends_request(h.opcode)) t.msn = (t.msn + 1) & kPsnMask;
  if (fills_its_packet(h.opcode)) t.mtu = f.payload;
  b.outgoing.put(b.index_of(t), seq, t.msn, f);
  t.bytes += Store::cost(f);
  if (keeps_ahead(t.mode)) t.ahead.last = echo_of(h);
  t.awaits_answers = is_fetch(h.opcode);
  (void)receive_in_order(b.pool, t, ends_request(h.opcode));
  if (t.expected > seq + 1) joined(b, t, seq + 1);
  if (t.held != 0) t.ahead.gap_since = now;
  t.nak_sent = t.full = false;
  if (!t.draining) t.held_back = false;  // else it is asked for when the half is let go of
  b.counters.add(BoxCounter::taken);
  if ((h.bits & wire::kAckReq) != 0) {
    t.wanted = t.expected;
    if (b.config.acknowledge == Acknowledge::kEarly) answer(b, t, t.ack_due);
  }
  if (t.confirmed) send_soon(b, t);
  arm(b, t, now);
}

void refuse_again(BoxState& b, Taking& t, const Frame& f, Time now) {
  const Seq seq = expand(f.header.psn, t.expected);
  if (seq < t.from) return pass(b, Side::kLine, f);
  if (is_fetch(f.header.opcode) && numbers_answers_apart(t.mode) && seq < t.expected)
    t.ahead.refused_read = seq;
  // Once refused it gives up, or is another connection soon.
  t.owing = std::min(t.owing, now.after(patience(b)));
  answer(b, t, t.nak_due);
  let_go(b, f);
  arm(b, t, now);
}

void drain(BoxState& b, Taking& t, Time now) {
  t.draining = true;
  maybe_released(b, t, now);
  arm(b, t, now);
}

void end_soon(BoxState& b, Taking& t, Time now) {
  switch (t.phase) {
    case Phase::kWatching:
      return forget(b, t);
    case Phase::kAsking:
      t.confirmed = true;  // it is not for want of agreement
      stop_asking(b, t, now);
      say_release(b, t, now);
      break;
    case Phase::kOwned:
      t.forget = true;
      // Only the site's own word says that nobody sends what is missing before it.
      if (t.over) forget_ahead(b, t);
      return drain(b, t, now);
    case Phase::kFailed:
      t.owing = now;
      break;
    case Phase::kReleasing:
    case Phase::kFree:
      break;
  }
  t.forget = true;
  arm(b, t, now);
}

bool leave(BoxState& b, Taking& t, const Frame& dreq, Time now) {
  if (t.phase == Phase::kWatching) {
    forget(b, t);
    return false;
  }
  const bool waits = t.phase == Phase::kOwned && t.delivered != t.expected;
  if (waits && t.leaving) {
    let_go(b, dreq);
    return true;
  }
  if (waits) {
    t.leaving = true;
    t.farewell = dreq;
    b.counters.add(BoxCounter::farewells);
  }
  t.over = true;
  end_soon(b, t, now);
  return waits;
}

void pass_farewell(BoxState& b, Taking& t) {
  if (std::exchange(t.leaving, false)) pass(b, Side::kLine, t.farewell);
}

// The partner is asked, or asked again after it forgot: under a new number, because old questions may still
// travel.
void renew(BoxState& b, Taking& t, Time now) {
  t.confirmed = false;
  t.lease = (++b.leases << 20U) | b.index_of(t);
  if (t.phase == Phase::kOwned) {
    b.counters.add(BoxCounter::renewed);
    stop_sending(b, t);
    // Until the partner says so, nothing behind `delivered` is known to be with it.
    t.stored_msn = t.delivered_msn;
    if (keeps_ahead(t.mode)) t.ahead.stored_last = t.ahead.delivered_last;
    t.sender.start(t.delivered);
  }
  say(b, t, t.own_due);
  t.say_again = now + line_wait(b);
  arm(b, t, now);
}

void on_owned(BoxState& b, Taking& t, Time now) {
  t.asked = 0;
  if (t.confirmed || (t.phase != Phase::kAsking && t.phase != Phase::kOwned)) return;
  t.confirmed = true;
  t.say_again = kNever;
  if (t.phase == Phase::kAsking) {
    t.say_again = now + patience(b);  // for the endpoint's own acknowledgement
    if (t.watch.acked == t.from) begin_owning(b, t, now);
  } else {
    b.to_line(t).begin(now);
    send_soon(b, t);
  }
  arm(b, t, now);
}

// The ownership that was asked for does not come about; what was dropped meanwhile goes the wire's way.
void stop_asking(BoxState& b, Taking& t, Time now) {
  // The partner agreed, and nobody acknowledged: the requester is another one. Otherwise: not soon again,
  // because a half stands still while it is asked for.
  if (t.confirmed) {
    t.forget = true;
  } else {
    t.not_before = now.after(b.config.give_up);
    b.counters.add(BoxCounter::declined);
  }
  t.confirmed = t.own_due = false;
  if (t.watch.acked != t.from) t.held_back = false;  // to ask for it again would acknowledge what was before
  t.draining = true;
  t.expected = t.delivered = t.from;
  t.msn = (t.watch.ends + t.watch.offset) & kPsnMask;
  t.sender.start(t.from);
  t.phase = Phase::kReleasing;
}

void fail_half(BoxState& b, Taking& t, std::uint8_t syndrome, Time now) {
  stop_sending(b, t);
  forget_ahead(b, t);
  // An answer of a READ tells the requester that what was before it arrived.
  if (numbers_answers_apart(t.mode) && t.delivered > t.told) {
    t.told = t.delivered;
    t.told_msn = t.delivered_msn;
  }
  free_kept(b, t, t.expected);
  const bool waits = t.held_back || t.full || t.wanted > t.told;
  // A refusal acknowledges what was before it, so it begins where the requester was told nothing yet.
  t.expected = t.delivered = t.told;
  t.msn = t.told_msn;
  t.sender.start(t.expected);
  t.phase = t.over ? Phase::kReleasing : Phase::kFailed;
  t.syndrome = syndrome;
  t.ahead.refused_read = {};
  t.asked = 0;
  t.heard = now;
  t.owing = now.after(b.config.give_up);
  b.counters.add(BoxCounter::failed);
  say_release(b, t, now);
  // Whoever waits for an answer has it now; everybody else at the next packet.
  if (waits) answer(b, t, t.nak_due);
  pass_farewell(b, t);
  arm(b, t, now);
}

void on_report(BoxState& b, Taking& t, const Message& m, Time now) {
  if (t.phase != Phase::kOwned || !t.confirmed) return;
  if (m.syndrome != 0) {
    const Seq upto = expand(m.delivered, t.delivered);
    if (keeps_ahead(t.mode) && upto > t.delivered && upto <= t.expected) free_kept(b, t, upto);
    return fail_half(b, t, m.syndrome, now);
  }
  t.asked = 0;
  Sending s = b.to_line(t);
  const Seq before = t.sender.una;
  const Seq stored = expand(m.stored, before);
  const Seq delivered = expand(m.delivered, t.delivered);
  if (stored > t.expected || delivered > std::max(stored, before)) return;
  if (stored > before) {
    // A partner that was asked anew has more than it was sent since.
    t.sender.nxt = std::max(t.sender.nxt, stored);
    t.sender.max = std::max(t.sender.max, stored);
    const Kept* last = b.outgoing.find(b.index_of(t), stored - 1);
    t.stored_msn = last->msn;
    if (keeps_ahead(t.mode)) t.ahead.stored_last = echo_of(last->frame.header);
    (void)s.acknowledge(stored, now);
    if (b.config.acknowledge == Acknowledge::kFar && (t.nak_due || t.trigger_count != 0 || t.wanted > before))
      answer(b, t, t.ack_due);
  }
  for (std::size_t i = 0; i < m.ahead_count; ++i) {
    const Seq seq = expand(m.ahead[i], t.sender.una);
    if (seq > t.sender.una && seq < t.sender.max) (void)s.nack({seq, true, {}}, true, now);
  }
  if (m.refused) {
    const Seq seq = expand(m.from, t.sender.una);
    if (seq > t.sender.una && seq < t.sender.max) (void)s.nack({seq, false, {}}, true, now);
  }
  if (delivered > t.delivered) {
    free_kept(b, t, delivered);
    t.owing = now;
    if (t.full) {
      t.full = false;
      t.nak_sent = true;
      t.gap = t.expected;
      answer(b, t, t.nak_due);
    }
  }
  // A READ waited for that.
  if (t.held_back && !t.draining && !t.reading && t.delivered == t.expected) {
    t.held_back = false;
    t.heard = now;  // it is asked to go on
    answer(b, t, t.nak_due);
  }
  // A lost report of what was sent costs a time-out; of what was delivered nobody would hear again.
  if (t.delivered != t.sender.una && t.say_again == kNever) t.say_again = now + line_wait(b);
  maybe_released(b, t, now);
  send_soon(b, t);
  arm(b, t, now);
}

void on_released(BoxState& b, Taking& t, Time now) {
  if (t.phase == Phase::kAsking) stop_asking(b, t, now);  // the partner has no place for it
  t.say_again = kNever;
  if (t.phase == Phase::kReleasing) {
    --b.owned;
    b.counters.add(BoxCounter::released);
    watch_again(b, t, now);
  } else if (t.phase == Phase::kFailed && t.lease != 0) {
    --b.owned;
    t.lease = 0;
  }
  arm(b, t, now);
}

// --- what leaves ---

bool next_for_line(BoxState& b, Taking& t, Out& out, Time now) {
  t.ready = false;
  if (t.phase != Phase::kOwned || !t.confirmed) return false;
  Sending s = b.to_line(t);
  Departure d;
  if (s.next_repair(d.seq)) {
    d.origin = Origin::kRepair;
  } else {
    t.sender.nxt = s.scheme.skip_received(s.loss, t.sender, t.sender.nxt);
    if (t.sender.nxt >= t.expected || t.sender.nxt - t.sender.una >= b.config.window) return false;
    d.seq = t.sender.nxt;
  }
  const Kept* row = b.outgoing.find(b.index_of(t), d.seq);
  CHECK(row != nullptr);
  d.cost = row->frame.payload;
  b.counters.add(BoxCounter::line_sent);
  const bool again = d.seq < t.sender.max;
  if (again) b.counters.add(BoxCounter::line_resent);
  s.left(d, now);
  out = {};
  out.frame = row->frame;
  if (b.config.parity.there()) out.member = cover(b, t, d.seq, again, row->frame, now);
  send_soon(b, t);
  arm(b, t, now);
  return true;
}

// --- time ---

Time deadline_of(const BoxState& b, const Taking& t) {
  Time at = t.say_again;
  if (t.phase == Phase::kFailed) return std::min(at, t.owing);
  if (t.phase != Phase::kOwned) return at;
  if (t.held != 0) at = std::min(at, t.ahead.gap_since.after(b.config.give_up));
  if (t.delivered == t.expected) return t.held != 0 ? at : std::min(at, t.heard.after(rest(b, t)));
  at = std::min(at, t.owing.after(b.config.give_up));
  if (t.confirmed && t.sender.una < t.sender.nxt) {
    RoundTrip trip = b.line_trip;
    at = std::min(at, Waits{b.line_terms, trip, 0, true}.strikes(t.sender));
  }
  return at;
}

void on_timer(BoxState& b, Taking& t, Time now) {
  if (t.say_again <= now) {
    t.say_again = kNever;
    const bool asking = t.phase == Phase::kAsking;
    if (asking && (t.confirmed || ++t.asked > 3)) {
      // Neither agreement nor an acknowledgement: whatever the partner thinks, it is to let go.
      stop_asking(b, t, now);
      say_release(b, t, now);
    } else if (asking) {
      renew(b, t, now);  // under the old number it counts only for as long as few others ask
    } else if (t.phase == Phase::kOwned) {
      if (t.confirmed && t.delivered == t.sender.una) {
        t.asked = 0;  // nothing is to be asked
      } else if (t.asked++ >= 3) {
        t.asked = 0;
        renew(b, t, now);
      } else {
        say(b, t, t.own_due);
        t.say_again = now + line_wait(b);
      }
    } else if (t.phase == Phase::kReleasing || (t.phase == Phase::kFailed && t.lease != 0)) {
      // A partner that is away for so long has let go of everything by itself: the last question was asked
      // within our patience, and it waits for another word as long as it said.
      const Duration its_own = std::max(patience(b), b.partner.patience);
      if (!partner_there(b, now) && now - b.partner.heard >= patience(b) * 2 + its_own) {
        on_released(b, t, now);
      } else {
        say_release(b, t, now);
      }
    }
  }
  if (t.phase == Phase::kFailed && t.owing <= now) {
    if (t.lease == 0) return forget(b, t);
    // The partner has not said that it let go; until then it would swallow what another connection sends.
    t.phase = Phase::kReleasing;
    t.forget = true;
    if (t.say_again == kNever) say_release(b, t, now);
  }
  if (t.phase == Phase::kOwned && t.held != 0 && t.ahead.gap_since.after(b.config.give_up) <= now) {
    t.forget = true;  // whoever sent that is gone
    forget_ahead(b, t);
    drain(b, t, now);
  }
  if (t.phase == Phase::kOwned) {
    if (t.delivered == t.expected) {
      if (t.held == 0 && t.heard.after(rest(b, t)) <= now) drain(b, t, now);
    } else if (t.owing.after(b.config.give_up) <= now) {
      fail_half(b, t, wire::kSyndromeNakOperation, now);
    } else if (t.confirmed && t.sender.una < t.sender.nxt) {
      Sending s = b.to_line(t);
      if (s.waits.strikes(t.sender) <= now) {
        s.strike(now);
        s.resend();
        // The partner may have forgotten; it says so to nobody.
        if (t.sender.backoff >= 4) renew(b, t, now);
        send_soon(b, t);
      }
    }
  }
  arm(b, t, now);
}

}  // namespace weft::wan
