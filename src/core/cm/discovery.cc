// One row per peer: asking (with the number of tries made), or settled until it is forgotten. Rows are found
// by peer through a hash table, by time through the deadlines, and by age through the order of settling.
#include "core/cm/discovery.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/base/check.h"
#include "core/base/prng.h"
#include "core/cm/peer_table.h"
#include "core/transport/sched/deadlines.h"

namespace weft::cm {

using wire::Capability;
using wire::Mode;

namespace {

struct Row {
  PeerId peer;
  wire::Address local;
  Qpn target{};
  bool used = false;
  bool owes_query = false;
  bool in_outbox = false;  // survives the row's reuse
  bool in_news = false;    // keeps the row from being used again
  std::uint8_t tries = 0;
  std::uint64_t transaction = 0;
  std::uint64_t settled = 0;  // order of settling
  Time deadline = kNever;
  Known known;
};

}  // namespace

struct Discovery::State {
  explicit State(const DiscoveryConfig& c)
      : config(c),
        random(c.seed),
        rows(c.max_peers),
        by_peer(c.max_peers),
        deadlines(c.max_peers),
        outbox(c.max_peers),
        news(c.max_peers),
        replies(kReplies) {
    CHECK(c.validate().has_value());
    for (std::uint32_t i = c.max_peers; i-- > 0;) free_rows.push_back(i);
  }

  Row* find(const PeerId& peer) {
    const std::uint32_t row = by_peer.find({peer.address, peer.slot});
    return row == PeerTable::kNoRow ? nullptr : &rows[row];
  }
  std::uint32_t index_of(const Row& r) const { return static_cast<std::uint32_t>(&r - rows.data()); }

  Row* create(const PeerId& peer) {
    // A row whose news was not polled yet must keep the peer that the news is about.
    const auto quiet = [&](std::uint32_t i) { return !rows[i].in_news; };
    auto found = std::find_if(free_rows.rbegin(), free_rows.rend(), quiet);
    if (found == free_rows.rend()) {
      Row* oldest = nullptr;
      for (Row& r : rows) {
        if (r.used && !r.in_news && r.known.knowledge != Knowledge::kAsking &&
            (oldest == nullptr || r.settled < oldest->settled))
          oldest = &r;
      }
      if (oldest == nullptr) return nullptr;
      drop(*oldest);
      found = free_rows.rbegin();
    }
    Row& r = rows[*found];
    free_rows.erase(std::next(found).base());
    const bool in_outbox = r.in_outbox;
    r = Row{};
    r.in_outbox = in_outbox;
    r.used = true;
    r.peer = peer;
    by_peer.set({peer.address, peer.slot}, index_of(r));
    return &r;
  }
  void drop(Row& r) {
    by_peer.erase(index_of(r));
    deadlines.remove(index_of(r));
    r.used = r.owes_query = false;
    r.deadline = kNever;
    free_rows.push_back(index_of(r));
  }
  void tell(Row& r) {
    if (r.in_news) return;
    r.in_news = true;
    news[news_tail++ % news.size()] = index_of(r);
  }
  void ask(Row& r, Time now) {
    r.deadline = now.after(config.tries[r.tries++]);
    deadlines.at_latest(index_of(r), r.deadline);
    r.owes_query = true;
    if (r.in_outbox) return;
    r.in_outbox = true;
    outbox[outbox_tail++ % outbox.size()] = index_of(r);
  }
  void settle(Row& r, const Known& known, Time until) {
    r.known = known;
    r.owes_query = false;
    r.settled = ++settlings;
    r.deadline = until;
    if (until != kNever) deadlines.at_latest(index_of(r), until);
    tell(r);
  }
  void settle_silent(Row& r, Time now) {
    Known k;
    k.mode = common_mode(config.modes, mode_bit(Mode::kRoce), config.preferred);
    settle(r, k, now.after(config.silence));
  }
  Capability ours() const {
    Capability c;
    c.flags = config.flags;
    c.modes = config.modes;
    c.instance = config.instance;
    c.buffer_share = config.buffer_share;
    c.bdp_cap = config.bdp_cap;
    c.mtu = config.mtu;
    c.host_id = config.host_id;
    return c;
  }
  void on_query(const MadFacts& f, const Capability& c) {
    const PeerId asker{f.source, static_cast<std::uint8_t>(c.transaction >> 56U)};
    if (Row* r = find(asker); r != nullptr && r->known.knowledge == Knowledge::kSpeaks)
      drop_if_renewed(*r, c);
    if (replies_tail - replies_head == kReplies) {
      ++counters.overflow;
      return;
    }
    ++counters.asked;
    Capability answer = ours();
    answer.reply = true;
    answer.transaction = c.transaction;
    answer.target = c.target;
    answer.flags = c.host_id == config.host_id ? config.flags & c.flags : 0;
    MadOut& out = replies[replies_tail++ % kReplies];
    out.facts = {.source = f.destination, .destination = f.source};
    encode(answer, out.mad);
  }
  void on_reply(const MadFacts& f, const Capability& c, Time now) {
    Row* const r = find(peer_of(f.source, c.target));
    if (r == nullptr || r->transaction != c.transaction) {
      ++counters.strays;
      return;
    }
    if (r->known.knowledge == Knowledge::kAsking) {
      ++counters.answers;
      if (c.status != 0) return settle_silent(*r, now);
      settle(*r, {Knowledge::kSpeaks, common_mode(config.modes, c.modes, config.preferred), c}, kNever);
    } else if (r->known.knowledge == Knowledge::kSpeaks && c.status == 0) {
      drop_if_renewed(*r, c);
    }
  }
  // Another process has this address and slot now, so what was known no longer holds.
  void drop_if_renewed(Row& r, const Capability& c) {
    if (c.instance == r.known.capability.instance) return;
    ++counters.renewed;
    tell(r);
    drop(r);
  }
  PeerId peer_of(const wire::Address& address, Qpn target) const {
    return {address, static_cast<std::uint8_t>((target.v & 0xFF'FFFFU) >> (24U - config.slot_bits))};
  }

  DiscoveryConfig config;
  DiscoveryCounters counters;
  Prng random;
  std::vector<Row> rows;
  std::vector<std::uint32_t> free_rows;
  PeerTable by_peer;
  Deadlines deadlines;
  std::uint64_t settlings = 0;
  std::vector<std::uint32_t> outbox, news;  // rings, at most one entry a row
  std::uint64_t outbox_head = 0, outbox_tail = 0, news_head = 0, news_tail = 0;
  static constexpr std::size_t kReplies = 64;
  std::vector<MadOut> replies;
  std::uint64_t replies_head = 0, replies_tail = 0;
};

Result<void> DiscoveryConfig::validate() const {
  if (max_peers == 0 || max_peers > (1U << 16U)) return fail("max_peers must be between 1 and 65536");
  if (slot_bits > 8) return fail("slot_bits must be at most 8");
  if (modes == 0 || (modes & ~unsigned{wire::kAllModes}) != 0)
    return fail("modes must name some of roce, irn and srnic");
  if ((modes & mode_bit(preferred)) == 0) return fail("preferred must be one of modes");
  for (const Duration d : tries) {
    if (d.ps <= 0) return fail("tries must be positive times");
  }
  if (silence.ps <= 0) return fail("silence must be a positive time");
  return {};
}

Mode common_mode(std::uint16_t ours, std::uint16_t theirs, Mode preferred) {
  const unsigned both = ours & theirs;
  for (const Mode mode : {preferred, Mode::kSrnic, Mode::kIrn, Mode::kRoce}) {
    if ((both & mode_bit(mode)) != 0) return mode;
  }
  return (ours & mode_bit(Mode::kRoce)) != 0 ? Mode::kRoce : preferred;
}

Discovery::Discovery(const DiscoveryConfig& config) : state_(std::make_unique<State>(config)) {}
Discovery::~Discovery() = default;

PeerId Discovery::peer_of(const wire::Address& address, Qpn target) const {
  return state_->peer_of(address, target);
}

Known Discovery::look_up(Time now, const wire::Address& local, const wire::Address& peer, Qpn target) {
  State& s = *state_;
  const PeerId id = s.peer_of(peer, target);
  Row* r = s.find(id);
  if (r != nullptr) return r->known;
  r = s.create(id);
  if (r == nullptr) {
    ++s.counters.overflow;
    Known silent;
    silent.mode = common_mode(s.config.modes, mode_bit(Mode::kRoce), s.config.preferred);
    return silent;
  }
  r->local = local;
  r->target = target;
  r->known.knowledge = Knowledge::kAsking;
  r->transaction = (std::uint64_t{s.config.slot} << 56U) | (s.random.next() >> 8U);
  s.ask(*r, now);
  return r->known;
}

void Discovery::forget(const PeerId& peer) {
  Row* r = state_->find(peer);
  if (r != nullptr && r->known.knowledge != Knowledge::kAsking) state_->drop(*r);
}

bool Discovery::poll_news(PeerId& out) {
  State& s = *state_;
  if (s.news_head == s.news_tail) return false;
  Row& r = s.rows[s.news[s.news_head++ % s.news.size()]];
  r.in_news = false;
  out = r.peer;
  return true;
}

bool Discovery::on_mad(Time now, const MadFacts& facts, std::span<const std::uint8_t> bytes) {
  Capability c;
  wire::MadError error{};
  if (!decode(bytes, c, error)) return false;
  c.reply ? state_->on_reply(facts, c, now) : state_->on_query(facts, c);
  return true;
}

bool Discovery::poll_mad(MadOut& out) {
  State& s = *state_;
  if (s.replies_head != s.replies_tail) {
    out = s.replies[s.replies_head++ % State::kReplies];
    return true;
  }
  while (s.outbox_head != s.outbox_tail) {
    Row& r = s.rows[s.outbox[s.outbox_head++ % s.outbox.size()]];
    r.in_outbox = false;
    if (!r.owes_query) continue;
    r.owes_query = false;
    Capability c = s.ours();
    c.transaction = r.transaction;
    c.target = r.target;
    out.facts = {.source = r.local, .destination = r.peer.address};
    encode(c, out.mad);
    ++s.counters.queries;
    return true;
  }
  return false;
}

void Discovery::on_timer(Time now) {
  State& s = *state_;
  while (!s.deadlines.empty() && s.deadlines.next() <= now) {
    const std::uint32_t index = s.deadlines.top();
    s.deadlines.remove(index);
    Row& r = s.rows[index];
    if (r.deadline == kNever) continue;
    if (r.deadline > now) {
      s.deadlines.at_latest(index, r.deadline);
    } else if (r.known.knowledge == Knowledge::kSilent) {
      s.drop(r);  // may be asked again
    } else if (r.tries < s.config.tries.size()) {
      s.ask(r, now);
    } else {
      s.settle_silent(r, now);
    }
  }
}

Time Discovery::next_deadline() const { return state_->deadlines.next(); }
const DiscoveryConfig& Discovery::config() const { return state_->config; }
const DiscoveryCounters& Discovery::counters() const { return state_->counters; }
std::uint32_t Discovery::peers() const { return state_->by_peer.size(); }

}  // namespace weft::cm
