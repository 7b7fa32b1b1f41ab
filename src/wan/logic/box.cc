// Which frame goes where, what leaves next, and time-outs.
#include "wan/logic/box.h"

#include "wan/logic/box_state.h"

namespace weft::wan {
namespace {

DeviceConfig line_terms(const BoxConfig& c) {
  DeviceConfig d;
  d.rto = Rto::kDynamic;
  d.rto_high = c.line_timeout;
  d.rto_low = c.least_line_timeout;
  d.rto_backs_off = false;  // the line is paced: silence says that something was lost, not that it is full
  return d;
}

DeviceConfig site_terms(const BoxConfig& c) {
  DeviceConfig d;
  d.roce_timeout = c.site_timeout;
  return d;
}

std::vector<std::uint32_t> all(std::uint32_t n) {
  std::vector<std::uint32_t> v;
  for (std::uint32_t i = n; i > 0; --i) v.push_back(i - 1);
  return v;
}

// Rows are made once: nothing on the packet path allocates.
Names names(std::uint64_t secret, std::uint32_t n) {
  Names made(0, NameHash{secret});
  made.reserve(std::size_t{n} * 2);
  return made;
}

}  // namespace

BoxState::BoxState(const BoxConfig& c)
    : config(c),
      key(c.secret),
      random(c.seed),
      clock_starts(random.next()),
      outgoing({c.store.n / 2}, c.frames / 2),
      incoming({c.store.n - c.store.n / 2}, c.frames - c.frames / 2),
      pool(c.loss_blocks, c.window),
      line_terms(wan::line_terms(c)),
      site_terms(wan::site_terms(c)),
      takings(c.halves),
      givings(c.halves),
      free_takings(all(c.halves)),
      free_givings(all(c.halves)),
      answering(std::bit_ceil(c.halves)),
      talking(std::bit_ceil(c.halves * 4)),
      line_ready(std::bit_ceil(c.halves * 2)),
      site_ready(std::bit_ceil(c.halves)),
      passing{Ring<Frame>(std::bit_ceil(c.queue)), Ring<Frame>(std::bit_ceil(c.queue))},
      farewells(std::bit_ceil(c.halves)),
      disowned(std::bit_ceil(c.halves)),
      deadlines(c.halves * 4 + 2),
      keepings(c.halves),
      orderings(c.halves),
      free_keepings(all(c.halves)),
      free_orderings(all(c.halves)),
      ordering_ready(std::bit_ceil(c.halves)),
      refusals(std::bit_ceil(c.halves)),
      meetings(c.meetings),
      restoring(c.parity.there()) {
  const std::uint64_t hash = random.next();
  for (Names* n :
       {&taking_of, &giving_of, &acked_taking_of, &acked_giving_of, &unlearned, &keeping_of, &ordering_of})
    *n = names(hash, c.halves);
  giving_by_lease.reserve(std::size_t{c.halves} * 2);
  constexpr std::size_t kOfParity = Restoring::kRecent + Restoring::kGroups * ParityTerms::kMostRepair;
  released.reserve(std::size_t{c.frames} + c.queue * 2 + c.halves * 2 + kOfParity);
}

Sending BoxState::to_line(Taking& t) {
  return {t.sender,
          t.account,
          t.silence,
          kIrn,
          {pool, loss, 1, true},
          line_path,
          {line_terms, line_trip, 0, true}};
}

Sending BoxState::to_site(Giving& g) {
  return {g.sender,
          g.account,
          g.silence,
          loss_scheme(g.mode),
          {pool, loss, 1, false},
          site_path,
          {site_terms, site_trip, 0, false}};
}

void let_go(BoxState& b, const Frame& f) {
  if (f.body != kNoBody) b.released.push_back(f.body);
}

void pass(BoxState& b, Side to, const Frame& f) {
  const bool room = b.passing[static_cast<std::size_t>(to)].push(f);
  b.counters.add(room ? BoxCounter::passed : BoxCounter::drop_queue);
  if (!room) let_go(b, f);
}

namespace {
template <class Half>
void arm_row(BoxState& b, std::uint32_t row, const Half& half) {
  const Time at = deadline_of(b, half);
  if (at == kNever) {
    if (b.deadlines.contains(row)) b.deadlines.forget(row);
  } else {
    b.deadlines.at_latest(row, at);
  }
}
}  // namespace

void arm(BoxState& b, const Taking& t, Time) { arm_row(b, b.index_of(t), t); }
void arm(BoxState& b, const Giving& g) { arm_row(b, b.row_of(g), g); }
void arm(BoxState& b, const Keeping& k) { arm_row(b, b.row_of(k), k); }
void arm(BoxState& b, const Ordering& o) { arm_row(b, b.row_of(o), o); }
void arm_partner(BoxState& b) {
  const Time at = partner_deadline(b);
  if (at != kNever) b.deadlines.at_latest(b.most() * 2, at);
}

namespace {
// Streams of requests and of answers take turns.
bool next_for_line(BoxState& b, Out& out, Time now) {
  for (std::uint32_t row = 0; b.line_ready.take(row);) {
    const bool found = row < b.most() ? next_for_line(b, b.takings[row], out, now)
                                      : next_for_line(b, b.keepings[row - b.most()], out, now);
    if (found) return true;
  }
  return false;
}
}  // namespace

Box::Box(const BoxConfig& config) {
  const Result<void> valid = config.validate();
  if (!valid) check_failed(valid.error().message.c_str(), __FILE__, __LINE__, 0, 0);
  state_ = std::make_unique<BoxState>(config);
}
Box::~Box() = default;

void Box::on_frame(Time now, Side from, const Frame& f, std::span<const std::uint8_t> mad) {
  BoxState& b = *state_;
  const wire::Header& h = f.header;
  if (b.blind_since == kNever) b.blind_since = now;
  if (from == Side::kLine && is_message(mad) && on_message(b, f, mad, now)) return let_go(b, f);
  if (is_parity(h)) {
    if (from == Side::kLine && on_parity(b, f, mad, now)) return;
    return pass(b, other(from), f);
  }
  if (!mad.empty() && on_connection_message(b, from, f, mad, now)) return;
  const bool request = is_push(h.opcode) || is_fetch(h.opcode);
  if (from == Side::kSite) {
    if (request) return on_site_request(b, f, now);
    if (h.opcode == wire::kAcknowledge && (on_site_acknowledge(b, f, now) || waits_behind_kept(b, f))) return;
    if (is_answer(h.opcode) && keep_answer(b, f, now)) return;
  } else {
    if (request && on_line_request(b, f, now)) return;
    if (h.opcode == wire::kAcknowledge && on_line_acknowledge(b, f, now)) return let_go(b, f);
    if (h.opcode == wire::kAcknowledge && waits_behind_held(b, f)) return;
    if (is_answer(h.opcode)) {
      if (order_answer(b, f, now)) return;
      on_line_answer(b, f, now);
    }
  }
  pass(b, other(from), f);
}

bool Box::poll(Time now, Side to, Out& out) {
  BoxState& b = *state_;
  if (to == Side::kLine && next_message(b, out, now)) return true;
  if (Frame f; b.passing[static_cast<std::size_t>(to)].take(f)) {
    out = {};
    out.frame = f;
    out.last = true;
    return true;
  }
  if (to == Side::kLine) return next_parity(b, out, now) || next_for_line(b, out, now);
  // An acknowledgement must not overtake the answer of a READ.
  return next_answer_for_site(b, out, now) || next_answer(b, out) || next_for_site(b, out, now);
}

bool Box::poll_released(BodyId& body) {
  std::vector<BodyId>& r = state_->released;
  if (r.empty()) return false;
  body = r.back();
  r.pop_back();
  return true;
}

bool Box::poll_restore(Restore& out) { return next_restore(*state_, out); }
void Box::on_restored(Time now, const Frame& f) { wan::on_restored(*state_, f, now); }

void Box::on_timer(Time now) {
  BoxState& b = *state_;
  while (b.deadlines.next() <= now) {
    const std::uint32_t row = b.deadlines.top();
    const bool forgotten = b.deadlines.forgotten(row);
    b.deadlines.remove(row);
    if (forgotten) continue;
    if (row == b.most() * 2) {
      wan::on_partner_timer(b, now);
    } else if (row == b.parity_row()) {
      wan::on_parity_timer(b, now);
    } else if (row > b.most() * 3) {
      wan::on_timer(b, b.orderings[row - b.most() * 3 - 1], now);
    } else if (row > b.most() * 2) {
      wan::on_timer(b, b.keepings[row - b.most() * 2 - 1], now);
    } else if (row >= b.most()) {
      wan::on_timer(b, b.givings[row - b.most()], now);
    } else if (b.takings[row].phase != Phase::kFree) {
      wan::on_timer(b, b.takings[row], now);
    }
  }
}

void Box::leave(Time now) { wan::leave(*state_, now); }
Time Box::next_deadline() const { return state_->deadlines.next(); }

const BoxConfig& Box::config() const { return state_->config; }
const BoxCounters& Box::counters() const { return state_->counters; }
Bytes Box::stored() const { return {state_->outgoing.bytes() + state_->incoming.bytes()}; }
Bytes Box::most_stored() const { return {state_->outgoing.highest() + state_->incoming.highest()}; }
std::uint32_t Box::owned() const {
  return state_->owned + static_cast<std::uint32_t>(state_->givings.size() - state_->free_givings.size());
}
std::uint32_t Box::loss_blocks_in_use() const { return state_->pool.in_use(); }
ParityTerms Box::partner_parity() const { return state_->partner.parity; }
bool Box::partner_is_there(Time now) const { return wan::partner_there(*state_, now); }

void Box::check_invariants() const {
  BoxState& b = *state_;
  std::uint64_t out = 0;
  std::uint64_t in = 0;
  std::uint32_t owned = 0;
  for (const Taking& t : b.takings) {
    if (t.phase == Phase::kFree) continue;
    out += t.bytes;
    const bool holds = t.phase == Phase::kAsking || t.phase == Phase::kOwned ||
                       t.phase == Phase::kReleasing || (t.phase == Phase::kFailed && t.lease != 0);
    owned += holds ? 1 : 0;
    if (t.phase != Phase::kOwned) {
      CHECK_OP(t.bytes, ==, 0U);
      continue;
    }
    CHECK_OP(t.from.v, <=, t.delivered.v);
    CHECK_OP(t.delivered.v, <=, t.sender.una.v);
    CHECK_OP(t.sender.max.v, <=, t.expected.v);
    CHECK_OP(t.bytes != 0, ==, t.delivered != t.expected || t.held != 0);
    CHECK_OP(t.ahead.bytes != 0, ==, t.held != 0);
  }
  for (const Giving& g : b.givings) {
    if (!g.used) continue;
    in += g.held;
    CHECK_OP(g.from.v, <=, g.sender.una.v);
    CHECK_OP(g.sender.max.v, <=, g.line.expected.v);
    // Only then its deadline is the end of the delay.
    if (g.refused_until.ps != 0 && g.syndrome == 0) CHECK(g.sender.nxt < g.line.expected);
  }
  for (const Keeping& k : b.keepings) {
    if (!k.used) continue;
    out += k.bytes;
    CHECK_OP(k.una.v, <=, k.sent.v);
    CHECK_OP(k.sent.v, <=, k.nxt.v);
    if (k.waiting) CHECK_OP(k.sent.v, ==, k.una.v);
    if (k.alone || k.una == k.nxt) CHECK_OP(k.bytes, ==, 0U);
  }
  for (const Ordering& o : b.orderings) {
    if (!o.used) continue;
    in += o.bytes;
    CHECK_OP(o.given.v, <=, o.in_order().v);
    CHECK_OP(o.in_order().v, <=, o.top.v);
    if (o.given == o.top || numbers_answers_apart(o.mode)) CHECK_OP(o.bytes, ==, 0U);
  }
  CHECK_OP(b.restoring.head - b.restoring.tail, <=, b.restoring.recent.size());
  CHECK_OP(b.covering.members, <=, std::max<std::uint8_t>(b.config.parity.data, 1));
  CHECK_OP(out, ==, b.outgoing.bytes());
  CHECK_OP(in, ==, b.incoming.bytes());
  CHECK_OP(out, <=, b.outgoing.bound());
  CHECK_OP(in, <=, b.incoming.bound());
  CHECK_OP(owned, ==, b.owned);
}

}  // namespace weft::wan
