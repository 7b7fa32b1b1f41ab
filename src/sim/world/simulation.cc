#include "sim/world/simulation.h"

#include <algorithm>
#include <bit>

namespace weft::sim {
namespace {

DeviceConfig device_config(const Scenario& s, std::uint32_t host) {
  const TransportSpec& t = s.transport;
  std::uint32_t queue_pairs = 0;
  std::uint32_t deepest = 1;
  for (const FlowSpec& f : s.flows) {
    if (f.from != host && f.to != host) continue;
    queue_pairs += f.qps;
    deepest = std::max(deepest, f.depth);
  }
  DeviceConfig c;
  queue_pairs += s.derived.flows_of_host[host];
  c.control_ring = 64;                       // drained after every packet
  c.burst_packets = 4;                       // one is sent at a time
  c.max_qp = std::max(queue_pairs + 2, 4U);  // numbers 0 and 1 are never given
  c.qpn_bits = static_cast<std::uint32_t>(std::bit_width(c.max_qp));
  c.max_cq = c.max_pd = c.max_srq = 4;
  c.max_mr = 16;
  c.max_path = s.graph.hosts;
  c.max_ring = std::min(2 * std::bit_ceil(deepest), 32768U);
  c.seed = s.seed * 0x9E3779B97F4A7C15ULL + host;
  c.loss_blocks = t.loss_blocks;
  c.bdp_cap = t.bdp_cap;
  c.window_packets = std::bit_ceil(std::max(t.bdp_cap, 64U));
  c.rto_low = t.timeouts ? t.rto_low : kForever;
  c.rto_high = t.timeouts ? t.rto_high : kForever;
  if (t.timeouts) c.roce_timeout = t.roce_timeout;
  c.rto_low_packets = t.rto_low_packets;
  c.roce_window = t.roce_window;
  c.irn_recovery = t.recovery;
  c.nack_threshold = t.nack_threshold;
  c.controller = t.controller;
  if (s.derived.reach.rate.bps != 0) c.line_rate = s.derived.reach.rate;
  return c;
}

// How long anything may be under way: for the bound after which waiting means that no progress is made.
Duration transit(const Scenario& s) {
  const impair::ImpairConfig& n = s.network.impair;
  std::uint64_t bytes = 0;
  for (const FlowSpec& f : s.flows) bytes += (f.size.n + 4096) * f.depth * f.qps * 2U;
  return (s.derived.base_rtt + n.jitter + n.reorder_by + s.derived.reach.rate.time_for({bytes})) * 2;
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, trace::PcapngWriter* trace, std::ostream* flows)
    : scenario_(scenario), trace_(trace) {
  if (scenario.check) referee_ = std::make_unique<check::Referee>(transit(scenario));
  Prng random(scenario.seed);
  const NetworkSpec& n = scenario.network;
  CHECK_OP(scenario.graph.hosts, !=, 0U);  // resolve() was called
  network_ = std::make_unique<Network>(fabric_, scenario.graph,
                                       NetworkConfig{n.switches, n.routing, n.impair}, random.fork(0));
  PacketMarking marking;
  marking.data_class = n.data_class;
  marking.control_class = n.control_class;
  for (std::uint32_t h = 0; h < scenario.graph.hosts; ++h) {
    nics_.push_back(std::make_unique<IdealNic>(fabric_, HostId{h}, device_config(scenario, h),
                                               network_->uplink(h), marking, this));
    network_->attach<&IdealNic::arrive>(h, *nics_[h]);
  }
  workload_ = std::make_unique<Workload>(scenario_, nics_, fabric_.timeline, referee_.get());
  traffic_ =
      std::make_unique<TrafficRun>(scenario_, *network_, nics_, fabric_.timeline, referee_.get(), flows);
}

Simulation::~Simulation() = default;

void Simulation::sent(HostId from, HostId to, const wire::TxPacket& p, Time now) {
  if (referee_ != nullptr) referee_->sent({from.v}, {to.v}, p.header, p.payload, now);
  if (trace_ == nullptr) return;
  trace::PacketInfo info;
  info.time = now;
  info.source = address_of(from);
  info.destination = address_of(to);
  if (p.retransmission) info.comment = "retransmission";
  trace_->packet(info, p.header, p.payload);
}

void Simulation::arrived(HostId at, const wire::RxPacket& p, Time now) {
  if (referee_ != nullptr) referee_->arrived({at.v}, p.header, now, (p.tos & wire::kEcnMask) == wire::kEcnCe);
}

void Simulation::placed(HostId at, const Placement& p, const wire::Header& h, Time now) {
  if (referee_ != nullptr)
    referee_->placed({{at.v}, p.qpn, p.region, p.offset, p.payload_offset, p.length}, h, {}, now);
}

void Simulation::executed(HostId at, const AtomicRequest& a, std::uint64_t old_value, Time now) {
  if (referee_ != nullptr)
    referee_->executed(
        {{at.v}, a.qpn, a.region, a.offset, a.compare_swap, a.compare, a.swap_or_add, old_value}, now);
}

void Simulation::progressed(HostId host, Time now) {
  if (!scenario_.flows.empty()) workload_->poll(host, now);
  if (!scenario_.traffic.empty()) traffic_->poll(host, now);
}

bool Simulation::run(std::uint64_t events) {
  if (over_) return false;
  const Time end = Time{} + scenario_.limit;
  const std::uint64_t before = fabric_.timeline.events();
  // When the flows are done the rest of the traffic (ACKs on the way) still runs out.
  fabric_.timeline.run(end, events);
  over_ = fabric_.timeline.events() - before < events;
  if (over_ && referee_ != nullptr && complete()) referee_->finish(now());
  return !over_;
}

std::uint64_t Simulation::messages_done() const {
  std::uint64_t n = traffic_->finished();
  for (const FlowResult& r : results()) n += r.messages + r.failed;
  return n;
}

std::uint64_t Simulation::messages_asked() const {
  std::uint64_t n = traffic_->expected();
  for (const FlowSpec& f : scenario_.flows) n += f.count * f.qps;
  return n;
}

const check::Report* Simulation::findings() const { return referee_ ? &referee_->report() : nullptr; }

}  // namespace weft::sim
