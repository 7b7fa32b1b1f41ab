// How many bytes a packet occupies a link for: RoCEv2 over IPv4 over Ethernet
// (docs/protocol/packets.md#frame).
//
//   | preamble 8 | Ethernet 14 | IPv4 20 | UDP 8 | BTH + extensions | payload + pad | ICRC 4 | FCS 4 | gap 12
//   |
//
// `Framing::kWire` counts all of it: what a real link of that rate carries, and weft's default.
// `Framing::kFrame` leaves out the 24 bytes of preamble, FCS and inter-frame gap, as captures and some
// papers count.
#pragma once
#include <cstdint>

#include "core/wire/codec.h"

namespace weft::sim {

enum class Framing : std::uint8_t { kWire, kFrame };

inline constexpr std::uint32_t kEthernetIpUdpBytes = 14 + 20 + 8;
inline constexpr std::uint32_t kPreambleFcsGapBytes = 8 + 4 + 12;

constexpr std::uint32_t framing_bytes(Framing framing) {
  return kEthernetIpUdpBytes + static_cast<std::uint32_t>(wire::kIcrcBytes) +
         (framing == Framing::kWire ? kPreambleFcsGapBytes : 0U);
}

inline std::uint32_t frame_bytes(const wire::Header& header, std::uint32_t payload, Framing framing) {
  return framing_bytes(framing) + static_cast<std::uint32_t>(wire::header_bytes(header)) + payload +
         wire::pad_bytes(payload);
}

}  // namespace weft::sim
