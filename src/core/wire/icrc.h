// The invariant CRC of RoCEv2 (docs/protocol/icrc.md): CRC-32 over a dummy LRH, the masked IP, UDP and
// BTH headers, and everything that follows up to the pad. ISA-L folds it with carry-less multiplication.
//
// The live world computes over frames whose IP header it never sees, or holds in pieces, so the
// interface is a running register, four bytes and freely copied:
//
//   Icrc base(ip);                        LRH, IP, UDP: once per burst of equal frames
//   Icrc i = base.with_identification(k); two table look-ups per packet of a GSO burst
//   i.packet(bth_to_pad);                 the rest in one piece, or bth(), update(), update() in several
//   store_le32(at, i.value());            least significant byte first on the wire
//
// Considered instead: folding of our own for short packets, where a call of ISA-L costs about 20 ns however
// few its bytes. The kept register already leaves one call per packet, 15 ns for a 64-byte WRITE when packets
// are independent (`./dev bench wire`), and a library that Intel keeps beats code that we would.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/wire/packet.h"

namespace weft::wire {

// The IP and UDP fields that the ICRC covers and that are not constant.
struct IpFacts {
  Address source;
  Address destination;
  std::uint16_t source_port = 0;
  std::uint16_t udp_length = 0;      // 8 + UDP payload including ICRC
  std::uint16_t identification = 0;  // IPv4 only (docs/protocol/icrc.md#the-ipv4-identification)
  bool dont_fragment = true;         // IPv4 only
  bool is_v4() const;                // both addresses are ::ffff:a.b.c.d
};

class Icrc {
 public:
  // Covers LRH, IP, UDP. The next bytes must be the BTH.
  explicit Icrc(const IpFacts& ip);
  // A raw frame's own IP and UDP headers, as captured: `ip_and_udp` starts at the IP header and may go on
  // past the UDP header. Too short a span is covered as far as it goes and matches no ICRC.
  explicit Icrc(std::span<const std::uint8_t> ip_and_udp);

  // The same IP and UDP headers with this IPv4 identification instead of 0. Only before the BTH.
  Icrc with_identification(std::uint16_t identification) const;

  // BTH, extension headers, payload and pad in one piece; BTH byte 4 is masked here. What is shorter than a
  // BTH is no packet: covered unmasked, it matches no ICRC.
  void packet(std::span<const std::uint8_t> bth_to_pad);
  // The same in pieces: the 12 bytes of the BTH as they are on the wire, then all others.
  void bth(std::span<const std::uint8_t, 12> bytes);
  void update(std::span<const std::uint8_t> bytes);

  std::uint32_t value() const { return ~register_; }  // what the wire carries, as a little-endian number

 private:
  std::uint32_t register_;
};

// How many bytes the ICRC covers behind the identification field of an IPv4 header without options.
constexpr std::uint32_t bytes_after_identification(std::uint16_t udp_length) { return 14U + udp_length - 4U; }

// The 16-bit IPv4 identification that makes a received ICRC right, given the value computed with
// identification 0 and the number of bytes that follow the identification field under the CRC.
// Returns false when no identification explains the difference, or no IP packet is that long. One random
// corruption in 65 536 passes for an identification (docs/protocol/icrc.md#the-ipv4-identification).
bool solve_identification(std::uint32_t computed_with_zero, std::uint32_t received,
                          std::uint32_t bytes_after_field, std::uint16_t& identification);

}  // namespace weft::wire
