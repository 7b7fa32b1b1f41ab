// Two hosts with NICs of one design and some connections between them: what `weft nic sweep` and `weft nic
// explore` measure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "sim/nic/design.h"
#include "sim/nic/nic_counters.h"
#include "sim/world/workload.h"

namespace weft::cli {

// The traffic, as a [[flow]] says it.
struct NicLoad {
  std::string op = "send";
  std::string size = "512B";
  std::string depth = "16";
  std::string mtu = "1024";
  std::vector<std::string> changes;  // of the scenario
};

struct NicRun {
  std::uint32_t queue_pairs = 0;
  sim::FlowResult flow;
  sim::NicCounters nics[2];
  Duration run{};
  double packets_per_second = 0;  // of the simulation
  double wire_gbps = 0;           // with headers, without preamble and gap
  double mrps = 0;
  double steady_mrps = 0;  // from the first fifth of the messages on
  double latency_us = 0;
  double extra_gbps = 0;
  double hit_rate = 1;
};

// "1,16,128"
Result<std::vector<std::uint32_t>> queue_pair_numbers(const std::string& list);

// `design` with `changes` of it; so many messages in all, and at least `each` a queue pair. Where the mode is
// roce, the network has PFC: it is made for networks that lose nothing.
Result<NicRun> run_nics(const sim::Design& design, const std::string& name, const std::string& changes,
                        std::uint32_t queue_pairs, std::uint64_t messages, std::uint64_t each,
                        const NicLoad& load);

}  // namespace weft::cli
