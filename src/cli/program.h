// This program as runs are recorded by it.
#pragma once
#include <string>

#include "lab/plan.h"

namespace weft::cli {

// Digest of the sources that a simulation depends on: with equal ones equal scenarios give equal results.
std::string simulator_id();
// Digest of the sources that a measurement of this machine depends on.
std::string live_code();
// That, how it was built, and this machine: what was measured elsewhere is no measurement of this one.
std::string live_id();
// By which this program records the runs of an experiment.
std::string own_id(const lab::Experiment& e);

lab::Program this_program();

}  // namespace weft::cli
