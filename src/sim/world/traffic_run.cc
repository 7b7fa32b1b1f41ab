#include "sim/world/traffic_run.h"

#include <algorithm>
#include <tuple>

#include "core/base/check.h"
#include "sim/world/connect.h"

namespace weft::sim {
namespace {

constexpr std::uint64_t kMemoryAt = 0x1000'0000;
constexpr std::uint64_t kMemoryBytes = 1ULL << 46U;
constexpr std::uint32_t kNobody = UINT32_MAX;

std::uint64_t pair_key(std::uint32_t from, std::uint32_t to) { return std::uint64_t{from} << 32U | to; }

}  // namespace

TrafficRun::TrafficRun(const Scenario& scenario, FlowBook& book, std::vector<std::unique_ptr<Nic>>& nics,
                       Fabric& fabric, Exchange& exchange, check::Referee* referee, Settler& settler)
    : scenario_(scenario),
      book_(book),
      nics_(nics),
      timeline_(fabric.timeline),
      exchange_(exchange),
      referee_(referee),
      settler_(settler),
      arrival_actor_(fabric.timeline.add<&TrafficRun::on_arrival>(*this)) {
  for (std::uint32_t h = 0; h < nics.size(); ++h) {
    hosts_.emplace_back(*this, fabric, HostId{h});
    open_host(h);
  }
  await_next();
}

void TrafficRun::open_host(std::uint32_t index) {
  Host& h = hosts_[index];
  Nic& nic = *nics_[index];
  const DeviceConfig& config = nic.device().config();
  h.cq = *nic.create_cq(std::min(4U * config.max_qp, 4096U));
  const std::uint64_t length = scenario_.bytes ? scenario_.derived.bytes_of_host[index] + 8 : kMemoryBytes;
  h.memory =
      *nic.map(kMemoryAt, length, kFullAccess, scenario_.bytes ? MemoryKind::kBytes : MemoryKind::kCounted,
               Prng(~scenario_.seed - index));
  h.connection_of.assign(std::size_t{1} << config.qpn_bits, kNobody);
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

void TrafficRun::await_next() {
  if (const Time at = book_.due(); at != kNever)
    timeline_.wake(arrival_actor_, std::max(timeline_.window_start(at), timeline_.now()));
}

void TrafficRun::on_arrival(Time now) {
  const Time last = timeline_.window_end() - Duration{1};
  Arrival flow;
  for (std::uint32_t table = 0; book_.take(last, flow, table);) prepare(flow, table, now);
  await_next();
}

std::uint32_t TrafficRun::connection_for(const Arrival& flow) {
  std::vector<std::uint32_t>& idle = idle_[pair_key(flow.from, flow.to)];
  if (!idle.empty()) {
    const std::uint32_t index = idle.back();
    idle.pop_back();
    return index;
  }
  ConnectSpec spec;
  const std::uint32_t ends[2] = {flow.from, flow.to};
  for (std::uint32_t i = 0; i < 2; ++i) spec.ends[i] = {nics_[ends[i]].get(), hosts_[ends[i]].cq, 1, 1};
  spec.psn_seed = scenario_.seed ^ (serial_ * 0x9E37'79B9'7F4A'7C15ULL);
  const auto made = connect_pair(scenario_, spec, exchange_, referee_);
  CHECK(made.has_value());  // Devices are sized by the number of their flows
  auto index = static_cast<std::uint32_t>(connections_.size());
  if (free_.empty()) {
    connections_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Connection& c = connections_[index];
  c = {};
  c.from = flow.from;
  c.to = flow.to;
  for (std::uint32_t i = 0; i < 2; ++i) {
    c.qpn[i] = made->qpn[i];
    const std::uint32_t mask = (1U << nics_[ends[i]]->device().config().qpn_bits) - 1U;
    hosts_[ends[i]].connection_of[c.qpn[i].v & mask] = index;
  }
  return index;
}

void TrafficRun::prepare(const Arrival& flow, std::uint32_t table, Time now) {
  const std::uint32_t index = connection_for(flow);
  Connection& c = connections_[index];
  c.flow = flow;
  c.table = table;
  c.serial = serial_++;
  c.busy = true;
  c.counted = false;
  Host& poster = hosts_[c.poster()];
  Host& other = hosts_[c.other()];
  c.here = kMemoryAt + poster.taken;
  c.there = kMemoryAt + other.taken;
  for (Host* h : {&poster, &other}) h->taken = (h->taken + flow.bytes) & (kMemoryBytes / 2 - 1);
  if (flow.op == WrOpcode::kSend) {
    const Sge into{c.there, static_cast<std::uint32_t>(flow.bytes), other.memory.lkey};
    const RecvWr wr{c.serial, {&into, 1}};
    CHECK(nics_[c.to]->post_recv(c.qpn[1], {&wr, 1}).refused.has_value());
    if (referee_ != nullptr) referee_->posted_recv({{c.to}, c.qpn[1]}, wr, now);
    c.receive_waits = true;
  }
  poster.starts.push_back(index);
  timeline_.wake(poster.start_actor, flow.at);
}

void TrafficRun::Host::on_start(Time now) {
  while (!starts.empty() && run.connections_[starts.front()].flow.at <= now) {
    const std::uint32_t index = starts.front();
    starts.pop_front();
    run.post(run.connections_[index], now);
  }
}

void TrafficRun::post(Connection& c, Time now) {
  const std::uint32_t poster = c.poster();
  const Qpn qpn = c.qpn[poster == c.from ? 0 : 1];
  const Sge piece{c.here, static_cast<std::uint32_t>(c.flow.bytes), hosts_[poster].memory.lkey};
  SendWr wr;
  wr.wr_id = c.serial;
  wr.sges = {&piece, 1};
  wr.opcode = c.flow.op;
  wr.flags = kSendSignaled;
  wr.remote_address = c.there;
  wr.rkey = hosts_[c.other()].memory.rkey;
  if (referee_ != nullptr) referee_->posted_send({{poster}, qpn}, wr, {}, now);
  CHECK(nics_[poster]->post_send(qpn, {&wr, 1}).refused.has_value());
  nics_[poster]->ring();
}

void TrafficRun::completed(std::uint32_t host, const Completion& done, Time now) {
  const std::uint32_t mask = (1U << nics_[host]->device().config().qpn_bits) - 1U;
  const std::uint32_t index = hosts_[host].connection_of[done.qpn.v & mask];
  Connection& c = connections_[index];
  c.failed = c.failed || done.status != WcStatus::kSuccess;
  if (static_cast<std::uint8_t>(done.opcode) >= static_cast<std::uint8_t>(WcOpcode::kReceive)) {
    c.receive_waits = false;
  } else if (c.busy) {
    c.busy = false;
    c.ended = now;
  }
  changed_.push_back(index);
  settler_.ended();
}

// By the order in which flows ended, whichever host ran first.
void TrafficRun::settle(Time now) {
  std::sort(changed_.begin(), changed_.end(), [this](std::uint32_t a, std::uint32_t b) {
    const Connection& x = connections_[a];
    const Connection& y = connections_[b];
    return std::tie(x.ended, x.serial) < std::tie(y.ended, y.serial);
  });
  changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
  for (const std::uint32_t index : changed_) {
    Connection& c = connections_[index];
    if (c.busy) continue;
    if (!c.counted) book_.finished(c.flow, c.table, c.failed, c.ended);
    c.counted = true;
    // The queue pairs of one that failed are in error and are not used again.
    if (!c.failed && !c.receive_waits) give_back(c, now);
  }
  changed_.clear();
}

// Where a controller remembers what the last flow met, the queue pairs end, too: the next one begins at line
// rate.
void TrafficRun::give_back(Connection& c, Time now) {
  const auto index = static_cast<std::uint32_t>(&c - connections_.data());
  if (scenario_.transport.controller == 0) {
    idle_[pair_key(c.from, c.to)].push_back(index);
    return;
  }
  const std::uint32_t ends[2] = {c.from, c.to};
  for (std::uint32_t i = 0; i < 2; ++i) {
    CHECK(nics_[ends[i]]->destroy_qp(c.qpn[i]).has_value());
    if (referee_ != nullptr) referee_->destroyed({{ends[i]}, c.qpn[i]}, now);
  }
  free_.push_back(index);
}

void TrafficRun::poll(HostId host, Time now) {
  Nic& nic = *nics_[host.v];
  for (std::uint32_t n = nic.poll(hosts_[host.v].cq, got_); n != 0; n = nic.poll(hosts_[host.v].cq, got_)) {
    for (std::uint32_t i = 0; i < n; ++i) {
      if (referee_ != nullptr) referee_->completed({host.v}, got_[i], now);
      completed(host.v, got_[i], now);
    }
  }
}

}  // namespace weft::sim
