// One seed of calls through both worlds.
#pragma once
#include <memory>
#include <string>

#include "tests/differential/live_nics.h"
#include "tests/differential/party.h"

namespace weft::differential {

enum class Against : std::uint8_t {
  kShards,  // run_live()
  kNics,    // whole soft NICs (live_nics.h), at the pace of their services
};

// One plan, acted out in the simulator and live.
struct Acted {
  Acted(std::uint64_t seed, Against against, const Sabotage& sabotage = {});
  std::string difference() const;  // the first one, or nothing

  CallsPlan plan;
  std::unique_ptr<LiveNics> nics;
  Party simulated;
  Party live;
  bool tied = false;  // chance made it impossible to compare (worlds.h)
};

struct Compared {
  std::string difference;
  bool tied = false;
  Party::Counts counts;  // of what happened
  std::uint64_t lines = 0;
};

Compared compare_calls(std::uint64_t seed, Against against, const Sabotage& sabotage = {});

}  // namespace weft::differential
