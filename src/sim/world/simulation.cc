#include "sim/world/simulation.h"

#include <algorithm>

#include "sim/nic/explain.h"
#include "sim/world/accelerators.h"
#include "sim/world/audit.h"
#include "sim/world/device_config.h"
#include "sim/world/nic_audit.h"

namespace weft::sim {
namespace {

// How long anything may be under way: for the bound after which waiting means that no progress is made.
Duration transit(const Scenario& s) {
  const impair::ImpairConfig& n = s.network.impair;
  std::uint64_t bytes = 0;
  for (const FlowSpec& f : s.flows) bytes += (f.size.n + 4096) * f.depth * f.qps * 2U;
  for (std::uint32_t h = 0; h < s.graph.hosts; ++h)
    bytes += s.derived.bytes_of_host[h] + 4096ULL * s.derived.flows_of_host[h];
  Rate slowest = s.derived.reach.rate;
  for (const Link& l : s.graph.links) slowest = std::min(slowest, l.rate);
  // What a pair of boxes holds back for its partner.
  Duration boxes{};
  for (const wan::BoxConfig& b : s.derived.boxes) boxes = std::max(boxes, b.give_up);
  for (const LineSpec& l : s.lines) boxes += (l.impair.jitter + l.impair.reorder_by) * 2;
  // A NIC may be slower than every link.
  const Duration nics = s.nic.detailed ? slowest_in_nic(*s.nic.detailed, bytes, s.transport.mtu) : Duration{};
  return (s.derived.base_rtt + n.jitter + n.reorder_by + nics + boxes +
          std::min(slowest.time_for({bytes}), seconds(86'400))) *
         2;
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, trace::PcapngWriter* trace, std::ostream* flows)
    : scenario_(scenario), trace_(trace) {
  if (scenario.check) referee_ = std::make_unique<check::Referee>(transit(scenario));
  Prng random(scenario.seed);
  const NetworkSpec& n = scenario.network;
  CHECK_OP(scenario.graph.hosts, !=, 0U);  // resolve() was called
  NetworkConfig config{n.switches, n.routing, n.impair};
  // Nodes do not run apart in time where one needs another's present: observers and traces want packets in
  // order of time; TCP's two ends share a connection; an Exchange of [[messages]] reaches both ends at once;
  // the receiver of a [[flow]] of SENDs or WRITEs with immediate looks at its sender.
  config.apart =
      !scenario.check && scenario.messages.empty() && trace == nullptr && !scenario.transport.tcp &&
      std::none_of(scenario.flows.begin(), scenario.flows.end(), [](const FlowSpec& f) {
        return f.op == WrOpcode::kSend || f.op == WrOpcode::kSendImm || f.op == WrOpcode::kWriteImm;
      });
  network_ = std::make_unique<Network>(fabric_, scenario.graph, config, random.fork(0));
  settle_actor_ = fabric_.timeline.add<&Simulation::on_settle>(*this);
  measure_actor_ = fabric_.timeline.add<&Simulation::on_measure>(*this);
  if (scenario_.measure.all()) {
    at_from_ = Totals{};
  } else {
    fabric_.timeline.wake(measure_actor_, Time{} + scenario_.measure.from);
    if (scenario_.measure.until.ps != 0)
      fabric_.timeline.wake(measure_actor_, Time{} + scenario_.measure.until);
  }
  if (!scenario.failures.empty())
    failures_ = std::make_unique<Failures>(scenario_, *network_, fabric_.timeline);
  book_ = std::make_unique<FlowBook>(scenario_, *network_, flows);
  if (scenario.transport.tcp) {
    if (referee_ != nullptr) streams_ = std::make_unique<check::ByteStreams>(referee_->report());
    tcp_ = std::make_unique<TcpRun>(scenario_, *book_, fabric_, *network_, streams_.get(), *this);
    workload_ =
        std::make_unique<Workload>(scenario_, nics_, fabric_.timeline, exchange_, referee_.get(), *this);
    return;
  }
  PacketMarking marking;
  marking.data_class = n.data_class;
  marking.control_class = n.control_class;
  marking.extra_header = scenario.nic.extra_header;
  marking.ack_bytes = scenario.nic.ack_bytes;
  marking.count_reads = !scenario.messages.empty();
  for (std::uint32_t h = 0; h < scenario.graph.hosts; ++h) {
    add_nic(h, marking);
  }
  for (std::uint32_t i = 0; i < scenario.derived.boxes.size(); ++i) {
    const AcceleratorSpec& spec = scenario.accelerators[scenario.derived.accelerator_of[i]];
    boxes_.push_back(
        std::make_unique<BoxNode>(fabric_, *network_, i, scenario.derived.boxes[i], cost_of(spec), marking));
  }
  workload_ =
      std::make_unique<Workload>(scenario_, nics_, fabric_.timeline, exchange_, referee_.get(), *this);
  traffic_ =
      std::make_unique<TrafficRun>(scenario_, *book_, nics_, fabric_, exchange_, referee_.get(), *this);
  const auto any = [&](bool plain) {
    return std::any_of(scenario.messages.begin(), scenario.messages.end(),
                       [&](const MessageSpec& m) { return m.plain == plain; });
  };
  if (any(false)) channels_ = std::make_unique<ChannelRun>(scenario_, nics_, fabric_, *this);
  if (any(true)) plain_ = std::make_unique<PlainRun>(scenario_, nics_, fabric_, exchange_, *this);
}

Simulation::~Simulation() = default;

void Simulation::add_nic(std::uint32_t h, const PacketMarking& marking) {
  const DeviceConfig config = device_config(scenario_, h);
  Port& egress = network_->uplink(h);
  if (scenario_.nic.detailed) {
    auto nic = std::make_unique<DetailedNic>(exchange_, fabric_, HostId{h}, config, egress, marking, this,
                                             *scenario_.nic.detailed);
    if (scenario_.network.switches.pfc) nic->pause_when_full(marking.data_class);
    detailed_.push_back(nic.get());
    if (referee_ != nullptr) {
      watches_.push_back(std::make_unique<ContextWatch>(referee_->report(), nic->design().context));
      nic->observe_contexts(watches_.back().get());
    }
    nics_.push_back(std::move(nic));
  } else {
    nics_.push_back(std::make_unique<IdealNic>(exchange_, fabric_, HostId{h}, config, egress, marking, this,
                                               SendOrder::kControlFirst, scenario_.nic.retransmit_delay));
  }
  nics_[h]->attach(*network_);
}

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

void Simulation::placed(HostId at, const Placement& p, const wire::Header& h,
                        std::span<const std::uint8_t> bytes, Time now) {
  if (referee_ != nullptr)
    referee_->placed({{at.v}, p.qpn, p.region, p.offset, p.payload_offset, p.length}, h, bytes, now);
}

void Simulation::executed(HostId at, const AtomicRequest& a, std::uint64_t old_value, Time now) {
  if (referee_ != nullptr)
    referee_->executed(
        {{at.v}, a.qpn, a.region, a.offset, a.compare_swap, a.compare, a.swap_or_add, old_value}, now);
}

void Simulation::progressed(HostId host, Time now) {
  if (!scenario_.flows.empty()) workload_->poll(host, now);
  if (!scenario_.traffic.empty()) traffic_->poll(host, now);
  if (channels_ != nullptr) channels_->poll(host, now);
  if (plain_ != nullptr) plain_->poll(host, now);
}

void Simulation::told(HostId host, Time now) {
  if (channels_ != nullptr) channels_->told(host, now);
}

void Simulation::on_measure(Time now) {
  if (!at_from_ && now >= Time{} + scenario_.measure.from) {
    at_from_ = totals();
  } else {
    at_until_ = totals();
  }
}

void Simulation::ended() {
  if (settles_) return;
  settles_ = true;
  fabric_.timeline.wake(settle_actor_, fabric_.timeline.window_end());
}

// When the flows are done the rest of the traffic (ACKs on the way) still runs out. With a window of
// measurement traffic goes on as long as others want, so the run ends with its last flow.
void Simulation::on_settle(Time now) {
  settles_ = false;
  workload_->settle();
  if (traffic_ != nullptr) traffic_->settle(now);
  if (scenario_.measure.until.ps != 0 && complete()) fabric_.timeline.stop();
  // Contexts leave deadlines behind of which nothing comes. When their channels are closed and nothing is
  // under way, the run is over.
  if (channels_ == nullptr || !complete()) return;
  if (channels_->closed() && packets_in_use() == 0) {
    fabric_.timeline.stop();
  } else {
    ended();
  }
}

bool Simulation::run(std::uint64_t events) {
  if (over_) return false;
  const Time end = scenario_.measure.end(scenario_.limit);
  const std::uint64_t before = fabric_.timeline.events();
  if (referee_ == nullptr) {
    fabric_.timeline.run(end, events);
  } else {
    run_watched(end, events);
  }
  over_ = fabric_.timeline.events() - before < events;
  if (over_ && settles_) on_settle(now());
  // When no event is left, a flow that has not ended never will, so only a run that was stopped cuts flows
  // off.
  if (over_ && !fabric_.timeline.idle()) book_->cut_off(end);
  if (over_ && referee_ != nullptr) finish();
  return !over_;
}

void Simulation::run_watched(Time end, std::uint64_t events) {
  constexpr std::uint64_t kBetweenAudits = 1U << 14U;
  for (std::uint64_t n = 0; n != events && fabric_.timeline.step(end); ++n) {
    // Not with TCP: its time-outs double, so a long silence is no fault of it.
    if (tcp_ == nullptr && !complete()) referee_->waiting(now());
    if (fabric_.timeline.events() % kBetweenAudits == 0) audit_now(false);
  }
}

void Simulation::finish() {
  const bool at_rest = fabric_.timeline.idle();
  audit_now(at_rest);
  if (!at_rest) return;
  for (const auto& watch : watches_) watch->finish(now());
  if (complete()) {
    if (streams_ != nullptr) streams_->finish(now());
    referee_->finish(now());
  } else {
    referee_->report().add(now(), "progress", "somebody waits, but nothing is under way");
  }
}

void Simulation::audit_now(bool at_rest) {
  EndpointCounters all;
  for (const auto& nic : nics_) {
    const EndpointCounters& c = nic->endpoint().counters();
    all.packets_sent += c.packets_sent;
    all.packets_received += c.packets_received;
    all.corrupt_dropped += c.corrupt_dropped;
    all.overflow_dropped += c.overflow_dropped;
  }
  if (tcp_ != nullptr) {
    for (const auto& host : tcp_->hosts()) {
      all.packets_sent += host->counters().packets_sent;
      all.packets_received += host->counters().packets_received;
      all.corrupt_dropped += host->counters().corrupt_dropped;
    }
  }
  audit({fabric_, *network_, scenario_.network.switches, all, boxes_}, at_rest, referee_->report());
  for (const DetailedNic* nic : detailed_) audit_nic(*nic, now(), at_rest, referee_->report());
}

std::uint64_t Simulation::messages_done() const {
  std::uint64_t n = book_->finished();
  for (const FlowResult& r : results()) n += r.messages + r.failed;
  if (channels_ != nullptr) n += channels_->messages_done();
  if (plain_ != nullptr) n += plain_->messages_done();
  return n;
}

std::uint64_t Simulation::messages_asked() const {
  std::uint64_t n = book_->expected();
  for (const FlowSpec& f : scenario_.flows) n += f.count * f.qps;
  if (channels_ != nullptr) n += channels_->messages_asked();
  if (plain_ != nullptr) n += plain_->messages_asked();
  return n;
}

const check::Report* Simulation::findings() const { return referee_ ? &referee_->report() : nullptr; }

}  // namespace weft::sim
