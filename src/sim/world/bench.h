// The scenarios by which the simulator's speed is compared with others': 100 Gb/s links of 1 us, three-tier
// fat-trees, PFC, go-back-N with an ACK per packet, one flow of 2 MB per sender.
#pragma once
#include <cstdint>
#include <span>

#include "sim/world/scenario.h"

namespace weft::sim {

struct BenchRow {
  const char* name;
  const char* text;
  std::uint32_t k;  // of the fat-tree
  std::uint32_t mtu;
  bool incast;
};
std::span<const BenchRow> bench_rows();

inline constexpr std::uint64_t kBenchFlowBytes = 2'000'000;

Scenario bench_scenario(const BenchRow& row);
// Data packets that the flows need when nothing is sent twice.
std::uint64_t bench_data_packets(const Scenario& scenario);

}  // namespace weft::sim
