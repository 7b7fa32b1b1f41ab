// One world of the swarm: plan it from its seed, run it under all observers, say what came of it.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "core/transport/counters.h"
#include "pair/coverage.h"
#include "pair/recorder.h"

namespace weft::pair {

struct SeedResult {
  bool clean = false;
  std::string findings;  // one line each, when not clean
  std::uint64_t packets = 0;
  std::uint64_t corrupted = 0;
  // Summed over the hosts.
  std::array<std::uint64_t, kCounterCount> counters{};
  std::array<std::uint64_t, kCoveredCount> coverage{};
};

SeedResult run_seed(std::uint64_t seed, Recorder* recorder = nullptr);

// Counters that no swarm world can reach, each with the reason; all others must be reached in a long run.
struct Unreachable {
  Counter counter;
  const char* reason;
};
std::span<const Unreachable> unreachable_counters();

}  // namespace weft::pair
