// What one packet of a message takes on the line, item by item (NTT §4.1: "total frame size").
#pragma once
#include <array>
#include <cstdint>

#include "account/network.h"

namespace weft::wan {

struct FrameItem {
  const char* name;
  std::uint32_t bytes;
};

inline constexpr std::uint32_t kGap = 20;   // preamble and the gap between frames
inline constexpr std::uint32_t kReth = 16;  // of a WRITE's first packet

// A full packet without extension headers.
constexpr std::array<FrameItem, 8> frame_items(std::uint32_t mtu) {
  constexpr account::Headers h;
  return {{{"payload", mtu},
           {"Ethernet header", h.ethernet},
           {"IPv4 header", h.ipv4},
           {"UDP header", h.udp},
           {"BTH", h.bth},
           {"ICRC", h.icrc},
           {"FCS", h.fcs},
           {"preamble and gap", kGap}}};
}
constexpr std::uint32_t frame_bytes(std::uint32_t mtu) {
  std::uint32_t sum = 0;
  for (const FrameItem& item : frame_items(mtu)) sum += item.bytes;
  return sum;
}

constexpr std::uint64_t packets_of(std::uint64_t message, std::uint32_t mtu) {
  return message == 0 ? 1 : (message + mtu - 1) / mtu;
}
// A WRITE of so many bytes: payload and pad, the headers of each packet, the RETH of the first.
constexpr std::uint64_t line_bytes(std::uint64_t message, std::uint32_t mtu) {
  return (message + 3) / 4 * 4 + packets_of(message, mtu) * frame_bytes(0) + kReth;
}

}  // namespace weft::wan
