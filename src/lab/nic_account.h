// Memory that papers state for NICs, computed from the designs that the program carries (data/nics) by
// sim/nic/memory.h: a design whose part changes states another figure. For measures with `account = "NAME"`,
// beside those of src/account.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace weft::lab {

struct NicFigure {
  std::string what;
  double value = 0;
};

struct NicQuantity {
  const char* id;
  const char* unit;
  const char* text;
  // First those that the paper states, in its order, then what explains them.
  Result<std::vector<NicFigure>> (*figures)();
};

std::span<const NicQuantity> nic_quantities();
// Null when there is none of that name.
const NicQuantity* find_nic_quantity(const std::string& id);

}  // namespace weft::lab
