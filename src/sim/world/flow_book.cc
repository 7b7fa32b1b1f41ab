#include "sim/world/flow_book.h"

#include <algorithm>

#include "sim/world/ideal.h"

namespace weft::sim {

FlowBook::FlowBook(const Scenario& scenario, const Network& network, std::ostream* rows)
    : scenario_(scenario),
      network_(network),
      rows_(rows),
      statistics_(scenario.traffic.size()),
      expected_(scenario.derived.traffic_flows) {
  for (std::size_t i = 0; i < scenario.traffic.size(); ++i) {
    Stream& s = streams_.emplace_back();
    s.arrivals = std::move(*make_arrivals(scenario.traffic[i], ground_of(scenario, i)));
    s.more = s.arrivals->next(s.next);
  }
  if (rows_ != nullptr) write_flow_header(*rows_);
}

Time FlowBook::due() const {
  Time at = kNever;
  for (const Stream& s : streams_) {
    if (s.more) at = std::min(at, s.next.at);
  }
  return at;
}

bool FlowBook::take(Time now, Arrival& flow, std::uint32_t& table) {
  Stream* first = nullptr;
  for (Stream& s : streams_) {
    if (s.more && s.next.at <= now && (first == nullptr || s.next.at < first->next.at)) first = &s;
  }
  if (first == nullptr) return false;
  flow = first->next;
  table = static_cast<std::uint32_t>(first - streams_.data());
  first->more = first->arrivals->next(first->next);
  flow.number = begun_++;
  if (scenario_.measure.cut_off.ps != 0 && scenario_.measure.counts(flow.at))
    running_[flow.number] = {flow, table};
  return true;
}

void FlowBook::finished(const Arrival& flow, std::uint32_t table, bool failed, Time now) {
  ++finished_;
  if (!scenario_.measure.counts(flow.at)) return;
  ++measured_;
  running_.erase(flow.number);
  FlowDone f = measured(flow, table, now);
  f.failed = failed;
  statistics_[table].add(f, scenario_.transport.mtu);
  if (rows_ != nullptr) write_flow(*rows_, f);
}

void FlowBook::cut_off(Time now) {
  for (const auto& [number, r] : running_) {
    FlowDone f = measured(r.flow, r.table, now);
    f.cut_off = true;
    statistics_[r.table].add(f, scenario_.transport.mtu);
  }
  running_.clear();
}

FlowDone FlowBook::measured(const Arrival& flow, std::uint32_t table, Time now) const {
  FlowDone f;
  f.flow = flow;
  f.table = table;
  f.took = now - flow.at;
  const IdealTime ideal = ideal_time(network_, scenario_.transport, scenario_.nic, flow);
  f.ideal = ideal.total();
  f.ideal_other_way = ideal.other_way;
  return f;
}

}  // namespace weft::sim
