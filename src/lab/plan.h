// What must be run for an experiment: a run for each variant, point and seed, named by the digest of its
// resolved configuration, its seed and the simulator. Runs of the same name are the same run, whichever
// experiment asks for it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "lab/experiment.h"
#include "record/store.h"
#include "sim/world/scenario.h"
#include "sim/world/simulation.h"

namespace weft::lab {

// The program that runs: `simulator` names the code that results depend on, `version` is for people.
struct Program {
  std::string simulator;
  std::string version;
  double (*seconds)() = nullptr;  // wall time, for what a run cost and for progress
  std::string live{};  // in its place for measurements: their code, its build, this machine (live.h)
  std::string weft{};  // the path of `weft`, which measures it
};

struct Planned {
  std::size_t variant = 0;
  std::size_t point = 0;
  std::uint64_t seed = 0;
  std::string key;
  std::string base;
  std::vector<std::string> changes;  // without the seed
  std::string
      stated{};  // the key with every setting as it is stated: what records knew a run by before unread.h
};

// Seeds are 1 to `seeds`. The lowest come first, so an interrupted lab has every cell with fewer seeds.
// `live` is that of the program, for runs that measure this machine.
Result<std::vector<Planned>> plan(const Experiment& e, const Size& size, std::uint32_t seeds,
                                  const std::string& simulator, const std::string& live = {});

// A scenario without its seed and without what nothing reads (unread.h), and the files that it names, as
// JSON.
std::string configuration_of(const sim::Scenario& scenario);
std::string stated_configuration_of(const sim::Scenario& scenario);  // with what nothing reads
std::string run_key(const std::string& configuration, std::uint64_t seed, const std::string& simulator);

// The command that repeats one run.
std::string command_of(const Planned& run);

// Executes the run in this process, or measures this machine by a child of it.
Result<record::Run> simulate(const Planned& run, const Program& program);
// What the record keeps of a finished simulation, but for its cost.
record::Run run_of(const sim::Scenario& scenario, const sim::Simulation& done, const Program& program);
// Why its results are not to be used: a flow failed or did not end, or an observer complained; else empty.
std::string fault_of(const sim::Simulation& done);

}  // namespace weft::lab
