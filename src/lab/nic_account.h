// Memory that papers state for NICs, computed from the designs that the program carries (data/nics) by
// sim/nic/memory.h: a design whose part changes states another figure.
#pragma once
#include <span>

#include "lab/quantity.h"

namespace weft::lab {

std::span<const ComputedQuantity> nic_quantities();

}  // namespace weft::lab
