#include "sim/world/plain_run.h"

#include <algorithm>
#include <array>

#include "core/base/check.h"
#include "sim/world/connect.h"

namespace weft::sim {
namespace {

constexpr std::uint64_t kMemoryAt = 0x1000'0000;
constexpr std::uint64_t kReceived = 1ULL << 63U;  // in the number of a work request: a receive's

}  // namespace

PlainRun::PlainRun(const Scenario& scenario, std::vector<std::unique_ptr<Nic>>& nics, Fabric& fabric,
                   Exchange& exchange, Settler& settler)
    : scenario_(scenario),
      nics_(nics),
      timeline_(fabric.timeline),
      settler_(settler),
      host_of_(nics.size(), nullptr),
      results_(scenario.messages.size()) {
  std::uint64_t longest = 8;
  for (const MessageSpec& m : scenario.messages) longest = std::max(longest, m.size.n);
  for (std::uint32_t h = 0; h < nics.size(); ++h) {
    if (scenario.derived.plain_of_host[h] == 0) continue;
    Host& made = hosts_.emplace_back(*this, fabric, h);
    host_of_[h] = &made;
    made.cq = *nics[h]->create_cq(nics[h]->device().config().max_cqe);
    made.memory = *nics[h]->map(kMemoryAt, longest, kFullAccess, MemoryKind::kCounted, std::nullopt);
  }
  const std::uint32_t receives = scenario.channels.config.depth;
  for (std::uint32_t t = 0; t < scenario.messages.size(); ++t) {
    const MessageSpec& m = scenario.messages[t];
    if (!m.plain) continue;
    for (const auto& [from, to] : pairs_of(m, scenario.graph.hosts)) {
      const auto index = static_cast<std::uint32_t>(pairs_.size());
      Pair p;
      p.table = t;
      p.from = from;
      p.to = to;
      ConnectSpec c;
      c.ends[0] = {nics[from].get(), host_of_[from]->cq, m.under_way == 0 ? receives : m.under_way, 1};
      c.ends[1] = {nics[to].get(), host_of_[to]->cq, 1, receives};
      c.psn_seed = scenario.seed ^ std::uint64_t{index} << 32U;
      const auto made = connect_pair(scenario, c, exchange, nullptr);
      CHECK(made.has_value());
      p.qpn[0] = made->qpn[0];
      p.qpn[1] = made->qpn[1];
      pairs_.push_back(p);
      for (std::uint32_t i = 0; i < receives; ++i) post_receive(index);
      host_of_[from]->starting.push_back(index);
      timeline_.wake(host_of_[from]->actor, Time{} + m.start);
      asked_ += m.count;
    }
  }
  unfinished_ = pairs_.size();
}

std::uint64_t PlainRun::messages_done() const {
  std::uint64_t n = 0;
  for (const MessageResult& r : results_) n += r.messages + r.failed;
  return n;
}

void PlainRun::post_receive(std::uint32_t index) {
  const Pair& p = pairs_[index];
  const Sge into{kMemoryAt, static_cast<std::uint32_t>(spec(p).size.n), host_of_[p.to]->memory.lkey};
  const RecvWr wr{kReceived | index, {&into, 1}};
  (void)nics_[p.to]->post_recv(p.qpn[1], {&wr, 1});  // a queue pair that has failed takes no more
}

void PlainRun::post(Pair& p, std::uint32_t index, Time now) {
  const MessageSpec& m = spec(p);
  const std::uint32_t most = m.under_way == 0 ? scenario_.channels.config.depth : m.under_way;
  while (!p.failed && p.posted != m.count && p.posted - p.ended < most) {
    const Sge piece{kMemoryAt, static_cast<std::uint32_t>(m.size.n), host_of_[p.from]->memory.lkey};
    SendWr wr;
    wr.wr_id = index;
    wr.sges = {&piece, 1};
    wr.opcode = WrOpcode::kSend;
    wr.flags = kSendSignaled;
    CHECK(nics_[p.from]->post_send(p.qpn[0], {&wr, 1}).refused.has_value());
    results_[p.table].first = std::min(results_[p.table].first, now);
    p.posted_at.push_back(now);
    ++p.posted;
  }
}

void PlainRun::poll(HostId host, Time now) {
  if (Host* const h = host_of_[host.v]; h != nullptr) act(*h, now);
}

void PlainRun::act(Host& h, Time now) {
  std::array<Completion, 16> got;
  for (std::uint32_t n = nics_[h.index]->poll(h.cq, got); n != 0; n = nics_[h.index]->poll(h.cq, got)) {
    for (std::uint32_t i = 0; i < n; ++i) completed(h, got[i], now);
  }
  while (!h.held.empty() && h.held.front().first <= now) {
    post_receive(h.held.front().second);
    h.held.pop_front();
  }
  std::erase_if(h.starting, [&](std::uint32_t index) {
    Pair& p = pairs_[index];
    if (now < Time{} + spec(p).start) return false;
    post(p, index, now);
    return true;
  });
  nics_[h.index]->ring();
}

void PlainRun::completed(Host& h, const Completion& c, Time now) {
  const auto index = static_cast<std::uint32_t>(c.wr_id & ~kReceived);
  Pair& p = pairs_[index];
  MessageResult& r = results_[p.table];
  if ((c.wr_id & kReceived) != 0) {
    if (c.status != WcStatus::kSuccess) return;
    r.latencies.push_back(now - p.posted_at.front());
    p.posted_at.pop_front();
    r.bytes += spec(p).size.n;
    if (spec(p).hold.ps == 0) return post_receive(index);
    const Time until = h.busy_until = std::max(now, h.busy_until) + spec(p).hold;
    h.held.emplace_back(until, index);
    timeline_.wake(h.actor, until);
    return;
  }
  ++p.ended;
  r.last = now;
  if (c.status == WcStatus::kSuccess) {
    ++r.messages;
  } else {
    if (!p.failed) ++r.lost;
    p.failed = true;
    ++r.failed;
  }
  const std::uint32_t expected = p.failed ? p.posted : spec(p).count;
  if (p.ended != expected) return post(p, index, now);
  if (p.failed) r.failed += spec(p).count - p.posted;
  if (--unfinished_ == 0) settler_.ended();
}

}  // namespace weft::sim
