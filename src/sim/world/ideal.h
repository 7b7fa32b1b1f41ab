// How long a flow takes with the network to itself: what slowdowns are measured against (IRN §4.1).
#pragma once
#include <cstdint>

#include "sim/fabric/network.h"
#include "sim/traffic/pattern.h"
#include "sim/world/scenario.h"

namespace weft::sim {

// From posting the message to its completion: the data's way there, packet after packet at line rate, and the
// last ACK's way back; for a READ the request's way there and the data's back.
Duration ideal_time(const Network& network, const TransportSpec& transport, const Arrival& flow);

}  // namespace weft::sim
