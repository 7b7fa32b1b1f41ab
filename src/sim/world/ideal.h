// How long a flow takes with the network to itself: what slowdowns are measured against (IRN §4.1).
#pragma once
#include <cstdint>

#include "sim/fabric/network.h"
#include "sim/traffic/pattern.h"
#include "sim/world/scenario.h"

namespace weft::sim {

struct IdealTime {
  Duration data{};       // packet after packet at line rate, to the last one's arrival
  Duration other_way{};  // of the last ACK, or of a READ's request
  // From posting the message to its completion.
  Duration total() const { return data + other_way; }
};
IdealTime ideal_time(const Network& network, const TransportSpec& transport, const NicSpec& nic,
                     const Arrival& flow);

}  // namespace weft::sim
