// Quantities that are computed from parameters instead of run: measures with `account = "NAME"`, or "NAME.N"
// for a figure of several, counted from 0 (src/account/quantities.cc lists them).
#pragma once
#include <string>

#include "lab/verdict.h"

namespace weft::lab {

Result<Computed> account_quantity(const std::string& name);

}  // namespace weft::lab
