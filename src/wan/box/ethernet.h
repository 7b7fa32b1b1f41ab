// Ethernet frames and what a box makes of them. A box understands RoCEv2 over IPv4, whole, without IP options
// or a VLAN tag, with a right ICRC; everything else passes, counted by reason.
//
//   | Ethernet 14 | IPv4 20 | UDP 8 | BTH, extensions, payload, pad, ICRC | perhaps padding |
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wan/logic/frame.h"

namespace weft::wan {

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::size_t kHeadersBytes = kEthernetBytes + 20 + 8;
using EthernetHeader = std::array<std::uint8_t, kEthernetBytes>;

// X(name, sentence)
#define WEFT_STRANGER_REASONS(X)                                                               \
  X(other, "no RoCEv2 over IPv4: ARP, IPv6, TCP, VLANs and all that is not RDMA")              \
  X(fragment, "RoCEv2 in fragments or with IP options")                                        \
  X(malformed, "UDP to RoCEv2's port that is no packet of it, or of an opcode not known here") \
  X(bad_icrc, "RoCEv2 with a wrong ICRC: broken on the way, or endpoints that compute none")

enum class Stranger : std::uint8_t {
#define WEFT_X(name, text) name,
  WEFT_STRANGER_REASONS(WEFT_X)
#undef WEFT_X
      kCount
};
inline constexpr std::size_t kStrangerCount = static_cast<std::size_t>(Stranger::kCount);

// IPv4, not in fragments, UDP to the port of RoCEv2, all of its bytes here.
bool is_rocev2(std::span<const std::uint8_t> frame);

// True: `out` is the frame, but for its body; `mad` is its payload if that is a management datagram, or
// parity.
bool understand(std::span<const std::uint8_t> frame, Frame& out, std::span<const std::uint8_t>& mad,
                Stranger& reason);

// Where the UDP source port and the UDP checksum lie in a frame that is_rocev2().
std::uint16_t source_port(std::span<const std::uint8_t> frame);
// Zero: not computed. Instead of one that was left to a device.
void clear_udp_checksum(std::uint8_t* frame);

// A frame that a box writes: both addresses are v4-mapped. Returns its length; `out` holds kMostWritten.
inline constexpr std::size_t kMostWritten = 384;
std::size_t write_frame(const Frame& f, std::span<const std::uint8_t> payload, const EthernetHeader& ethernet,
                        std::uint16_t from_port, std::span<std::uint8_t> out);

// Everything around a packet of `bytes`, from BTH to pad, that lies in `out` behind its headers already:
// those, and the ICRC. Returns the frame's length.
std::size_t close_frame(const Frame& f, std::size_t bytes, const EthernetHeader& ethernet,
                        std::uint16_t from_port, std::span<std::uint8_t> out);

}  // namespace weft::wan
