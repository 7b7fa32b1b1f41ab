// What the paper on long distances states and derives (NTT §2.2, §4), computed by the planner of `weft wan
// plan`.
#pragma once
#include <span>

#include "lab/quantity.h"

namespace weft::lab {

std::span<const ComputedQuantity> wan_quantities();

}  // namespace weft::lab
