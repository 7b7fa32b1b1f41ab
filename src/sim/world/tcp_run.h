// The hosts and their program where the transport is TCP: each drawn flow is one message on a connection of
// its own, established when the flow begins. A flow is finished when its sender knows that everything
// arrived, as a verb is at its ACK.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "check/byte_stream.h"
#include "sim/fabric/network.h"
#include "sim/tcp/host.h"
#include "sim/world/flow_book.h"
#include "sim/world/scenario.h"
#include "sim/world/settler.h"

namespace weft::sim {

class TcpRun final : public tcp::Observer {
 public:
  // `observer` may be null.
  TcpRun(const Scenario& scenario, FlowBook& book, Fabric& fabric, Network& network,
         check::ByteStreams* observer, Settler& settler);
  TcpRun(const TcpRun&) = delete;
  TcpRun& operator=(const TcpRun&) = delete;

  const std::vector<std::unique_ptr<tcp::Host>>& hosts() const { return hosts_; }
  // Sums over all connections of the run.
  const tcp::SenderCounters& sent() const { return sent_; }
  const tcp::ReceiverCounters& received() const { return received_; }
  std::uint64_t late() const;  // segments of connections closed before

 private:
  struct Flow {
    Arrival arrival;
    std::uint32_t table = 0;
  };

  void sent(const tcp::Connection& c, const Segment& s, tcp::Cause cause, Time now) override;
  void arrived(const tcp::Connection& c, const Segment& s, Time now) override;
  void delivered(const tcp::Connection& c, tcp::Receiver::Delivered d, Time now) override;
  void progressed(tcp::Connection& c, Time now) override;
  void on_arrival(Time now);
  void await_next();

  const Scenario& scenario_;
  FlowBook& book_;
  check::ByteStreams* observer_;
  Settler& settler_;
  Timeline& timeline_;
  ActorId arrival_actor_;
  tcp::Connections connections_;
  std::vector<std::unique_ptr<tcp::Host>> hosts_;
  std::vector<Flow> flows_;  // by socket
  tcp::SenderCounters sent_;
  tcp::ReceiverCounters received_;
};

}  // namespace weft::sim
