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
  for (std::uint32_t i = 0; i < streams_.size(); ++i) {
    Stream& s = streams_[i];
    if (!s.more || s.next.at > now) continue;
    flow = s.next;
    table = i;
    s.more = s.arrivals->next(s.next);
    ++begun_;
    return true;
  }
  return false;
}

void FlowBook::finished(const Arrival& flow, std::uint32_t table, bool failed, Time now) {
  ++finished_;
  if (!scenario_.measure.counts(flow.at)) return;
  ++measured_;
  FlowDone f;
  f.flow = flow;
  f.table = table;
  f.took = now - flow.at;
  f.failed = failed;
  const IdealTime ideal = ideal_time(network_, scenario_.transport, flow);
  f.ideal = ideal.total();
  f.ideal_other_way = ideal.other_way;
  statistics_[table].add(f, scenario_.transport.mtu);
  if (rows_ != nullptr) write_flow(*rows_, f);
}

}  // namespace weft::sim
