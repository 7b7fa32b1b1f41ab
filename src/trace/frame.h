// An Ethernet frame around a UDP payload: what the wire of docs/protocol/packets.md#frame would have carried.
//
//   | Ethernet 14 | IPv4 20 or IPv6 40 | UDP 8 | payload: BTH … ICRC |
//
// Neither world has such frames: the simulator passes Headers, a UDP socket hides everything below the
// payload. Only captures need them, so they live here. (Wires that send raw frames will bring their own,
// with real MAC addresses and without the checksum work.)
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "trace/packet_info.h"

namespace weft::trace {

// Replaces `frame` by Ethernet, IPv4 or IPv6, and UDP headers with right lengths and checksums, then the
// payload.
void build_frame(const PacketInfo& info, std::span<const std::uint8_t> udp_payload,
                 std::vector<std::uint8_t>& frame);

}  // namespace weft::trace
