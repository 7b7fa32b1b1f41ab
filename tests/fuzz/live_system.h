// What the live target sees of the system while an input runs, so that every input runs twice in the same
// way, and fast. This program has a clock_gettime and an open of its own:
//
//   the monotonic clock  stands, but for 100 ns with each look, and moves where the input says; the engine
//   knows
//                        no other (live/engine/clock.h). All others, libFuzzer's among them, are the system's
//   /proc/self/maps      is not there. The engine reads it for every region, to refuse memory that is not
//   there
//                        (live/wires/program_memory.h), and that took half of the time of an input
#pragma once
#include <cstdint>

namespace weft::fuzz {

inline constexpr std::int64_t kSystemClock = -1;
inline std::int64_t virtual_ns = kSystemClock;  // the monotonic clock, in nanoseconds

}  // namespace weft::fuzz
