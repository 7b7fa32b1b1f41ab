#include "sim/world/tcp_run.h"

#include <algorithm>

namespace weft::sim {

TcpRun::TcpRun(const Scenario& scenario, FlowBook& book, Fabric& fabric, Network& network)
    : book_(book),
      timeline_(fabric.timeline),
      arrival_actor_(fabric.timeline.add<&TcpRun::on_arrival>(*this)),
      connections_(scenario.tcp) {
  const tcp::Classes classes{scenario.network.data_class, scenario.network.control_class};
  for (std::uint32_t h = 0; h < scenario.graph.hosts; ++h) {
    hosts_.push_back(std::make_unique<tcp::Host>(fabric, HostId{h}, network.uplink(h), classes, connections_,
                                                 *this));
    network.attach<&tcp::Host::arrive>(h, *hosts_[h]);
  }
  await_next();
}

void TcpRun::await_next() {
  if (const Time at = book_.due(); at != kNever) timeline_.wake(arrival_actor_, std::max(at, timeline_.now()));
}

void TcpRun::on_arrival(Time now) {
  Flow f;
  while (book_.take(now, f.arrival, f.table)) {
    tcp::Connection& c = connections_.open({f.arrival.from}, {f.arrival.to});
    if (flows_.size() <= c.socket) flows_.resize(c.socket + 1U);
    flows_[c.socket] = f;
    c.sender.write(f.arrival.bytes, now);
    hosts_[f.arrival.from]->doorbell(c);
  }
  await_next();
}

void TcpRun::progressed(tcp::Connection& c, Time now) {
  if (!c.sender.done()) return;
  const Flow& f = flows_[c.socket];
  book_.finished(f.arrival, f.table, false, now);
  sent_ += c.sender.counters();
  received_ += c.receiver.counters();
  connections_.close(c);
}

std::uint64_t TcpRun::late() const {
  std::uint64_t n = 0;
  for (const auto& host : hosts_) n += host->counters().late_dropped;
  return n;
}

}  // namespace weft::sim
