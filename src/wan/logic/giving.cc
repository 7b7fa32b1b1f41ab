// Halves whose responder stands at our site, and whose requester's box is the partner. What comes over the
// line is kept out of order, given to the endpoint in order, and kept until the endpoint acknowledges it; its
// acknowledgements end here and become reports. Towards the endpoint the box is a requester that sends again
// as the half's dialect does.
//
//     from          una            nxt           expected           ahead
//   ---|-------------|--------------|---------------|------x--xx--x----->  sequence numbers
//      | the         | given, not   | not given     | kept, with holes
//      | endpoint's  | acknowledged | yet           |
#include "core/transport/loss/advance.h"
#include "core/transport/rc/report.h"
#include "wan/logic/box_state.h"

namespace weft::wan {
namespace {

Giving* find(BoxState& b, const Names& names, const HalfName& name) {
  const auto it = names.find(name);
  return it == names.end() ? nullptr : &b.givings[it->second];
}

LossContext line_loss(BoxState& b) { return {b.pool, b.loss, 1, false}; }

void report(BoxState& b, Giving& g) {
  if (g.orphan) return;
  g.report_due = true;
  queue(b.talking, g.talking, b.row_of(g));
}

void give_soon(BoxState& b, Giving& g) { queue(b.site_ready, g.ready, b.index_of(g)); }

void let_go_of(BoxState& b, Giving& g, Seq seq) {
  Kept* row = b.incoming.find(b.index_of(g), seq);
  if (row == nullptr) return;
  g.held -= Store::cost(row->frame);
  let_go_of_recent(b, row->msn, row->frame.body);
  b.incoming.take_out(row);
}

void let_go_of_all(BoxState& b, Giving& g) {
  for (Seq s = g.sender.una; s < g.line.expected; ++s) let_go_of(b, g, s);
  if (g.line.block != kNoBlock) {
    const Seq top = b.pool.top(g.line.block);
    for (Seq s = g.line.expected; s <= top; ++s) {
      if (b.pool.arrived(g.line.block, s)) let_go_of(b, g, s);
    }
    release_block(b.pool, g.line.block);
  }
  g.line.held = 0;
  CHECK_OP(g.held, ==, 0U);
}

void remove(BoxState& b, Giving& g) {
  let_go_of_all(b, g);
  release_block(b.pool, g.sender.block);
  b.giving_of.erase(g.name);
  b.giving_by_lease.erase(g.lease);
  b.acked_giving_of.erase(acked_name(g.name, g.requester_qpn));
  b.deadlines.remove(b.row_of(g));
  const bool queued[2] = {g.talking, g.ready};
  g = Giving{};
  g.talking = queued[0];
  g.ready = queued[1];
  b.free_givings.push_back(b.index_of(g));
}

void start(Giving& g, Seq from) {
  g.from = from;
  g.line = {};
  g.line.expected = from;
  g.sender.start(from);
  g.account = {};
  g.silence = {};
  g.tries = 0;
  g.syndrome = 0;
  g.ahead_count = 0;
  g.refused = false;
  g.refused_until = {};
}

// Where nothing comes of an agreement, perhaps the partner does not know of it: it is told again.
bool tells_again(const Giving& g) { return !g.orphan && g.line.expected == g.from; }

// Nothing is left of what an orphan had.
void maybe_gone(BoxState& b, Giving& g) {
  if (g.orphan && (g.sender.una == g.line.expected || g.syndrome != 0)) remove(b, g);
}

void acknowledged(BoxState& b, Giving& g, Seq to, Time now) {
  to = std::min(to, g.sender.max);  // an endpoint may have more than this box ever gave it
  if (to <= g.sender.una) return;
  for (Seq s = g.sender.una; s < to; ++s) let_go_of(b, g, s);
  (void)b.to_site(g).acknowledge(to, now);
  g.tries = 0;
  g.refused_until = {};  // the endpoint took what it had no receive for
  report(b, g);
}

void refused(BoxState& b, Giving& g, std::uint8_t syndrome) {
  g.syndrome = syndrome;
  report(b, g);
  let_go_of_all(b, g);
  b.to_site(g).give_credit_back();
  release_block(b.pool, g.sender.block);
  g.line.expected = g.sender.una;
  g.sender.start(g.sender.una);
}

// The endpoint says which packet it misses, and in a selective dialect which one it has, or not, behind that.
void missing(BoxState& b, Giving& g, const Report& told, Time now) {
  if (!keeps_ahead(g.mode)) {
    if (told.to == g.sender.una) (void)b.to_site(g).nack({told.to, false, {}}, false, now);
    return;
  }
  const SendStream& s = g.sender;
  const bool overtaken = told.to < s.una && told.trigger > s.una;
  if (!s.outstanding() || told.trigger >= s.max || (told.to != s.una && !overtaken)) return;
  Sending site = b.to_site(g);
  // After a refusal everything goes again anyway; what it has needs not.
  if (g.refused_until > now) site.loss.nack_threshold = LossContext::kNoRecovery;
  (void)site.nack(told.nack(s.una), true, now);
  g.tries = 0;
}

bool keep(BoxState& b, Giving& g, const Frame& f, Seq seq, bool in_order, Time now) {
  // What waits for the endpoint goes on without help; what came ahead must leave room for what it waits for.
  const std::uint64_t waiting = (g.line.expected - g.sender.una) * Store::cost(f);
  const bool room = in_order ? b.incoming.has_room(f, waiting) : b.incoming.has_room_to_spare(f, g.held);
  if (!room) {
    b.counters.add(BoxCounter::drop_line_full);
    return false;
  }
  b.incoming.put(b.index_of(g), seq, remember(b, g, seq, f.body, now), f);
  g.held += Store::cost(f);
  return true;
}

}  // namespace

void name_ahead(BoxState& b, Giving& g, Seq seq) {
  if (g.ahead_count < g.ahead.size()) g.ahead[g.ahead_count++] = seq;
  report(b, g);
}

bool on_line_request(BoxState& b, const Frame& f, Time now) {
  Giving* g = find(b, b.giving_of, HalfName{f.source, f.destination, f.header.dest_qp});
  if (g == nullptr) return false;
  if (g->mode != f.header.mode) return false;
  const Seq seq = expand(f.header.psn, g->line.expected);
  if (seq < g->from) return false;
  const bool fetch = is_fetch(f.header.opcode) && !g->orphan && g->syndrome == 0;
  if (fetch && numbers_answers_apart(g->mode) && seq < g->sender.una) {
    report(b, *g);  // its requester misses answers, or the near box did not hear that it was delivered
    return false;
  }
  // The near box lets one pass when everything before it is delivered; or it is repeated.
  const bool read = fetch && !numbers_answers_apart(g->mode);
  if (read && (seq < g->line.expected || g->sender.una == g->line.expected)) return false;
  if (g->orphan || g->syndrome != 0 || !may_be_kept(f)) {
    let_go(b, f);
    report(b, *g);
    return true;
  }
  const bool ends = ends_message(f.header.opcode);
  if (seq == g->line.expected) {
    if (!keep(b, *g, f, seq, true, now)) {
      let_go(b, f);
      return true;
    }
    if (!g->sender.outstanding() && g->sender.nxt == seq) b.to_site(*g).begin(now);
    (void)receive_in_order(b.pool, g->line, ends);
    report(b, *g);
    give_soon(b, *g);
    return true;
  }
  LossContext loss = line_loss(b);
  const Arrival what = kIrn.classify(loss, g->line, seq);
  if (what == Arrival::kKeep && keep(b, *g, f, seq, false, now)) {
    kIrn.hold(loss, g->line, seq, ends);
    b.counters.add(BoxCounter::line_kept);
    if (tell_later(b, *g, seq, now)) return true;
    name_ahead(b, *g, seq);
    return true;
  } else {
    if (g->line.held == 0 && g->line.block != kNoBlock) release_block(b.pool, g->line.block);
    if (what == Arrival::kDuplicate) b.counters.add(BoxCounter::line_duplicate);
    if (what != Arrival::kDuplicate) {
      g->refused = true;
      g->refused_at = seq;
    }
    let_go(b, f);
  }
  report(b, *g);
  return true;
}

bool on_site_acknowledge(BoxState& b, const Frame& f, Time now) {
  Giving* g = find(b, b.acked_giving_of, HalfName{f.destination, f.source, f.header.dest_qp});
  if (g == nullptr) return false;
  if (g->mode != f.header.mode) return false;
  const std::uint8_t syndrome = f.header.syndrome;
  const Report told = rc_report(f.header, g->sender.una);
  const bool acks = told.positive;
  const Seq to = told.to;
  if (to < g->from || (acks && to == g->from)) return false;
  if (wire::is_reserved_syndrome(syndrome)) {
    b.counters.add(BoxCounter::swallowed);
    let_go(b, f);
    return true;
  }
  const bool selective = keeps_ahead(g->mode);
  const bool fatal = syndrome > wire::kSyndromeNakSequence;
  // A READ was taken long ago, and answering it failed.
  if (selective && fatal && to < g->sender.una) return false;
  const bool of_a_read = !selective && !acks && to >= g->sender.max && g->syndrome == 0;
  if (of_a_read) {  // or of nothing: the near box knows
    acknowledged(b, *g, to, now);
    arm(b, *g);
    maybe_gone(b, *g);
    return false;
  }
  b.counters.add(BoxCounter::swallowed);
  let_go(b, f);
  if (g->syndrome != 0) return true;
  acknowledged(b, *g, to, now);
  if (syndrome == wire::kSyndromeNakSequence) {
    missing(b, *g, told, now);
  } else if (!acks && to == g->sender.una && g->sender.outstanding()) {
    if ((syndrome & 0xE0U) == wire::kSyndromeRnr) {
      g->refused_until = now.after(wire::rnr_delay(syndrome));
      if (selective) {
        g->sender.nxt = g->sender.una;
      } else {
        (void)b.to_site(*g).nack({to, false, {}}, false, now);
      }
      g->tries = 0;
    } else {
      refused(b, *g, syndrome);
    }
  }
  give_soon(b, *g);
  arm(b, *g);
  maybe_gone(b, *g);
  return true;
}

void on_own(BoxState& b, const Message& m, Time now) {
  Giving* g = find(b, b.giving_of, m.half);
  if (g != nullptr && g->lease == m.lease && !g->orphan) {
    g->owned_due = true;
    return queue(b.talking, g->talking, b.row_of(*g));
  }
  if (g != nullptr && !g->orphan && g->lease >> 20U > m.lease >> 20U) return;  // asked anew since
  if (!b.partner.fresh(m.lease)) return;                                       // an old question
  if (g != nullptr) {
    // The same ownership, asked for anew: what is here stays.
    const Seq from = expand(m.from, g->line.expected);
    const bool goes_on = !g->orphan && g->syndrome == 0 && g->mode == m.mode &&
                         g->requester_qpn == m.requester_qpn && from >= g->from && from <= g->line.expected;
    if (!goes_on) {
      remove(b, *g);
      g = nullptr;
    }
  }
  if (g == nullptr) {
    if (b.leaving || b.free_givings.empty() ||
        b.acked_giving_of.contains(acked_name(m.half, m.requester_qpn))) {
      (void)b.farewells.push({m.half, m.lease});  // no place for it: said at once, nobody waits for nothing
      return;
    }
    g = &b.givings[b.free_givings.back()];
    b.free_givings.pop_back();
    g->used = true;
    g->name = m.half;
    g->mode = m.mode;
    g->requester_qpn = m.requester_qpn;
    b.giving_of[g->name] = b.index_of(*g);
    b.acked_giving_of[acked_name(g->name, g->requester_qpn)] = b.index_of(*g);
    start(*g, Seq::start(m.from));
  }
  b.giving_by_lease.erase(g->lease);
  b.giving_by_lease[m.lease] = b.index_of(*g);
  g->lease = m.lease;
  g->agreed = g->told = now;
  g->ahead_count = 0;
  g->owned_due = true;
  report(b, *g);
  arm_partner(b);
  arm(b, *g);
}

// A partner that no longer knows what the lease was of names it alone.
void on_release(BoxState& b, const Message& m) {
  Giving* g = find(b, b.giving_of, m.half);
  if (const auto it = b.giving_by_lease.find(m.lease); g == nullptr && it != b.giving_by_lease.end()) {
    g = &b.givings[it->second];
  }
  (void)b.partner.fresh(m.lease);  // the question for it may still be on its way
  if (g != nullptr && g->lease >> 20U <= m.lease >> 20U) remove(b, *g);
  (void)b.farewells.push({m.half, m.lease});  // without room it is asked again
}

// Its partner is gone. What came in order is delivered, as far as the endpoint takes it within `give_up`; the
// rest would wait for ever.
void orphan(BoxState& b, Giving& g, Time now) {
  b.counters.add(BoxCounter::orphaned);
  g.orphan = true;
  g.agreed = now;
  arm(b, g);
  maybe_gone(b, g);
}

void end_giving(BoxState& b, const HalfName& name) {
  Giving* g = find(b, b.giving_of, name);
  if (g == nullptr) return;
  if (g->orphan) return remove(b, *g);
  if (g->syndrome == 0) refused(b, *g, wire::kSyndromeNakOperation);
}

bool next_for_site(BoxState& b, Out& out, Time now) {
  const std::uint32_t window = std::min(b.config.site_window, b.config.window);
  for (std::uint32_t index = 0; b.site_ready.take(index);) {
    Giving& g = b.givings[index];
    g.ready = false;
    if (!g.used || g.syndrome != 0 || g.refused_until > now) continue;
    Sending s = b.to_site(g);
    Departure d;
    if (s.next_repair(d.seq)) {
      d.origin = Origin::kRepair;
    } else {
      g.sender.nxt = s.scheme.skip_received(s.loss, g.sender, g.sender.nxt);
      if (g.sender.nxt >= g.line.expected) continue;
      if (keeps_ahead(g.mode) && g.sender.nxt - g.sender.una >= window) continue;
      d.seq = g.sender.nxt;
    }
    const Kept* row = b.incoming.find(b.index_of(g), d.seq);
    CHECK(row != nullptr);
    b.counters.add(BoxCounter::given);
    if (d.seq < g.sender.max) b.counters.add(BoxCounter::given_again);
    if (!g.sender.outstanding()) s.begin(now);
    d.cost = row->frame.payload;
    s.left(d, now);
    out = {};
    out.frame = row->frame;
    give_soon(b, g);
    arm(b, g);
    return true;
  }
  return false;
}

// --- time ---

Time deadline_of(const BoxState& b, const Giving& g) {
  if (!g.used || g.syndrome != 0) return kNever;
  const Time since = g.orphan ? g.agreed : tells_again(g) ? g.told : kNever;
  const Time end = since == kNever ? kNever : since.after(b.config.give_up);
  if (g.sender.nxt < g.line.expected && g.refused_until.ps != 0) return std::min(end, g.refused_until);
  if (!g.sender.outstanding()) return end;
  RoundTrip trip = b.site_trip;
  return std::min(end, Waits{b.site_terms, trip, 0, false}.strikes(g.sender));
}

void on_timer(BoxState& b, Giving& g, Time now) {
  if (!g.used) return;
  if (g.orphan && g.agreed.after(b.config.give_up) <= now) return remove(b, g);
  if (tells_again(g) && g.told.after(b.config.give_up) <= now) {
    g.told = now;
    g.owned_due = true;
    report(b, g);
  }
  if (g.refused_until.ps != 0 && g.refused_until <= now) {
    g.refused_until = {};
    g.sender.timer = now;
    give_soon(b, g);
  } else if (g.refused_until.ps == 0 && g.syndrome == 0 && g.sender.outstanding()) {
    Sending s = b.to_site(g);
    if (s.waits.strikes(g.sender) <= now) {
      if (++g.tries > b.config.site_tries) {
        refused(b, g, wire::kSyndromeNakOperation);
        return maybe_gone(b, g);
      }
      s.strike(now);
      s.resend();
      give_soon(b, g);
    }
  }
  arm(b, g);
}

}  // namespace weft::wan
