// What a detailed NIC counted, for programs to read.
#pragma once
#include "record/record.h"
#include "sim/nic/nic_counters.h"

namespace weft::sim {

// `run`: how long the simulation was, for shares of it.
record::Record to_record(const NicCounters& counters, Duration run);

}  // namespace weft::sim
