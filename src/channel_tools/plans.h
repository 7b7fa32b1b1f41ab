// What a ping, a measurement and an agent are to do. Nothing here needs a library to run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/traffic/sizes.h"

namespace weft::tools {

inline constexpr std::uint16_t kService = 4790;  // of `--serve`, unless another one is named

struct AgentPlan {
  std::uint16_t service = kService;
  double seconds = 0;  // 0: until it is interrupted
  std::vector<std::string> deny;
};
struct PingPlan {
  std::uint32_t count = 10;
  std::uint32_t interval_us = 10'000;
  std::uint32_t timeout_us = 500'000;
  std::uint16_t service = kService;
};
inline constexpr std::uint32_t kMostPings = 10'000;
inline constexpr std::size_t kMostHosts = 256;

struct PerfPlan {
  std::string host;
  std::uint16_t service = kService;
  std::uint32_t channels = 1;
  std::uint32_t outstanding = 1;
  sim::SizeDistribution sizes = sim::SizeDistribution::fixed(Bytes{64});
  double rate = 0;              // requests a second, all channels together; 0: a closed loop
  std::uint32_t elephants = 0;  // of a hundred channels
  std::uint64_t elephant = 1U << 20U;
  double seconds = 2;
  double warm_up = 0.2;
  std::uint64_t seed = 1;
};

}  // namespace weft::tools
