// What a run leaves behind: totals, the record, and a row for each port.
#include <algorithm>
#include <ostream>

#include "sim/nic/memory.h"
#include "sim/world/nic_record.h"
#include "sim/world/simulation.h"

namespace weft::sim {
namespace {

double mean_us(const std::vector<Duration>& all) {
  double sum = 0;
  for (const Duration d : all) sum += static_cast<double>(d.ps);
  return all.empty() ? 0 : sum / 1e6 / static_cast<double>(all.size());
}

double quantile_us(const std::vector<Duration>& sorted, double q) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1));
  return static_cast<double>(sorted[at].ps) / 1e6;
}

// All queues of one kind together: how long they were when packets came.
template <class Which>
record::Record queue_record(const Network& network, const char* name, Which which) {
  const Topology& g = network.topology();
  Histogram found;
  std::uint64_t longest = 0;
  for (std::size_t i = 0; i < network.ports().size(); ++i) {
    const Link& l = g.links[i / 2];
    if (!(i % 2 == 0 ? which(g, l.a, l.b) : which(g, l.b, l.a))) continue;
    found.merge(network.ports()[i].found_waiting());
    longest = std::max(longest, network.ports()[i].counters().longest_queue);
  }
  record::Record r;
  r.set("where", name).set("packets", found.total());
  r.set("bytes_p50", found.quantile(50, 100)).set("bytes_p99", found.quantile(99, 100));
  r.set("bytes_p999", found.quantile(999, 1000)).set("bytes_max", longest);
  return r;
}

}  // namespace

void Simulation::write_ports(std::ostream& out) const {
  out << "port,packets,bytes,utilisation_ppm,dropped_full,dropped_loss,ecn_marked,pfc_pauses_sent,pfc_paused_"
         "ps,"
         "queue_p50_bytes,queue_p99_bytes,queue_max_bytes\n";
  for (std::size_t i = 0; i < network_->ports().size(); ++i) {
    const Port& p = network_->ports()[i];
    const PortCounters& c = p.counters();
    __extension__ using Wide = unsigned __int128;
    const auto elapsed = static_cast<std::uint64_t>(now().ps);
    const auto busy = static_cast<std::uint64_t>(p.config().rate.time_for({c.bytes}).ps);
    const auto ppm = static_cast<std::uint64_t>(elapsed == 0 ? 0 : Wide{busy} * 1'000'000U / elapsed);
    const Histogram found = p.found_waiting();
    out << network_->port_name(i) << ',' << c.packets << ',' << c.bytes << ',' << ppm << ',' << c.dropped_full
        << ',' << p.wire_counters().dropped_loss << ',' << c.marked << ',' << c.pauses_sent << ','
        << p.paused_for().ps << ',' << found.quantile(50, 100) << ',' << found.quantile(99, 100) << ','
        << c.longest_queue << '\n';
  }
}

Totals Simulation::totals() const {
  Totals t;
  t.events = fabric_.timeline.events();
  for (const auto& nic : nics_) {
    const Counters& c = nic->device().counters();
    t.packets_sent += nic->endpoint().counters().packets_sent;
    t.retransmitted += c.get(Counter::tx_retransmitted);
    t.control += c.get(Counter::tx_control);
    t.data += c.get(Counter::tx_packets);
    t.after_timeout += c.get(Counter::tx_after_timeout);
    t.received_twice += c.get(Counter::rx_duplicate);
    for (std::size_t i = 0; i < kCounterCount; ++i) t.transport.add(static_cast<Counter>(i), c.get(i));
    t.timeouts += c.get(Counter::timeout_low) + c.get(Counter::timeout_high) + c.get(Counter::timeout_read);
    t.recoveries += c.get(Counter::recoveries);
  }
  if (tcp_ != nullptr) {
    const tcp::SenderCounters& c = tcp_->sent();
    for (const auto& host : tcp_->hosts()) {
      t.packets_sent += host->counters().packets_sent;
      t.control += host->counters().acknowledgments;
    }
    t.data = c.segments;
    t.retransmitted = c.again_recovery + c.again_rescue + c.again_timeout;
    t.after_timeout = c.again_timeout;
    t.received_twice = tcp_->received().duplicates;
    t.timeouts = c.timeouts;
    t.recoveries = c.recoveries;
  }
  for (const DetailedNic* nic : detailed_) t.nic_overflows += nic->endpoint().counters().overflow_dropped;
  for (const Port& p : network_->ports()) {
    t.lost += p.wire_counters().dropped_loss;
    t.corrupted += p.wire_counters().corrupted;
    t.failed_links += p.wire_counters().dropped_failed;
    t.queue_drops += p.counters().dropped_full;
    t.data_drops += p.counters().dropped_full - p.counters().dropped_control;
    t.longest_queue = std::max(t.longest_queue, p.counters().longest_queue);
    t.link_hops += p.counters().packets;
    t.pauses += p.counters().pauses_sent;
    t.marked += p.counters().marked;
    (p.credited() ? t.credit_wait : t.paused) += p.paused_for();
  }
  for (const Switch& s : network_->switches()) t.no_route += s.counters().dropped_no_route;
  return t;
}

Totals Simulation::measured() const {
  const Totals from = at_from_.value_or(Totals{});
  Totals t = at_until_ ? *at_until_ : totals();
  t.events -= from.events;
  t.packets_sent -= from.packets_sent;
  t.data -= from.data;
  t.retransmitted -= from.retransmitted;
  t.after_timeout -= from.after_timeout;
  t.received_twice -= from.received_twice;
  t.control -= from.control;
  t.timeouts -= from.timeouts;
  t.recoveries -= from.recoveries;
  t.lost -= from.lost;
  t.queue_drops -= from.queue_drops;
  t.data_drops -= from.data_drops;
  t.link_hops -= from.link_hops;
  t.pauses -= from.pauses;
  t.marked -= from.marked;
  t.paused = t.paused - from.paused;
  return t;
}

// What a host's NIC counted, and the memory that its design takes on the chip for the connections it has.
record::Record Simulation::nic_record(std::size_t host) const {
  record::Record r = sim::to_record(detailed_[host]->counters(), now() - Time{});
  const std::uint64_t connections = queue_pairs_of(scenario_, static_cast<std::uint32_t>(host));
  r.set("connections", connections);
  const auto memory = memory_of(detailed_[host]->design(), std::max<std::uint64_t>(connections, 1));
  if (memory) r.set("chip_bytes", memory->total(Place::kChip));
  return r;
}

record::Record Simulation::channel_record() const {
  const ChannelTotals c = channels_->totals();
  record::Record r;
  r.set("contexts", c.contexts).set("most_channels", c.channels);
  r.set("sent", c.counts.sent).set("sent_bytes", c.counts.sent_bytes);
  r.set("received", c.counts.received).set("fetched", std::uint64_t{c.counts.large_received});
  r.set("fragments", std::uint64_t{c.counts.fragments}).set("acks", std::uint64_t{c.counts.acks});
  r.set("early_acks", std::uint64_t{c.counts.early}).set("nops", std::uint64_t{c.counts.nops});
  r.set("probes", std::uint64_t{c.counts.probes}).set("window_stalls", c.waited);
  r.set("reconnects", std::uint64_t{c.counts.reconnects}).set("violations", c.violations);
  r.set("waited_for_memory", c.starved).set("fresh_qps", c.fresh_qps).set("reused_qps", c.reused_qps);
  r.set("most_receive_bytes", c.most_own).set("most_send_bytes", c.most_lent).set("all_bytes", c.all_memory);
  return r;
}

// What a box did, and why frames passed it as they pass a wire.
record::Record Simulation::box_record(std::size_t index) const {
  const BoxNode& node = *boxes_[index];
  const wan::BoxCounters& c = node.box().counters();
  record::Record r;
  r.set("most_stored_bytes", node.box().most_stored().n);
  r.set("corrupt_dropped", node.counters().corrupt_dropped);
  r.set("overflow_dropped", node.counters().overflow_dropped);
  for (std::size_t i = 0; i < wan::kBoxCounterCount; ++i)
    r.set(wan::kBoxCounterInfo[i].name, c.get(static_cast<wan::BoxCounter>(i)));
  return r;
}

record::Record Simulation::to_record() const {
  record::Record r;
  r.set("scenario", sim::to_record(scenario_));
  r.set("complete", complete()).set("virtual_time_ps", now().ps);
  std::uint64_t cut_off = 0;
  for (const FlowStatistics& f : traffic()) cut_off += f.cut_off();
  r.set("cut_off", cut_off);
  for (std::size_t i = 0; i < results().size(); ++i) {
    const FlowResult& f = results()[i];
    std::vector<Duration> sorted = f.latencies;
    std::sort(sorted.begin(), sorted.end());
    record::Record one;
    one.set("messages", f.messages).set("failed", f.failed);
    one.set("first_failure", std::uint64_t{static_cast<std::uint8_t>(f.first_failure)});
    one.set("bytes", f.bytes).set("elapsed_ps", f.elapsed().ps).set("goodput_gbps", f.goodput_bps() / 1e9);
    one.set("goodput_late_gbps", f.late_goodput_bps() / 1e9);
    one.set("latency_us_p50", quantile_us(sorted, 0.5)).set("latency_us_p99", quantile_us(sorted, 0.99));
    one.set("latency_us_max", quantile_us(sorted, 1.0)).set("latency_us_mean", mean_us(sorted));
    std::vector<Duration> ways = f.one_way;
    std::sort(ways.begin(), ways.end());
    one.set("one_way_us_p50", quantile_us(ways, 0.5)).set("fairness", f.fairness());
    r.append("flows", std::move(one));
  }
  if (!results().empty()) {
    const Together all = workload_->together();
    record::Record one;
    one.set("messages", all.messages).set("elapsed_ps", all.elapsed.ps).set("mops", all.per_second() / 1e6);
    r.set("together", std::move(one));
  }
  for (const FlowStatistics& f : traffic()) r.append("traffic", sim::to_record(f.summary()));
  for (std::size_t i = 0; i < scenario_.messages.size(); ++i)
    r.append("messages", sim::to_record(messages(i)));
  if (channels_ != nullptr) r.set("channels", channel_record());
  const Totals t = totals();
  record::Record sum;
  sum.set("events", t.events).set("link_hops", t.link_hops).set("packets_sent", t.packets_sent);
  sum.set("data_packets", t.data).set("data_drops", t.data_drops);
  sum.set("retransmitted", t.retransmitted).set("retransmitted_after_timeout", t.after_timeout);
  sum.set("received_twice", t.received_twice);
  sum.set("control", t.control).set("timeouts", t.timeouts).set("recoveries", t.recoveries);
  sum.set("lost", t.lost).set("queue_drops", t.queue_drops).set("no_route_drops", t.no_route);
  sum.set("failed_link_drops", t.failed_links).set("nic_overflows", t.nic_overflows);
  sum.set("corrupted", t.corrupted).set("ecn_marked", t.marked);
  sum.set("pfc_pauses", t.pauses).set("pfc_paused_ps", t.paused.ps);
  sum.set("credit_wait_ps", t.credit_wait.ps);
  sum.set("longest_queue_bytes", t.longest_queue);
  r.set("totals", std::move(sum));
  const Totals m = measured();
  record::Record window;
  window.set("data_packets", m.data).set("data_drops", m.data_drops);
  window.set("drop_percent",
             m.data == 0 ? 0 : 100.0 * static_cast<double>(m.data_drops) / static_cast<double>(m.data));
  window.set("retransmitted", m.retransmitted).set("retransmitted_after_timeout", m.after_timeout);
  window.set("received_twice", m.received_twice).set("control", m.control).set("timeouts", m.timeouts);
  window.set("pfc_pauses", m.pauses).set("pfc_paused_ps", m.paused.ps).set("ecn_marked", m.marked);
  r.set("measured", std::move(window));
  // Why packets were sent again, or thrown away by a host: core's own counts.
  record::Record causes;
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    if (t.transport.get(i) != 0) causes.set(kCounterInfo[i].name, t.transport.get(i));
  }
  if (tcp_ != nullptr) {
    const tcp::SenderCounters& c = tcp_->sent();
    const tcp::ReceiverCounters& d = tcp_->received();
    causes.set("tcp_segments", c.segments).set("tcp_again_recovery", c.again_recovery);
    causes.set("tcp_again_rescue", c.again_rescue).set("tcp_again_timeout", c.again_timeout);
    causes.set("tcp_recoveries", c.recoveries).set("tcp_timeouts", c.timeouts);
    causes.set("tcp_duplicate_acks", c.duplicate_acks).set("tcp_arrived_twice", d.duplicates);
    causes.set("tcp_out_of_order", d.out_of_order).set("tcp_late", tcp_->late());
  }
  r.set("transport", std::move(causes));
  r.append("queues",
           queue_record(*network_, "to_hosts", [](const Topology& g, std::uint32_t from, std::uint32_t to) {
             return from >= g.hosts && to < g.hosts;
           }));
  r.append("queues", queue_record(*network_, "between_switches",
                                  [](const Topology& g, std::uint32_t from, std::uint32_t to) {
                                    return from >= g.hosts && to >= g.hosts;
                                  }));
  // Of large networks the first hosts: their NICs have much to say.
  constexpr std::size_t kMostNics = 12;
  for (std::size_t i = 0; i < boxes_.size(); ++i) r.append("boxes", box_record(i));
  for (std::size_t i = 0; i < std::min(detailed_.size(), kMostNics); ++i) r.append("nics", nic_record(i));
  if (referee_ != nullptr) r.set("findings", std::uint64_t{referee_->report().total()});
  return r;
}

}  // namespace weft::sim
