// Numbers for people: three digits that matter, the interval behind, the unit last.
#pragma once
#include <string>
#include <string_view>

#include "lab/statistics.h"

namespace weft::lab {

std::string number_text(double v);                                    // "0.0123", "2.83", "1530"
std::string interval_text(const Estimate& e, std::string_view unit);  // "2.83 [2.70, 2.96] us"

}  // namespace weft::lab
