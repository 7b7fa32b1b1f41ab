// weft sim --bench: the simulator's speed over the scenarios of sim/world/bench.h.
#pragma once

namespace weft::cli {

// Prints a table, or one JSON object; the exit code.
int sim_bench(bool json);

}  // namespace weft::cli
