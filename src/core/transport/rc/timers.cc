// Time-outs (docs/protocol/reliable.md#time-outs-and-retries, irn.md#retransmission-time-outs; IRN §3.1):
// which timers a queue pair has, when each is due, and what it does then. kTimers is the whole list. A queue
// pair has one entry among the deadlines: the earliest of them.
//
//   timer    runs while                            due after                      then
//   charge   own time-outs: requests, READs wait   the verbs time-out, by retry   a retry is used up
//   resend   requests are in flight                RTO_low, RTO_high if own       the oldest go out again
//                                                  else the verbs time-out        the same, for a retry
//   probe    roce with `tail_probe`: the same      a measured time                the oldest asks for an ACK
//   read     a READ's answers are missing          twice RTO_high                 its request goes out again
//   rnr      the peer said it was not ready        the delay that it named        sending goes on
//   answer   our answers are in flight             RTO_low or RTO_high            the oldest go out again
//
// `rnr` excludes the four before it: until the delay is over nothing is sent, so nothing is answered.
// A probe costs nothing: an ACK was lost, or the end of a message, or the NAK that a receiver gives once
// only. Giving up is the requester's business: `answer` only falls silent. `sender.h` has the times of the
// half that sends, and how they follow the path.
#include "core/transport/rc/timers.h"

#include <algorithm>
#include <utility>

#include "core/transport/congestion.h"
#include "core/transport/engine.h"
#include "core/transport/rc/control.h"
#include "core/transport/rc/failure.h"
#include "core/transport/rc/requester.h"

namespace weft {
namespace {

// A queue pair as its timers look at it.
struct Look {
  Look(Engine& engine, QueuePair& pair)
      : e(engine), q(pair), c(engine.cold(pair)), waits(engine.waits(c, pair.tx_dialect())) {}

  Engine& e;
  QueuePair& q;
  ColdQueuePair& c;
  const Waits waits;  // for what answers its requests
};

// In the order in which those that are due together fire.
enum Timer : std::uint8_t { kCharge, kResend, kProbe, kRead, kRnr, kAnswer };
constexpr unsigned bit(Timer t) { return 1U << t; }

// Which of them run: of those of its requests `rnr` excludes the others.
inline unsigned running(const Look& l) {
  const QueuePair& q = l.q;
  unsigned timers = 0;
  if (q.has(kRnrWaiting)) {
    timers = bit(kRnr);
  } else {
    const Dialect& form = q.tx_dialect();
    if (q.requests_out.outstanding()) timers = bit(kResend) | bit(form.own_timeouts ? kCharge : kProbe);
    if (form.response_stream && l.c.issued_head != l.c.issued_tail) timers |= bit(kRead) | bit(kCharge);
  }
  if (q.rx_dialect().response_stream && q.served.outstanding() && q.served.backoff <= kResponderTries)
    timers |= bit(kAnswer);
  return timers;
}

// A clock that starts over when the world itself stood still, and what it was put to when it did so before.
struct Clock {
  Time* runs_from = nullptr;  // nullptr: the timer has no such clock
  Time* forgiven = nullptr;
};

// --- charge ---

inline Time charge_due(const Look& l) {
  const Duration t = l.waits.verbs();
  if (t == kForever) return kNever;
  const Time due = l.q.requests_out.progress.after(t * (std::int64_t{l.q.retries} + 1));
  // The first guess may be longer than all retries together: nothing would ever be tried.
  const Sender& s = l.q.requests_out;
  const bool untried = l.waits.guesses() && s.backoff == 0 && l.q.retries == 0 && s.outstanding();
  return untried ? std::max(due, l.waits.strikes(l.q.requests_out)) : due;
}

// False: that was the last.
bool charge(const Look& l, std::uint16_t slot, Time now) {
  l.e.counters.add(Counter::retries_charged);
  if (l.e.exhausted(l.q)) {
    rc_fail(l.e, l.q, WcStatus::kRetryExceeded, slot, now);
    return false;
  }
  ++l.q.retries;
  return true;
}

void charge_fires(const Look& l, Time now) {
  if (!charge(l, l.q.sq_head, now)) return;
  // One that came late leaves the next its whole time.
  Time& progress = l.q.requests_out.progress;
  progress = std::max(progress, now - l.waits.verbs() * std::int64_t{l.q.retries});
}

Clock charge_clock(const Look& l) { return {&l.q.requests_out.progress, &l.c.progress_forgiven}; }

// --- resend ---

inline Time resend_due(const Look& l) { return l.waits.strikes(l.q.requests_out); }

void resend_fires(const Look& l, Time now) {
  Engine& e = l.e;
  QueuePair& q = l.q;
  if (!q.tx_dialect().own_timeouts && !charge(l, rc_slot_of(e, q, q.requests_out.una), now)) return;
  Sending half = e.requests(q);
  half.strike(now);
  half.resend();
  if (half.s.nxt == half.s.una) rc_rewind(e, q);
  if (controlled(q)) congestion_timed_out(e, q, half.s, now);
}

Clock resend_clock(const Look& l) { return {&l.q.requests_out.timer, &l.c.requests_silence.forgiven}; }

// --- probe ---

Time probe_due(const Look& l) { return l.waits.probes(l.q.requests_out, l.c.requests_silence); }

void probe_fires(const Look& l, Time now) {
  Sending half = l.e.requests(l.q);
  if (!half.s.confirmed_alone()) return half.ask(now);
  half.scheme.on_nack(half.loss, half.s, {half.s.una, false, {}});
  rc_rewind(l.e, l.q);
  half.s.timer = now;
  if (controlled(l.q)) congestion_lost(l.e, l.q, now, false);
}

// --- read ---

Time read_due(const Look& l) {
  // One round trip more than the responder's own time-out, which usually repairs it first.
  const Duration t = l.waits.retransmission(false, l.c.read_backoff);
  return t == kForever ? kNever : l.c.read_base.after(t * 2);
}

// The oldest READ without all its responses: its request goes out again with its old number. The responder
// that still holds it resumes after the last acknowledged response.
void read_fires(const Look& l, Time now) {
  l.e.counters.add(Counter::timeout_read);
  if (l.c.read_backoff < 10) ++l.c.read_backoff;
  l.c.read_base = now;
  const ReadIssued& r = l.c.issued[l.c.issued_head & l.c.issued_mask];
  if (r.request >= l.q.requests_out.una) return;  // not acknowledged either: `resend` has it
  l.q.rx_flags |= kResendRequest;
}

Clock read_clock(const Look& l) { return {&l.c.read_base, &l.c.read_forgiven}; }

// --- rnr ---

Time rnr_due(const Look& l) { return l.c.rnr_until; }

void rnr_fires(const Look& l, Time now) {
  l.q.clear(kRnrWaiting);
  l.c.rnr_until = kNever;
  // What was refused is on its way no longer. Others may hold what the receiver waits for.
  l.e.requests(l.q).give_credit_back();
  l.q.requests_out.progress = l.q.requests_out.timer = now;
}

// --- answer ---

Time answer_due(const Look& l) { return l.e.waits(l.c, l.q.rx_dialect()).strikes(l.q.served); }

void answer_fires(const Look& l, Time now) {
  Sending half = l.e.responses(l.q);
  half.strike(now);
  if (half.s.backoff <= kResponderTries) {
    half.resend();
    if (controlled(l.q)) congestion_timed_out(l.e, l.q, half.s, now);
    return;
  }
  // Silent from now on; credit and bitmap are for others. A refusal that waited for the answers ends it here.
  release_block(l.e.pool, half.s.block);
  half.s.end_repair();
  rc_answers_given_up(l.e, l.q);
}

Clock answer_clock(const Look& l) { return {&l.q.served.timer, &l.c.responses_silence.forgiven}; }

Clock no_clock(const Look&) { return {}; }

struct TimerRow {
  Time (*due)(const Look&);  // of one that runs; kNever all the same: there is no such time-out
  void (*fires)(const Look&, Time now);
  Clock (*clock)(const Look&);
};
// Row i is Timer i's.
constexpr TimerRow kTimers[] = {
    {charge_due, charge_fires, charge_clock}, {resend_due, resend_fires, resend_clock},
    {probe_due, probe_fires, no_clock},       {read_due, read_fires, read_clock},
    {rnr_due, rnr_fires, no_clock},           {answer_due, answer_fires, answer_clock},
};

// Every burst asks for the earliest: unrolled, so that what is asked of a row is known where it is asked.
template <std::size_t... I>
inline Time earliest(const Look& l, std::index_sequence<I...>) {
  const unsigned timers = running(l);
  Time at = kNever;
  ((at = (timers & 1U << I) != 0 ? std::min(at, kTimers[I].due(l)) : at), ...);
  return at;
}

}  // namespace

Time rc_deadline(Engine& e, QueuePair& q) {
  return q.receives() ? earliest(Look(e, q), std::make_index_sequence<std::size(kTimers)>{}) : kNever;
}

void rc_on_timer(Engine& e, QueuePair& q, Time now) {
  const Look l(e, q);
  for (unsigned t = 0; t < std::size(kTimers); ++t) {
    // What has fired before may have stopped it, or ended the connection.
    if (q.receives() && (running(l) & 1U << t) != 0 && kTimers[t].due(l) <= now) kTimers[t].fires(l, now);
  }
}

void rc_forgive(Engine& e, QueuePair& q, Time now, Duration stall) {
  if (!q.receives()) return;
  const Look l(e, q);
  const unsigned timers = running(l);
  bool any = false;
  for (unsigned t = 0; t < std::size(kTimers); ++t) {
    const Clock clock = kTimers[t].clock(l);
    if ((timers & 1U << t) == 0 || clock.runs_from == nullptr || *clock.runs_from == *clock.forgiven)
      continue;
    const Time due = kTimers[t].due(l);
    if (due == kNever || due.after(stall) >= now) continue;
    Time to = now;
    // The attempt under way starts over, not those before it.
    if (t == kCharge) to = now - l.waits.verbs() * std::int64_t{q.retries};
    *clock.runs_from = *clock.forgiven = to;
    any = true;
  }
  if (any) e.counters.add(Counter::stalls);
}

}  // namespace weft
