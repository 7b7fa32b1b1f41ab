#include "sim/world/tcp_run.h"

#include <algorithm>
#include <array>
#include <span>

namespace weft::sim {
namespace {

// Blocks as bytes of the stream.
struct Blocks {
  explicit Blocks(const Segment& s) : count(s.block_count) {
    for (std::size_t i = 0; i < count; ++i) all[i] = {s.ack + s.blocks[i].first, s.ack + s.blocks[i].end};
  }
  std::span<const check::ByteRange> span() const { return {all.data(), count}; }
  std::array<check::ByteRange, Segment::kBlocks> all{};
  std::size_t count;
};

}  // namespace

TcpRun::TcpRun(const Scenario& scenario, FlowBook& book, Fabric& fabric, Network& network,
               check::ByteStreams* observer, Settler& settler)
    : scenario_(scenario),
      book_(book),
      observer_(observer),
      settler_(settler),
      timeline_(fabric.timeline),
      arrival_actor_(fabric.timeline.add<&TcpRun::on_arrival>(*this)),
      connections_(scenario.tcp) {
  const tcp::Classes classes{scenario.network.data_class, scenario.network.control_class};
  for (std::uint32_t h = 0; h < scenario.graph.hosts; ++h) {
    hosts_.push_back(
        std::make_unique<tcp::Host>(fabric, HostId{h}, network.uplink(h), classes, connections_, *this));
    network.attach<&tcp::Host::arrive>(h, *hosts_[h]);
  }
  await_next();
}

void TcpRun::await_next() {
  if (const Time at = book_.due(); at != kNever)
    timeline_.wake(arrival_actor_, std::max(at, timeline_.now()));
}

void TcpRun::on_arrival(Time now) {
  Flow f;
  while (book_.take(now, f.arrival, f.table)) {
    tcp::Connection& c = connections_.open({f.arrival.from}, {f.arrival.to});
    if (flows_.size() <= c.socket) flows_.resize(c.socket + 1U);
    flows_[c.socket] = f;
    if (observer_ != nullptr) {
      const tcp::Config& t = scenario_.tcp;
      observer_->opened(c.number, {t.mss, t.initial_window, t.duplicate_acks, t.receive_window.n, t.rto_min,
                                   t.flavour == tcp::Flavour::kSack});
      observer_->wrote(c.number, f.arrival.bytes);
    }
    c.sender.write(f.arrival.bytes, now);
    hosts_[f.arrival.from]->doorbell(c);
  }
  await_next();
}

void TcpRun::progressed(tcp::Connection& c, Time now) {
  if (!c.sender.done()) return;
  const Flow& f = flows_[c.socket];
  book_.finished(f.arrival, f.table, false, now);
  settler_.ended();
  sent_ += c.sender.counters();
  received_ += c.receiver.counters();
  if (observer_ != nullptr) observer_->closed(c.number, now);
  connections_.close(c);
}

void TcpRun::sent(const tcp::Connection& c, const Segment& s, tcp::Cause /*cause*/, Time now) {
  if (observer_ == nullptr) return;
  if (s.acknowledgment) {
    observer_->ack_sent(c.number, s.ack, Blocks(s).span(), now);
  } else {
    observer_->data_sent(c.number, {s.seq, s.seq + s.length}, now);
  }
}

void TcpRun::arrived(const tcp::Connection& c, const Segment& s, Time now) {
  if (observer_ == nullptr) return;
  if (s.acknowledgment) {
    observer_->ack_arrived(c.number, s.ack, Blocks(s).span(), now);
  } else {
    observer_->data_arrived(c.number, {s.seq, s.seq + s.length});
  }
}

void TcpRun::delivered(const tcp::Connection& c, tcp::Receiver::Delivered d, Time now) {
  if (observer_ != nullptr) observer_->delivered(c.number, {d.from, d.to}, now);
}

std::uint64_t TcpRun::late() const {
  std::uint64_t n = 0;
  for (const auto& host : hosts_) n += host->counters().late_dropped;
  return n;
}

}  // namespace weft::sim
