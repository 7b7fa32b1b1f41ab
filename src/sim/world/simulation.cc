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
  c.rto_low = t.rto_low;
  c.rto_high = t.rto_high;
  c.rto_low_packets = t.rto_low_packets;
  c.roce_window = t.roce_window;
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

double quantile_us(const std::vector<Duration>& sorted, double q) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1));
  return static_cast<double>(sorted[at].ps) / 1e6;
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, trace::PcapngWriter* trace)
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
  marking.ecn = n.switches.ecn.kind != EcnConfig::Kind::kNone;
  for (std::uint32_t h = 0; h < scenario.graph.hosts; ++h) {
    nics_.push_back(std::make_unique<IdealNic>(fabric_, HostId{h}, device_config(scenario, h),
                                               network_->uplink(h), marking, this));
    network_->attach<&IdealNic::arrive>(h, *nics_[h]);
  }
  workload_ = std::make_unique<Workload>(scenario_, nics_, fabric_.timeline, referee_.get());
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

void Simulation::progressed(HostId host, Time now) { workload_->poll(host, now); }

bool Simulation::run(std::uint64_t events) {
  if (over_) return false;
  const Time end = Time{} + scenario_.limit;
  const std::uint64_t before = fabric_.timeline.events();
  // When the flows are done the rest of the traffic (ACKs on the way) still runs out.
  fabric_.timeline.run(end, events);
  over_ = fabric_.timeline.events() - before < events;
  if (over_ && referee_ != nullptr && workload_->done()) referee_->finish(now());
  return !over_;
}

std::uint64_t Simulation::messages_done() const {
  std::uint64_t n = 0;
  for (const FlowResult& r : results()) n += r.messages + r.failed;
  return n;
}

std::uint64_t Simulation::messages_asked() const {
  std::uint64_t n = 0;
  for (const FlowSpec& f : scenario_.flows) n += f.count * f.qps;
  return n;
}

const check::Report* Simulation::findings() const { return referee_ ? &referee_->report() : nullptr; }

Totals Simulation::totals() const {
  Totals t;
  t.events = fabric_.timeline.events();
  for (const auto& nic : nics_) {
    const Counters& c = nic->device().counters();
    t.packets_sent += nic->endpoint().counters().packets_sent;
    t.retransmitted += c.get(Counter::tx_retransmitted);
    t.control += c.get(Counter::tx_control);
    t.timeouts += c.get(Counter::timeout_low) + c.get(Counter::timeout_high) + c.get(Counter::timeout_read);
    t.recoveries += c.get(Counter::recoveries);
  }
  for (const Port& p : network_->ports()) {
    t.lost += p.wire_counters().dropped_loss;
    t.corrupted += p.wire_counters().corrupted;
    t.queue_drops += p.counters().dropped_full;
    t.longest_queue = std::max(t.longest_queue, p.counters().longest_queue);
    t.link_hops += p.counters().packets;
    t.pauses += p.counters().pauses_sent;
    t.marked += p.counters().marked;
    t.paused += p.paused_for();
  }
  return t;
}

record::Record Simulation::to_record() const {
  record::Record r;
  r.set("scenario", sim::to_record(scenario_));
  r.set("complete", complete()).set("virtual_time_ps", now().ps);
  for (std::size_t i = 0; i < results().size(); ++i) {
    const FlowResult& f = results()[i];
    std::vector<Duration> sorted = f.latencies;
    std::sort(sorted.begin(), sorted.end());
    record::Record one;
    one.set("messages", f.messages).set("failed", f.failed);
    one.set("first_failure", std::uint64_t{static_cast<std::uint8_t>(f.first_failure)});
    one.set("bytes", f.bytes).set("elapsed_ps", f.elapsed().ps).set("goodput_gbps", f.goodput_bps() / 1e9);
    one.set("latency_us_p50", quantile_us(sorted, 0.5)).set("latency_us_p99", quantile_us(sorted, 0.99));
    one.set("latency_us_max", quantile_us(sorted, 1.0));
    r.append("flows", std::move(one));
  }
  const Totals t = totals();
  record::Record sum;
  sum.set("events", t.events).set("packets_sent", t.packets_sent).set("retransmitted", t.retransmitted);
  sum.set("control", t.control).set("timeouts", t.timeouts).set("recoveries", t.recoveries);
  sum.set("lost", t.lost).set("queue_drops", t.queue_drops).set("corrupted", t.corrupted);
  sum.set("longest_queue_bytes", t.longest_queue);
  r.set("totals", std::move(sum));
  if (referee_ != nullptr) r.set("findings", std::uint64_t{referee_->report().total()});
  return r;
}

}  // namespace weft::sim
