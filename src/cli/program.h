// This program as runs are recorded by it.
#pragma once
#include <string>

#include "lab/plan.h"

namespace weft::cli {

// Digest of the sources that a simulation depends on: with equal ones equal scenarios give equal results.
std::string simulator_id();
// Digest of the sources that a measurement of this machine depends on.
std::string live_id();

lab::Program this_program();

}  // namespace weft::cli
