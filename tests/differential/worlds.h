// The two worlds of the differential test. Both run a plan to its end and log, at each host, every packet
// that leaves it and every completion, with the picosecond.
#pragma once
#include "tests/differential/script.h"

namespace weft::differential {

inline constexpr Duration kDelay{1'234'567};  // of the wire, either way

// Packets as structs, through links of the simulated fabric.
void run_simulated(const Plan& plan, std::uint64_t seed, Script& script);
// Packets as bytes, through live::Shard. `forget`: this packet of host 0, counted from 1, is lost besides, in
// this world only; 0 for none.
void run_live(const Plan& plan, std::uint64_t seed, Script& script, std::uint64_t forget = 0);

}  // namespace weft::differential
