// One world with a pair of boxes: planned from its seed, run under all observers. They stand at the hosts,
// and notice the boxes by nothing but completions that come before the far placement.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "pair/plan.h"
#include "wan/logic/config.h"

namespace weft::pair {

class Recorder;

struct LineResult {
  bool clean = false;
  std::string findings;  // one line each, when not clean
  std::uint64_t packets = 0;
  std::array<std::uint64_t, wan::kBoxCounterCount> counters{};  // of both boxes
};

// A world of the swarm whose two sites are far apart. Nobody breaks a rule in it, goes away or forges
// anything.
// `meets`: its queue pairs meet and part by the connection manager's messages.
Plan plan_line_world(std::uint64_t seed, bool& meets);
LineResult run_line_seed(std::uint64_t seed, Recorder* recorder = nullptr);

}  // namespace weft::pair
