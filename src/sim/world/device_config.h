// The Device of one host of a scenario: sized by the flows that it takes part in.
#pragma once
#include <cstdint>

#include "core/transport/device.h"
#include "sim/world/scenario.h"

namespace weft::sim {

DeviceConfig device_config(const Scenario& s, std::uint32_t host);

}  // namespace weft::sim
