// Runs what experiments lack and reads what they have. The record is the only memory: a run that is in it is
// not run again.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "lab/experiment.h"
#include "lab/plan.h"
#include "lab/pool.h"
#include "lab/verdict.h"
#include "record/store.h"

namespace weft::lab {

// An experiment at a size: its runs and, once they are there, its values.
struct Chosen {
  const Experiment* experiment = nullptr;
  Size size;
  std::uint32_t seeds = 0;
  std::vector<Planned> runs;
};

// Names of the experiments that `names` means: experiments or groups of them; of all if it is empty.
Result<std::vector<std::string>> named(const std::vector<Experiment>& all,
                                       const std::vector<std::string>& names);
// As `simulator` runs it, or `live` measures it; `seeds` 0: as many as the size has. `live`: plan().
Result<Chosen> choose(const Experiment& e, const std::string& size, std::uint32_t seeds,
                      const std::string& simulator, const std::string& live = {});
Result<std::vector<Chosen>> choose(const std::vector<Experiment>& all, const std::vector<std::string>& names,
                                   const std::string& size, std::uint32_t seeds, const std::string& simulator,
                                   const std::string& live = {});

struct Progress {
  std::size_t done = 0;
  std::size_t all = 0;
  double seconds = 0;  // since the first began
};

// What executes pieces of work: child processes, or ranks of MPI.
using Executor = std::function<PoolEnd(const std::vector<std::string>& pieces, const PoolCalls& calls)>;

struct RunOptions {
  Executor execute;
  bool fresh = false;
  std::function<void(const Progress&)> progress;  // called often
  std::function<void(const std::string&)> say;    // a sentence: what failed and how to repeat it
};

// Executes one piece of work: takes a planned run as a text, returns its result as a text.
std::string execute_piece(const std::string& piece, const Program& program);

struct Ran {
  std::size_t present = 0;  // were in the record
  std::size_t executed = 0;
  std::size_t faulty = 0;  // of all: their results are not used
  std::size_t died = 0;
  bool interrupted = false;
};

Result<Ran> run(const std::vector<Chosen>& chosen, record::Store& store, const Program& program,
                const RunOptions& options);

// Values of every metric, from the record.
Result<Samples> read_samples(const Chosen& chosen, const record::Store& store);

// What was recorded under an experiment's names, whatever its scenarios resolve to today.
struct Recorded {
  std::string size;
  std::string simulator;
  std::uint32_t seeds = 0;
};
Result<std::vector<Recorded>> recorded(const Experiment& e, const record::Store& store);  // newest first
Result<Samples> read_samples(const Experiment& e, const Recorded& which, const record::Store& store);
// keep_complete_seeds keeps the seeds, from the first on, of which every run is in the record; the rest of an
// interrupted experiment is left out. Fewer than three seeds stay as they are, and show what is missing.
// samples_by reads the runs of `simulator`: the program's own by their keys, another's by the names under
// which they were recorded, with as many seeds as there are.
void keep_complete_seeds(Chosen& chosen, const Samples& samples);
Result<Samples> samples_by(Chosen& chosen, const record::Store& store, const std::string& simulator,
                           const std::string& own);

}  // namespace weft::lab
