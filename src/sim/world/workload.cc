#include "sim/world/workload.h"

#include <algorithm>
#include <tuple>

#include "core/base/check.h"
#include "sim/world/connect.h"

namespace weft::sim {
namespace {

constexpr std::uint64_t kMemoryAt = 0x1000'0000;
constexpr std::uint32_t kNobody = UINT32_MAX;

bool consumes_receive(WrOpcode op) {
  return op == WrOpcode::kSend || op == WrOpcode::kSendImm || op == WrOpcode::kWriteImm;
}

}  // namespace

Workload::Workload(const Scenario& scenario, std::vector<std::unique_ptr<Nic>>& nics, Timeline& timeline,
                   Exchange& exchange, check::Referee* referee, Settler& settler)
    : scenario_(scenario),
      nics_(nics),
      timeline_(timeline),
      exchange_(exchange),
      referee_(referee),
      settler_(settler),
      start_actor_(timeline.add<&Workload::on_start>(*this)),
      hosts_(nics.size()),
      results_(scenario.flows.size()),
      rounds_(scenario.flows.size()),
      done_of_(scenario.flows.size()),
      started_(scenario.flows.size()) {
  for (std::uint32_t h = 0; h < hosts_.size(); ++h) open_host(h);
  for (std::uint32_t f = 0; f < scenario.flows.size(); ++f) open_flow(f);
}

std::uint32_t Workload::index_of(std::uint32_t host, Qpn qpn) const {
  return qpn.v & ((1U << nics_[host]->device().config().qpn_bits) - 1U);
}

void Workload::open_host(std::uint32_t index) {
  Host& h = hosts_[index];
  Nic& nic = *nics_[index];
  std::uint64_t length = 8;
  std::uint64_t entries = 16;
  for (const FlowSpec& f : scenario_.flows) {
    if (f.from != index && f.to != index) continue;
    length += f.stretch() * f.qps;
    entries += std::uint64_t{f.depth} * f.qps * 2U;
  }
  const DeviceConfig& config = nic.device().config();
  h.cq = *nic.create_cq(static_cast<std::uint32_t>(std::min<std::uint64_t>(entries, config.max_cqe)));
  h.memory =
      *nic.map(kMemoryAt, length, kFullAccess, scenario_.bytes ? MemoryKind::kBytes : MemoryKind::kCounted,
               Prng(scenario_.seed + index));
  const std::size_t numbers = std::size_t{1} << config.qpn_bits;
  h.sender_of.assign(numbers, kNobody);
  h.receiver_of.assign(numbers, kNobody);
  if (referee_ == nullptr) return;
  check::Region r;
  r.key = h.memory.rkey;
  r.pd = nic.domain();
  r.address = kMemoryAt;
  r.length = length;
  r.access = kFullAccess;
  r.memory = h.memory.bytes;
  referee_->region({index}, nic.region_of(h.memory.lkey), r);
}

void Workload::open_flow(std::uint32_t flow) {
  const FlowSpec& f = scenario_.flows[flow];
  wanted_ += f.count * f.qps;
  for (std::uint32_t i = 0; i < f.qps; ++i) connect(f, flow);
  results_[flow].latencies.reserve(
      static_cast<std::size_t>(std::min<std::uint64_t>(f.count * f.qps, 1U << 24U)));
  timeline_.wake(start_actor_, Time{} + f.start);
}

void Workload::connect(const FlowSpec& f, std::uint32_t flow) {
  ConnectSpec spec;
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::uint32_t host = i == 0 ? f.from : f.to;
    spec.ends[i] = {nics_[host].get(), hosts_[host].cq, i == 0 ? f.depth : 1U,
                    i == 1 && consumes_receive(f.op) ? 2 * f.depth : 1U};
  }
  spec.reads = std::min(f.depth, 128U);
  spec.psn_seed = scenario_.seed ^ (std::uint64_t{flow} << 32U) ^ unfinished_;
  const auto made = connect_pair(scenario_, spec, exchange_, referee_);
  CHECK(made.has_value());
  const Qpn qpn[2] = {made->qpn[0], made->qpn[1]};
  Host& from = hosts_[f.from];
  Host& to = hosts_[f.to];
  Sender s;
  s.flow = flow;
  s.host = f.from;
  s.qpn = qpn[0];
  s.posted_at.resize(f.depth);
  s.remote = to.memory.rkey;
  s.here = kMemoryAt + from.taken;
  s.there = kMemoryAt + to.taken;
  from.taken += f.stretch();
  to.taken += f.stretch();
  from.sender_of[index_of(f.from, qpn[0])] = static_cast<std::uint32_t>(from.senders.size());
  rounds_[flow].senders.push_back(static_cast<std::uint32_t>(from.senders.size()));
  from.senders.push_back(std::move(s));
  to.receiver_of[index_of(f.to, qpn[1])] = static_cast<std::uint32_t>(to.receivers.size());
  to.receivers.push_back(
      {flow, qpn[1], 0, s.there, f.from, static_cast<std::uint32_t>(from.senders.size() - 1), 0});
  if (consumes_receive(f.op)) {
    for (std::uint32_t i = 0; i < 2 * f.depth; ++i) post_receive(f.to, to.receivers.back(), Time{});
  }
  ++unfinished_;
}

// Flows that start together post in turns, a queue pair of each: they are programs beside each other.
void Workload::on_start(Time now) {
  std::vector<std::uint32_t> starting;
  for (std::uint32_t f = 0; f < scenario_.flows.size(); ++f) {
    if (started_[f] || now < Time{} + scenario_.flows[f].start) continue;
    started_[f] = true;
    results_[f].first_post = now;
    starting.push_back(f);
  }
  bool more = true;
  for (std::size_t i = 0; more; ++i) {
    more = false;
    for (const std::uint32_t f : starting) {
      const Round& r = rounds_[f];
      if (i >= r.senders.size()) continue;
      more = true;
      post(hosts_[scenario_.flows[f].from].senders[r.senders[i]], now);
    }
  }
  for (const std::uint32_t f : starting) nics_[scenario_.flows[f].from]->ring();
}

std::uint64_t Workload::next_batch(const Sender& s) const {
  const FlowSpec& f = scenario_.flows[s.flow];
  return s.failed ? 0 : std::min<std::uint64_t>(f.batch, f.count - s.posted);
}

void Workload::post(Sender& s, Time now) {
  const FlowSpec& f = scenario_.flows[s.flow];
  if (f.rotate) return post_round(s.flow, now);
  while (next_batch(s) != 0 && s.posted - s.completed + next_batch(s) <= f.depth) post_batch(s, now);
}

void Workload::post_round(std::uint32_t flow, Time now) {
  const FlowSpec& f = scenario_.flows[flow];
  Round& r = rounds_[flow];
  std::vector<Sender>& senders = hosts_[f.from].senders;
  for (std::size_t idle = 0; idle < r.senders.size() && r.under_way + f.batch <= f.depth;) {
    Sender& s = senders[r.senders[r.next]];
    r.next = r.next + 1 == r.senders.size() ? 0 : r.next + 1;
    const std::uint64_t n = next_batch(s);
    idle = n == 0 ? idle + 1 : 0;
    if (n == 0) continue;
    r.under_way += n;
    post_batch(s, now);
  }
}

void Workload::post_batch(Sender& s, Time now) {
  const FlowSpec& f = scenario_.flows[s.flow];
  for (std::uint64_t left = next_batch(s); left != 0; --left) {
    const std::uint64_t into = s.posted % f.places() * f.size.n;
    // Each time that a slot is filled, its bytes come from another place, so old bytes would be noticed.
    const std::uint64_t out_of = (s.posted + s.posted / f.slots()) % f.slots() * f.size.n;
    const bool reads = f.op == WrOpcode::kRead;
    const bool atomic = f.op == WrOpcode::kCompareSwap || f.op == WrOpcode::kFetchAdd;
    const Sge piece{s.here + (reads || atomic ? into : out_of), static_cast<std::uint32_t>(f.size.n),
                    hosts_[s.host].memory.lkey};
    SendWr wr;
    wr.wr_id = s.posted;
    wr.sges = {&piece, f.size.n == 0 ? 0U : 1U};
    wr.opcode = f.op;
    wr.flags = left == 1 ? kSendSignaled : 0;
    wr.imm = static_cast<std::uint32_t>(s.posted);
    wr.remote_address = s.there + (reads ? out_of : into);
    wr.rkey = s.remote;
    wr.compare_or_add = 1;
    if (referee_ != nullptr) referee_->posted_send({{s.host}, s.qpn}, wr, {}, now);
    CHECK(nics_[s.host]->post_send(s.qpn, {&wr, 1}).refused.has_value());
    s.posted_at[s.posted % f.depth] = now;
    ++s.posted;
  }
}

void Workload::post_receive(std::uint32_t host, Receiver& r, Time now) {
  const FlowSpec& f = scenario_.flows[r.flow];
  // A WRITE with immediate takes a receive and none of its memory.
  const bool fills = f.op != WrOpcode::kWriteImm && f.size.n != 0;
  const Sge piece{r.here + r.posted % f.slots() * f.size.n, static_cast<std::uint32_t>(f.size.n),
                  hosts_[host].memory.lkey};
  const RecvWr wr{r.posted++, {&piece, fills ? 1U : 0U}};
  // A queue pair that has failed takes no more.
  if (nics_[host]->post_recv(r.qpn, {&wr, 1}).refused && referee_ != nullptr)
    referee_->posted_recv({{host}, r.qpn}, wr, now);
}

void Workload::completed(std::uint32_t host, const Completion& c, Time now) {
  Host& h = hosts_[host];
  const std::uint32_t index = index_of(host, c.qpn);
  if (h.sender_of[index] == kNobody) {
    Receiver& r = h.receivers[h.receiver_of[index]];
    if (c.status != WcStatus::kSuccess) return;
    const Sender& s = hosts_[r.from].senders[r.sender];
    if (++r.completed == s.posted)
      results_[r.flow].one_way.push_back(now - s.posted_at[(s.posted - 1) % s.posted_at.size()]);
    post_receive(host, r, now);
    return;
  }
  Sender& s = h.senders[h.sender_of[index]];
  if (static_cast<std::uint8_t>(c.opcode) >= static_cast<std::uint8_t>(WcOpcode::kReceive)) return;
  FlowResult& r = results_[s.flow];
  // Those before it that were not signalled have succeeded.
  while (s.completed < c.wr_id) succeeded(s, now);
  if (c.status == WcStatus::kSuccess) return succeeded(s, now);
  ++s.completed;
  ++r.failed;
  if (scenario_.flows[s.flow].rotate) --rounds_[s.flow].under_way;
  if (s.failed) return;
  if (r.first_failure == WcStatus::kSuccess) r.first_failure = c.status;
  s.failed = true;
  finished_one();
}

void Workload::succeeded(Sender& s, Time now) {
  FlowResult& r = results_[s.flow];
  const FlowSpec& f = scenario_.flows[s.flow];
  r.latencies.push_back(now - s.posted_at[s.completed % f.depth]);
  ++s.completed;
  ++r.messages;
  r.bytes += f.size.n;
  r.last_completion = now;
  if (r.messages == f.count * f.qps / 2) {
    r.half_at = now;
    r.half_bytes = r.bytes;
  }
  if (f.rotate) --rounds_[s.flow].under_way;
  recent_.push_back({now, s.flow});
  settler_.ended();
  if (s.completed != f.count || s.failed) return;
  finished_one();
  const double rate = static_cast<double>(f.count) * 1e12 / static_cast<double>((now - r.first_post).ps);
  r.rate_sum += rate;
  r.rate_squares += rate * rate;
  ++r.rates;
}

// By time: which host ran first inside the window does not matter.
void Workload::settle() {
  std::sort(recent_.begin(), recent_.end(),
            [](const Done& a, const Done& b) { return std::tie(a.at, a.flow) < std::tie(b.at, b.flow); });
  for (const Done& d : recent_) {
    const FlowSpec& f = scenario_.flows[d.flow];
    if (++done_ * 5 >= wanted_ && together_from_ == kNever) {
      together_from_ = d.at;
      together_.messages = done_;
    }
    if (++done_of_[d.flow] == f.count * f.qps && together_from_ != kNever && together_.elapsed.ps == 0)
      together_ = {done_ - together_.messages, d.at - together_from_};
  }
  recent_.clear();
}

void Workload::poll(HostId host, Time now) {
  Nic& nic = *nics_[host.v];
  Host& h = hosts_[host.v];
  bool any = false;
  for (std::uint32_t n = nic.poll(h.cq, got_); n != 0; n = nic.poll(h.cq, got_)) {
    any = true;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (referee_ != nullptr) referee_->completed({host.v}, got_[i], now);
      completed(host.v, got_[i], now);
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t sender = h.sender_of[index_of(host.v, got_[i].qpn)];
      if (sender != kNobody) post(h.senders[sender], now);
    }
  }
  if (any) nic.ring();
}

}  // namespace weft::sim
