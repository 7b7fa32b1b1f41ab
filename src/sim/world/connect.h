// Two queue pairs made, connected and ready: what every program on simulated hosts begins with.
#pragma once
#include <cstdint>
#include <optional>

#include "check/referee.h"
#include "sim/nic/ideal_nic.h"
#include "sim/world/scenario.h"

namespace weft::sim {

inline constexpr std::uint8_t kFullAccess = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

struct ConnectEnd {
  HostId host{};
  Device* device = nullptr;
  PdId pd{};
  CqId cq{};
  std::uint32_t send_depth = 1;
  std::uint32_t recv_depth = 1;
};

struct ConnectSpec {
  ConnectEnd ends[2];
  std::uint32_t reads = 1;  // outstanding per direction
  std::uint64_t psn_seed = 0;
  Time now{};
};

struct Connected {
  Qpn qpn[2];
};

// Nothing when a Device has no queue pair left. `referee` may be null.
std::optional<Connected> connect_pair(const Scenario& scenario, const ConnectSpec& spec,
                                      check::Referee* referee);

}  // namespace weft::sim
