#include "sim/world/channel_run.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace weft::sim {
namespace {

using channel::Channel;
using channel::Fate;
using channel::Message;
using channel::Notice;

constexpr std::uint16_t kService = 1;
constexpr std::uint32_t kNobody = UINT32_MAX;  // the cookie of an answer: nobody asks what became of it
constexpr Duration kAgain = microseconds(1);   // before an answer that was refused is tried again

void add(channel::ChannelCounts& to, const channel::ChannelCounts& c) {
  to.sent += c.sent;
  to.sent_bytes += c.sent_bytes;
  to.received += c.received;
  to.received_bytes += c.received_bytes;
  to.large_sent += c.large_sent;
  to.large_received += c.large_received;
  to.fragments += c.fragments;
  to.acks += c.acks;
  to.early += c.early;
  to.nops += c.nops;
  to.probes += c.probes;
  to.waited += c.waited;
  to.reconnects += c.reconnects;
}

}  // namespace

ChannelRun::Host::Host(ChannelRun& r, Fabric& fabric, std::uint32_t i)
    : run(r), index(i), actor(fabric.timeline.add<&Host::on_wake>(*this, fabric.node_of(HostId{i}))) {}

ChannelRun::ChannelRun(const Scenario& scenario, std::vector<std::unique_ptr<Nic>>& nics, Fabric& fabric,
                       Settler& settler)
    : scenario_(scenario),
      nics_(nics),
      timeline_(fabric.timeline),
      settler_(settler),
      host_of_(nics.size(), nullptr),
      results_(scenario.messages.size()),
      to_upgrade_(scenario.messages.size(), 0) {
  for (std::uint32_t h = 0; h < nics.size(); ++h) {
    if (scenario.derived.channels_of_host[h] == 0) continue;
    Host& made = hosts_.emplace_back(*this, fabric, h);
    host_of_[h] = &made;
    auto context = channel::Context::open(*nics[h], context_config(scenario, h), scenario.seed * 65'537 + h);
    CHECK(context.has_value());  // wrong_messages() saw to it
    made.context = std::move(*context);
    CHECK(made.context->listen(kService).has_value());
  }
  for (std::uint32_t t = 0; t < scenario.messages.size(); ++t) {
    const MessageSpec& m = scenario.messages[t];
    if (m.plain) continue;
    const auto pairs = pairs_of(m, scenario.graph.hosts);
    const auto first = static_cast<std::uint32_t>(pairs_.size());
    for (const auto& [from, to] : pairs) {
      Pair p;
      p.table = t;
      p.from = from;
      p.to = to;
      pairs_.push_back(p);
      host_of_[from]->to_do.emplace(Time{} + m.start,
                                    std::pair{Act::kBegin, static_cast<std::uint32_t>(pairs_.size() - 1)});
    }
    asked_ += pairs.size() * m.count;
    if (m.upgrade_at.ps == 0) continue;
    // Every k-th, spread over the whole list, so that each host has its part of them.
    std::uint64_t sum = 0;
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t i = 0; i < pairs.size(); ++i) {
      sum += m.upgrade_part;
      if (sum < 1'000'000) continue;
      sum -= 1'000'000;
      chosen.push_back(first + i);
    }
    results_[t].upgrade_at = Time{} + m.upgrade_at;
    to_upgrade_[t] = static_cast<std::uint32_t>(chosen.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const Duration later{m.upgrade_over.ps / static_cast<std::int64_t>(chosen.size()) *
                           static_cast<std::int64_t>(i)};
      Pair& p = pairs_[chosen[i]];
      p.upgrades = true;
      host_of_[p.from]->to_do.emplace(Time{} + m.upgrade_at + later, std::pair{Act::kUpgrade, chosen[i]});
    }
  }
  unfinished_ = pairs_.size();
  for (Host& h : hosts_) arm(h, Time{});
}

ChannelRun::~ChannelRun() = default;

std::uint64_t ChannelRun::messages_done() const {
  std::uint64_t n = 0;
  for (const MessageResult& r : results_) n += r.messages + r.failed;
  return n;
}

bool ChannelRun::closed() const {
  return std::all_of(hosts_.begin(), hosts_.end(),
                     [](const Host& h) { return h.context->open_channels() == 0; });
}

// --- a host's turn ---

void ChannelRun::wake(Host& h, Time at) {
  if (at >= h.asked) return;
  h.asked = at;
  timeline_.wake(h.actor, at);
}

void ChannelRun::Host::on_wake(Time now) {
  if (now >= asked) asked = kNever;
  run.act(*this, now);
}

void ChannelRun::poll(HostId host, Time now) {
  if (Host* const h = host_of_[host.v]; h != nullptr) act(*h, now);
}

void ChannelRun::told(HostId host, Time now) {
  if (Host* const h = host_of_[host.v]; h != nullptr) wake(*h, now);
}

void ChannelRun::act(Host& h, Time now) {
  h.context->poll(now);
  for (Notice n; h.context->next(n);) notice(h, n, now);
  let_go(h, now);
  do_now(h, now);
  if (closing_ && !h.closed) {
    h.closed = true;
    std::vector<Channel*> open;
    h.context->each_channel([&](const Channel& c) {
      if (c.asked) open.push_back(const_cast<Channel*>(&c));
    });
    for (Channel* c : open) h.context->close(*c);
  }
  arm(h, now);
}

void ChannelRun::arm(Host& h, Time now) {
  Time at = h.context->next_wake();
  if (!h.held.empty()) at = std::min(at, h.held.begin()->first);
  if (!h.to_do.empty()) at = std::min(at, h.to_do.begin()->first);
  if (at != kNever) wake(h, std::max(at, now));
}

void ChannelRun::do_now(Host& h, Time now) {
  while (!h.to_do.empty() && h.to_do.begin()->first <= now) {
    const auto [what, pair] = h.to_do.begin()->second;
    h.to_do.erase(h.to_do.begin());
    Pair& p = pairs_[pair];
    if (what == Act::kBegin) dial(h, pair, now);
    if (what == Act::kSend) send(h, pair, now);
    if (what != Act::kUpgrade) continue;
    if (p.finished || !p.open) {
      --to_upgrade_[p.table];
      continue;
    }
    p.leaving = true;
    p.open = false;
    p.closed_at = now;
    leave(h, p);
  }
}

// A program that is to be replaced takes no more work, ends what it has, and closes.
void ChannelRun::leave(Host& h, Pair& p) {
  if (!p.leaving || p.begun != p.ended) return;
  p.leaving = false;
  h.context->close(*p.channel);
}

void ChannelRun::let_go(Host& h, Time now) {
  while (!h.held.empty() && h.held.begin()->first <= now) {
    const Held held = h.held.begin()->second;
    h.held.erase(h.held.begin());
    if (held.message->role == channel::Role::kRequest && !answer(h, held)) {
      h.held.emplace(now + kAgain, held);
    } else {
      h.context->release(held.message);
    }
  }
}

// A program is at work on one message after the other.
void ChannelRun::hold(Host& h, std::uint32_t pair, Message* message, Time now) {
  const Duration work = spec(pairs_[pair]).hold;
  Time until = now;
  if (work.ps != 0) until = h.busy_until = std::max(now, h.busy_until) + work;
  h.held.emplace(until, Held{message, pair});
}

// False: not now.
bool ChannelRun::answer(Host& h, const Held& held) {
  const Channel::State state = held.message->channel->state;
  if (state != Channel::State::kOpen && state != Channel::State::kBroken) return true;
  Message* const made = h.context->allocate(static_cast<std::uint32_t>(spec(pairs_[held.pair]).answer.n));
  if (made == nullptr) return false;
  if (h.context->answer(*held.message, made, 0, kNobody)) return true;
  h.context->release(made);
  return false;
}

// --- what happens ---

void ChannelRun::notice(Host& h, const Notice& n, Time now) {
  const auto pair = static_cast<std::uint32_t>(n.kind == Notice::Kind::kOutcome ? n.cookie
                                               : n.channel != nullptr           ? n.channel->cookie
                                                                                : 0);
  if (n.kind == Notice::Kind::kOutcome && n.cookie == kNobody) return;
  switch (n.kind) {
    case Notice::Kind::kAsked:
      h.most_channels = std::max(h.most_channels, h.context->open_channels());
      return h.context->accept(*n.channel, sessions_.at(n.channel->session));
    case Notice::Kind::kOpened: {
      if (!n.channel->asked) return;
      Pair& p = pairs_[pair];
      MessageResult& r = results_[p.table];
      r.connects.push_back(now - p.asked_at);
      if (p.closed_at != kNever) {
        r.reconnects.push_back(now - p.closed_at);
        p.closed_at = kNever;
        if (--to_upgrade_[p.table] == 0) r.upgraded = now;
      }
      p.open = true;
      return send(h, pair, now);
    }
    case Notice::Kind::kMessage:
      arrived(pair, n.message->length, now);
      hold(h, pair, n.message, now);
      return;
    case Notice::Kind::kRequest:
      hold(h, pair, n.message, now);
      return;
    case Notice::Kind::kResponse: {
      const std::uint64_t bytes = n.message->length + spec(pairs_[pair]).size.n;
      h.context->release(n.message);
      arrived(pair, bytes, now);
      return ended(h, pair, true, now);
    }
    case Notice::Kind::kOutcome:
      return ended(h, pair, n.fate == Fate::kDelivered, now);
    case Notice::Kind::kClosed:
      return closed(h, n, now);
  }
}

void ChannelRun::dial(Host& h, std::uint32_t pair, Time now) {
  Pair& p = pairs_[pair];
  p.asked_at = now;
  const auto made = h.context->connect(nics_[p.to]->address(), kService, pair);
  h.most_channels = std::max(h.most_channels, h.context->open_channels());
  if (!made) {
    MessageResult& r = results_[p.table];
    ++r.lost;
    if (r.why == nullptr) r.why = channel::sentence(channel::Reason::kNoMemory);
    return finish(p, now);
  }
  p.channel = *made;
  sessions_[(*made)->session] = pair;
}

// All that may leave now. One that is refused stands in its host's line until something has ended there.
void ChannelRun::send(Host& h, std::uint32_t pair, Time now) {
  Pair& p = pairs_[pair];
  const MessageSpec& m = spec(p);
  if (!p.open || p.hungry) return;
  while (p.begun != m.count && (m.under_way == 0 || p.begun - p.ended < m.under_way)) {
    if (m.every.ps != 0 && p.next > now) {
      if (p.next_wake != p.next) h.to_do.emplace(p.next, std::pair{Act::kSend, pair});
      p.next_wake = p.next;
      return;
    }
    if (!send_one(h, pair, now)) {
      if (p.begun == p.ended) {  // nothing of its own will end
        p.hungry = true;
        h.hungry.push_back(pair);
      }
      return;
    }
    if (m.every.ps != 0) p.next = std::max(p.next, Time{} + m.start) + m.every;
  }
}

bool ChannelRun::send_one(Host& h, std::uint32_t pair, Time now) {
  Pair& p = pairs_[pair];
  const MessageSpec& m = spec(p);
  Message* const made = h.context->allocate(static_cast<std::uint32_t>(m.size.n));
  if (made == nullptr) return false;
  const bool taken = m.asks ? h.context->call(*p.channel, made, pair, kNever).has_value()
                            : h.context->send(*p.channel, made, pair, true).has_value();
  if (!taken) {
    h.context->release(made);
    return false;
  }
  MessageResult& r = results_[p.table];
  r.first = std::min(r.first, now);
  // Bounded open loops that have fallen behind count from when a message was due.
  p.begun_at.push_back(m.every.ps != 0 && p.next < now && p.next != Time{} ? p.next : now);
  ++p.begun;
  return true;
}

// In the far program's hands; a response in the program's own.
void ChannelRun::arrived(std::uint32_t pair, std::uint64_t bytes, Time now) {
  Pair& p = pairs_[pair];
  MessageResult& r = results_[p.table];
  if (p.begun_at.empty()) return;
  const Time begun = p.begun_at.front();
  p.begun_at.pop_front();
  r.latencies.push_back(now - begun);
  r.bytes += bytes;
  const MessageSpec& m = spec(p);
  if (m.upgrade_at.ps == 0) return;
  r.done_at.push_back(now);
  if (p.upgrades) return;
  const Time at = Time{} + m.upgrade_at;
  if (begun < at) {
    r.calm.push_back(now - begun);
  } else if (to_upgrade_[p.table] != 0) {
    r.storm.push_back(now - begun);
  }
}

void ChannelRun::ended(Host& h, std::uint32_t pair, bool well, Time now) {
  Pair& p = pairs_[pair];
  MessageResult& r = results_[p.table];
  if (p.finished) return;
  ++(well ? r.messages : r.failed);
  r.last = now;
  if (++p.ended == spec(p).count) finish(p, now);
  leave(h, p);
  send(h, pair, now);
  for (std::size_t n = h.hungry.size(); n != 0; --n) {
    const std::uint32_t next = h.hungry.front();
    h.hungry.pop_front();
    pairs_[next].hungry = false;
    send(h, next, now);
    if (pairs_[next].hungry) break;  // it stands at the end of the line again
  }
}

void ChannelRun::closed(Host& h, const Notice& n, Time now) {
  add(h.past, n.channel->counts());
  if (!n.channel->asked) return;
  const auto pair = static_cast<std::uint32_t>(n.channel->cookie);
  Pair& p = pairs_[pair];
  sessions_.erase(n.channel->session);
  p.channel = nullptr;
  p.open = false;
  p.begun_at.clear();
  if (p.closed_at != kNever && !p.finished) return dial(h, pair, now);
  if (p.closed_at != kNever) --to_upgrade_[p.table];
  if (p.finished) return;
  MessageResult& r = results_[p.table];
  ++r.lost;
  if (r.why == nullptr) r.why = channel::sentence(n.reason);
  r.failed += spec(p).count - p.ended;
  finish(p, now);
}

void ChannelRun::finish(Pair& p, Time now) {
  if (p.finished) return;
  p.finished = true;
  if (--unfinished_ == 0) all_done(now);
}

void ChannelRun::all_done(Time now) {
  closing_ = true;
  for (Host& h : hosts_) {
    h.to_do.clear();
    wake(h, now);
  }
  settler_.ended();
}

ChannelTotals ChannelRun::totals() const {
  ChannelTotals t;
  for (const Host& h : hosts_) {
    ++t.contexts;
    t.channels = std::max<std::uint64_t>(t.channels, h.most_channels);
    add(t.counts, h.past);
    h.context->each_channel([&](const Channel& c) { add(t.counts, c.counts()); });
    const channel::ContextCounts& c = h.context->counts();
    t.violations += c.violations;
    t.starved += c.starved;
    t.fresh_qps += c.fresh_qps;
    t.reused_qps += c.reused_qps;
    const std::uint64_t own = h.context->own_memory().most;
    const std::uint64_t lent = h.context->lent_memory().most;
    t.most_own = std::max(t.most_own, own);
    t.most_lent = std::max(t.most_lent, lent);
    t.all_memory += own + lent;
  }
  t.waited = t.counts.waited;
  return t;
}

}  // namespace weft::sim
