// What a simulated host answers on queue pair 1: the connection manager (core/cm/cm.h) and capability
// discovery (core/cm/discovery.h), beside the Device of its NIC. A host is without them until somebody gives
// it some; such a host ends these messages (Endpoint::ends_service).
//
// A message is a packet of the fabric like any other, with its 256 bytes. It costs the NIC no time and leaves
// through the port that it is given: the NIC's own, or a link of its own. Whoever calls the manager or the
// discovery calls pump() afterwards. The observer is told `progressed` when something came or was due, as
// after a packet for the Device.
#pragma once
#include <algorithm>

#include "core/cm/cm.h"
#include "core/cm/discovery.h"
#include "sim/nic/endpoint.h"

namespace weft::sim {

class Services {
 public:
  Services(Endpoint& endpoint, Port& egress, const cm::CmConfig& manager,
           const cm::DiscoveryConfig& discovery);
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  cm::Cm& manager() { return manager_; }
  cm::Discovery& discovery() { return discovery_; }
  // Everything that is to be sent leaves.
  void pump();
  // The endpoint's: a message that arrived.
  void take(const wire::Address& from, const wire::Mad& mad);

 private:
  void on_deadline(Time now);
  void emit(const cm::MadOut& out);
  Time next_deadline() const { return std::min(manager_.next_deadline(), discovery_.next_deadline()); }
  void watch_deadline();

  Endpoint& endpoint_;
  Port& egress_;
  cm::Cm manager_;
  cm::Discovery discovery_;
  WirePsn psn_{};  // of the next message
  ActorId deadline_actor_;
  Time deadline_asked_ = kNever;  // the earliest pending wake-up for a deadline
};

}  // namespace weft::sim
