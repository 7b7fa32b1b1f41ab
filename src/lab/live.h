// A run that measures this machine instead of simulating: `weft bench NAME --json`, a child process that says
// what it found as JSON. An experiment asks for it by `live = "NAME"`; its settings are options of that
// command, and its seeds are repetitions.
//
// A measurement says how busy the machine was (`host`), and keeps its place in the record until the code that
// was measured changes. One that came to nothing, or was made on a busy machine, has a fault, and is tried
// again.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "lab/plan.h"
#include "record/store.h"

namespace weft::lab {

inline constexpr std::array<const char*, 1> kBenchmarks{"channel"};

// What stands where other runs have their scenario's path.
std::string live_base(const std::string& benchmark);
bool is_live(const Planned& run);

bool is_live(const Experiment& e);
// What names the maker of the run in the record: the simulator, or what was measured, as built, and where.
const std::string& maker(const Planned& run, const Program& program);

std::string live_configuration(const Planned& run);
std::string live_command(const Planned& run);
// Executes the child. What it could not measure is a fault of the run, in its words.
Result<record::Run> measure(const Planned& run, const Program& program);

}  // namespace weft::lab
