// Quantities that are computed from parameters instead of run: measures with `account = "NAME"`, or "NAME.N"
// for a figure of several, counted from 0 (src/account/quantities.cc
// lists them, nic_account.cc those that follow from NIC designs, wan_account.cc those of long distances).
#pragma once
#include <string>
#include <vector>

#include "lab/verdict.h"

namespace weft::lab {

std::vector<std::string> account_quantities();
Result<Computed> account_quantity(const std::string& name);

}  // namespace weft::lab
