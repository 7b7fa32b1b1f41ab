// A random scenario in a random fabric, as the text of a scenario file: a pure function of its seed, and
// something that `weft sim` replays.
#pragma once
#include <cstdint>
#include <string>

namespace weft::swarm {

std::string plan_fabric(std::uint64_t seed);

}  // namespace weft::swarm
