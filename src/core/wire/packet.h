// What crosses the boundary between a world and the transport: received packets in, bursts out.
//
//   RxPacket   a decoded header plus what the network told us: who sent it, its ToS and TTL, how many
//              payload bytes came with it. Payload bytes themselves stay with the world.
//   Burst      packets of one queue pair on one path with one frame size (the last may be shorter),
//              ready for one GSO send. It points into the Device's scratch space and is valid until
//              the next call into the Device; gathers are executed before that call.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "core/base/ids.h"
#include "core/wire/header.h"

namespace weft::wire {

// An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d, in network order: the bytes of a GID.
struct Address {
  std::array<std::uint8_t, 16> bytes{};
  // As two words: every packet's source is compared, and g++ calls memcmp for an array of bytes.
  constexpr bool operator==(const Address& o) const {
    using Words = std::array<std::uint64_t, 2>;
    const auto a = std::bit_cast<Words>(bytes);
    const auto b = std::bit_cast<Words>(o.bytes);
    return a[0] == b[0] && a[1] == b[1];
  }
  static constexpr Address v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    Address r;
    r.bytes[10] = r.bytes[11] = 0xFF;
    r.bytes[12] = a;
    r.bytes[13] = b;
    r.bytes[14] = c;
    r.bytes[15] = d;
    return r;
  }
};

struct RxPacket {
  Header header;
  Address source;
  std::uint32_t payload = 0;  // bytes, pad excluded
  std::uint8_t tos = 0;       // DSCP and ECN; CE is 3 in the low two bits
  std::uint8_t ttl = 64;
  const Address* group = nullptr;  // or a host's second address, that it was sent to; nullptr: the Device's
};
// The destination of datagrams to a group.
inline constexpr Qpn kEveryMember{0xFF'FFFF};
inline constexpr std::uint8_t kEcnMask = 0x03;
inline constexpr std::uint8_t kEcnEct0 = 0x02;  // switches may mark it
inline constexpr std::uint8_t kEcnCe = 0x03;
inline constexpr std::uint8_t kEct0 = 0x02;

// A piece of local memory: only the world can turn it into an address.
struct Segment {
  RegionId region;
  std::uint32_t length = 0;
  std::uint64_t offset = 0;  // from the start of the region
};
// Not a registered region: the inline area of the sending queue pair, offset in bytes.
inline constexpr RegionId kInlineRegion{0xFFFF'FFFF};

struct TxPacket {
  Header header;
  std::uint32_t payload = 0;        // bytes, pad excluded
  std::uint32_t first_segment = 0;  // into Burst::segments
  std::uint32_t segment_count = 0;
  bool retransmission = false;
};

struct Burst {
  Qpn qpn = kNoQpn;  // local queue pair
  PathId path{};
  std::span<const TxPacket> packets;
  std::span<const Segment> segments;
  bool ecn_capable = false;  // a controller listens to congestion marks: send these as ECT(0)
  bool empty() const { return packets.empty(); }
};

}  // namespace weft::wire
