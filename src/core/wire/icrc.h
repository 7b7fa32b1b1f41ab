// The invariant CRC of RoCEv2 (wire-reference §1.8): CRC-32 over a dummy LRH, the masked IP, UDP and
// BTH headers, and everything that follows. ISA-L folds it with carry-less multiplication.
//
// The live world computes over a frame it holds in pieces, so the interface is a running register:
//   start(pseudo header) -> register after IP + UDP + masked BTH; update(bytes) ...; finish.
// Stored on the wire least significant byte first.
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
  std::uint16_t identification = 0;  // IPv4 only (wire-reference §1.9)
  bool dont_fragment = true;
  bool is_v4() const;
};

class Icrc {
 public:
  // Covers LRH, IP, UDP. The next bytes must be the BTH, through `bth`.
  explicit Icrc(const IpFacts& ip);
  // A raw frame's own IP and UDP headers, as captured: `ip_and_udp` starts at the IP header.
  explicit Icrc(std::span<const std::uint8_t> ip_and_udp);
  // The 12 bytes of the BTH as they are on the wire; byte 4 is masked here.
  void bth(std::span<const std::uint8_t, 12> bytes);
  void update(std::span<const std::uint8_t> bytes);
  std::uint32_t value() const;  // what the wire carries, as a little-endian number

 private:
  std::uint32_t register_ = 0;
};

// The 16-bit IPv4 identification that makes a received ICRC right, given the value computed with
// identification 0 and the number of bytes that follow the identification field under the CRC.
// Returns false when no identification explains the difference (CRC is linear; DESIGN §4.6).
bool solve_identification(std::uint32_t computed_with_zero, std::uint32_t received,
                          std::uint32_t bytes_after_field, std::uint16_t& identification);

}  // namespace weft::wire
