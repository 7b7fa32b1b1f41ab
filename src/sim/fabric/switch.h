// An output-queued switch: a packet that arrived goes straight to the queue of the port that leads to its
// destination, and is dropped there, counted, when that queue is full. The switching itself takes no time
// (add it to the links' delay if a model needs it).
//
// The queues are the switch's egress Ports (port.h), each with its own bound. IRN's simulations use
// input-queued switches (IRN §4.1); that discipline is another class.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/fabric/port.h"

namespace weft::sim {

class Switch {
 public:
  explicit Switch(Fabric& fabric) : fabric_(fabric) {}
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  // Number of the new port. The port outlives the switch's last packet.
  std::uint32_t add_port(Port& egress) {
    ports_.push_back(&egress);
    return static_cast<std::uint32_t>(ports_.size() - 1U);
  }
  void route(HostId destination, std::uint32_t port) {
    CHECK_OP(port, <, ports_.size());
    if (routes_.size() <= destination.v) routes_.resize(destination.v + 1U, kNoRoute);
    routes_[destination.v] = static_cast<std::uint16_t>(port);
  }

  void arrive(PacketRef ref, std::uint32_t /*ingress*/) {
    const HostId destination = fabric_.packets.at(ref).destination;
    const std::uint16_t port = destination.v < routes_.size() ? routes_[destination.v] : kNoRoute;
    if (port == kNoRoute) {
      ++dropped_no_route_;
      fabric_.release(ref);
      return;
    }
    ports_[port]->send(ref);
  }

  std::uint64_t dropped_no_route() const { return dropped_no_route_; }
  const std::vector<Port*>& ports() const { return ports_; }

 private:
  static constexpr std::uint16_t kNoRoute = 0xFFFF;
  Fabric& fabric_;
  std::vector<Port*> ports_;
  std::vector<std::uint16_t> routes_;  // by destination
  std::uint64_t dropped_no_route_ = 0;
};

}  // namespace weft::sim
