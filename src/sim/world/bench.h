// The scenarios by which the simulator's speed is measured.
//
//   kIncast, kPermutation  those that other simulators were measured with: 100 Gb/s links of 1 us, three-tier
//                          fat-trees, PFC, go-back-N with an ACK per packet, one flow of 2 MB per sender
//   kSrnic                 what a study at full size costs: SRNIC's Figure 12, 70 % load, from 16 to 4096
//   hosts;
//                          an event should cost the same in all of them
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sim/world/scenario.h"

namespace weft::sim {

enum class BenchKind : std::uint8_t { kIncast, kPermutation, kSrnic };

struct BenchRow {
  const char* name;
  const char* text;
  BenchKind kind;
  std::uint32_t size;  // of a fat-tree k, otherwise hosts
  std::uint32_t mtu;
  std::size_t runs;  // the median of so many counts
};
std::span<const BenchRow> bench_rows();

inline constexpr std::uint64_t kBenchFlowBytes = 2'000'000;

Scenario bench_scenario(const BenchRow& row);
// Data packets that the flows need when nothing is sent twice; none where the flows are drawn.
std::optional<std::uint64_t> bench_data_packets(const Scenario& scenario);

}  // namespace weft::sim
