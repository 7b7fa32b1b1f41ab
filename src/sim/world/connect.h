// Two queue pairs made, connected and ready: what every program on simulated hosts begins with.
#pragma once
#include <cstdint>
#include <optional>

#include "check/referee.h"
#include "sim/nic/nic.h"
#include "sim/world/scenario.h"

namespace weft::sim {

inline constexpr std::uint8_t kFullAccess = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

struct SpecEnd {
  Nic* nic = nullptr;
  CqId cq{};
  std::uint32_t send_depth = 1;
  std::uint32_t recv_depth = 1;
};

struct ConnectSpec {
  SpecEnd ends[2];
  std::uint32_t reads = 1;  // outstanding per direction
  std::uint64_t psn_seed = 0;
};

struct Connected {
  Qpn qpn[2];
};

// Nothing when a NIC has no queue pair left. `referee` may be null.
std::optional<Connected> connect_pair(const Scenario& scenario, const ConnectSpec& spec, Exchange& exchange,
                                      check::Referee* referee);

}  // namespace weft::sim
