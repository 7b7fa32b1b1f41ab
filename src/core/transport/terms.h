// Small values that cross the Device's interface and that its inside shares.
#pragma once
#include <cstdint>

#include "core/base/ids.h"
#include "core/base/units.h"
#include "core/wire/packet.h"

namespace weft {

// How much one turn of a queue pair may send.
struct Budget {
  std::uint32_t packets = 64;
  std::uint32_t bytes = 65000;
  std::uint32_t requests = UINT32_MAX;  // begun or resumed
};

struct MrInfo {
  Key lkey{};
  Key rkey{};
  RegionId region{};
};

struct PathAttr {
  wire::Address peer;
  Bytes credit{0};  // 0: DeviceConfig::path_credit
  // What the world writes into the IP header; part of the path's identity, as the peer is.
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;  // 0: the world's default

  bool same_as(const PathAttr& o) const {
    return peer == o.peer && traffic_class == o.traffic_class && hop_limit == o.hop_limit;
  }
};

}  // namespace weft
