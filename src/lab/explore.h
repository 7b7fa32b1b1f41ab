// The search for designs that bear the most connections at full rate in a given memory: the question that
// SRNIC §5 leaves open, how memory on the chip is best shared between contexts and translations.
//
//   designs x memories x splits   families: what is left of the memory beside a design's other parts is
//   shared
//        |                        between contexts and translations
//   memory_of                     whether so many connections fit
//   explain                       the rate that no run can pass; below full rate nothing is simulated
//   measure                       simulated, the most connections first, then between those at full rate and
//                                 those that are not
//
// The bound is an upper one: of N connections in turn no replacement finds more than cache/N contexts, and a
// turn's messages share one look-up. So what is pruned could not have been full. Families that could not
// beat what is already found, in no more memory, are not simulated either; and no more than `most_runs` runs
// are made in all.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "sim/nic/design.h"
#include "sim/nic/explain.h"

namespace weft::lab {

struct ExploreSpace {
  std::vector<std::string> designs;        // built-in ones, or files
  std::vector<Bytes> memories;             // on the chip
  std::vector<double> splits;              // of what is left: the contexts' share
  std::vector<std::uint32_t> connections;  // rising
  sim::MessageLoad load;                   // queue_pairs and misses are the search's
  std::uint64_t touched = 0;               // registered memory that each connection sends from
  double full = 0.9;                       // of what the design reaches without misses
  std::uint32_t most_runs = 60;
};

// A design, a memory for it, and how the memory is shared.
struct Family {
  std::string base;  // the design's name
  sim::Design design;
  Bytes memory{};
  double split = 0;  // 0: all contexts are on the chip, and translations have what those leave
};

// The same for so many connections: the rows of its tables follow.
struct Candidate {
  sim::Design design;
  std::string base;
  std::string changes;
  std::uint32_t connections = 0;
  std::uint64_t chip = 0;  // bytes
  double peak = 0;         // million messages a second: closed form, nothing misses
  double bound = 0;        // likewise, with what must miss
};

Result<std::vector<Family>> families_of(const ExploreSpace& space);
// Nothing: it does not fit.
std::optional<Candidate> candidate_of(const ExploreSpace& space, const Family& family,
                                      std::uint32_t connections);

struct Explored {
  std::string design;
  std::string changes;
  double split = 0;
  std::uint32_t connections = 0;
  std::uint64_t chip = 0;  // bytes for so many
  double bound = 0;        // million messages a second
  double rate = 0;         // measured
  double peak = 0;         // of the design
  bool full = false;
  bool front =
      false;  // no other has as many connections in as little memory at such a rate, a hundredth aside
};

struct Exploration {
  std::vector<Explored> points;  // every run
  std::uint32_t pruned = 0;      // points that the closed form excluded
  std::uint32_t beaten = 0;      // families that could not have been better than what was found
  bool cut_short = false;        // most_runs came first
};

// Million messages a second.
using ExploreMeasure = std::function<Result<double>(const Candidate&)>;
using ExploreProgress = std::function<void(std::size_t done, std::size_t all)>;

Result<Exploration> explore(const ExploreSpace& space, const ExploreMeasure& measure,
                            const ExploreProgress& progress);

}  // namespace weft::lab
