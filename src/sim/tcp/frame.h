// How many bytes a segment occupies a link for.
//
//   | preamble 8 | Ethernet 14 | IPv4 20 | TCP 20 + options | data | FCS 4 | gap 12 |
//
// SACK blocks are 2 bytes and 8 each, behind two NOPs (RFC 2018 §3). A frame without data is filled up to
// Ethernet's least, 64 bytes with its FCS.
#pragma once
#include <algorithm>
#include <cstdint>

#include "sim/fabric/frame.h"
#include "sim/fabric/segment.h"

namespace weft::sim::tcp {

inline constexpr std::uint32_t kEthernetIpTcpBytes = 14 + 20 + 20;
inline constexpr std::uint32_t kLeastFrameBytes = 60;  // without FCS

constexpr std::uint32_t option_bytes(std::uint32_t blocks) { return blocks == 0 ? 0 : 4 + 8 * blocks; }

constexpr std::uint32_t frame_bytes(std::uint32_t data, std::uint32_t blocks,
                                    Framing framing = Framing::kWire) {
  return std::max(kEthernetIpTcpBytes + option_bytes(blocks) + data, kLeastFrameBytes) +
         (framing == Framing::kWire ? kPreambleFcsGapBytes : 0U);
}

}  // namespace weft::sim::tcp
