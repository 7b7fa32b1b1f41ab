// The IP header around a RoCEv2 packet, and the 40 bytes that a receiver of datagrams finds in front of them
// (docs/protocol/unreliable.md#what-a-datagrams-receiver-finds).
//
//   IPv6   | IPv6 header, 40                     |
//   IPv4   | zero, 20          | IPv4 header, 20 |
//
// verbs calls these 40 bytes the GRH; programs build address handles from them and take a GRH for an IPv4 one
// only if its header checksum is right, so it is. A socket hides the header that really came: the world
// writes it again from what it knows. The don't-fragment bit is set, the version of IP follows from the
// addresses.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/wire/packet.h"

namespace weft::wire {

inline constexpr std::size_t kIpv4Bytes = 20;
inline constexpr std::size_t kIpv6Bytes = 40;
inline constexpr std::size_t kGrhBytes = 40;
inline constexpr std::size_t kUdpBytes = 8;
inline constexpr std::uint8_t kUdpProtocol = 17;

struct IpHeader {
  Address source;
  Address destination;  // both v4-mapped: IPv4
  std::uint16_t udp_length = 0;
  std::uint16_t identification = 0;  // IPv4
  std::uint8_t tos = 0;              // DSCP and ECN; IPv6 calls it the traffic class
  std::uint8_t ttl = 64;             // hop limit
  std::uint32_t flow_label = 0;      // IPv6, 20 bits
  constexpr bool operator==(const IpHeader&) const = default;
};

constexpr bool is_v4_mapped(const Address& a) {
  for (std::size_t i = 0; i < 10; ++i) {
    if (a.bytes[i] != 0) return false;
  }
  return a.bytes[10] == 0xFF && a.bytes[11] == 0xFF;
}

// A group of hosts: 224.0.0.0/4, mapped, or ff00::/8.
constexpr bool is_group(const Address& a) {
  return is_v4_mapped(a) ? (a.bytes[12] & 0xF0U) == 0xE0U : a.bytes[0] == 0xFF;
}

// Returns the header's length, 20 or 40; `out` must hold it.
std::size_t write_ip_header(const IpHeader& h, std::span<std::uint8_t> out);

void write_grh(const IpHeader& h, std::span<std::uint8_t, kGrhBytes> out);
// False when the bytes hold neither header. An IPv4 header counts only with a right checksum.
bool read_grh(std::span<const std::uint8_t, kGrhBytes> grh, IpHeader& out);

// One's-complement sum of 16-bit words (RFC 1071); an odd last byte counts as its word's upper half.
std::uint64_t internet_sum(std::span<const std::uint8_t> bytes, std::uint64_t sum = 0);
// The complement of the folded sum: zero over a header that carries a right checksum.
std::uint16_t internet_checksum(std::uint64_t sum);

}  // namespace weft::wire
