// What holds of every network, whatever runs over it. A run with independent observers is audited from time
// to time and at its end. A sum that is wrong is a finding like theirs:
//
//   always    sent + duplicated + made by boxes = delivered + ended in boxes + dropped, cause by cause, +
//             under way; no box keeps more than its store; what a switch says it
//             buffers is what its queues hold; no buffer or queue above its bound; nothing dropped for want
//             of room where PFC or credits keep it
//   at rest   no packet, no payload, nothing that a box keeps or answers for, no byte in a buffer and no port
//   that is stopped is left, and every
//             port has all its credit back
#pragma once
#include <memory>
#include <span>

#include "check/report.h"
#include "sim/box/box_node.h"
#include "sim/fabric/network.h"
#include "sim/nic/endpoint.h"

namespace weft::sim {

struct AuditSubject {
  const Fabric& fabric;
  const Network& network;
  const SwitchConfig& switches;
  EndpointCounters hosts;  // of all
  std::span<const std::unique_ptr<BoxNode>> boxes{};
};

// `at_rest`: no event is to come.
void audit(const AuditSubject& subject, bool at_rest, check::Report& report);

}  // namespace weft::sim
