// A quantity that other parts of the program compute: for measures with `account = "NAME"`, beside those of
// src/account.
#pragma once
#include <string>
#include <vector>

#include "core/base/result.h"

namespace weft::lab {

struct ComputedFigure {
  std::string what;
  double value = 0;
};

struct ComputedQuantity {
  const char* id;
  const char* unit;
  const char* text;
  // First those that the paper states, in its order, then what explains them.
  Result<std::vector<ComputedFigure>> (*figures)();
};

}  // namespace weft::lab
