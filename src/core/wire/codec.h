// Bytes <-> Header, from BTH to the last extension header (wire-reference §1.3-1.5, §5.4-5.5).
//
// Total functions: any input gives a value or a reason, nothing is read or written outside the
// span, nothing allocates. The table `ext_layout` names the extension headers of every (opcode,
// mode); decode and encode both walk it, so the two cannot disagree.
//
// The bytes handled here are the UDP payload: BTH, extension headers, payload, pad, ICRC. Payload
// and pad are the caller's; `Decoded` says where they lie.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/wire/header.h"

namespace weft::wire {

inline constexpr std::size_t kBthBytes = 12;
inline constexpr std::size_t kIcrcBytes = 4;
inline constexpr std::size_t kMaxHeaderBytes = 12 + 8 + 28 + 8;  // BTH + SRX + AtomicETH, rounded up
inline constexpr std::uint16_t kUdpPort = 4791;

// One extension header (wire-reference §1.5, §5.4, §5.5).
enum class Ext : std::uint8_t { kNone, kReth, kDeth, kAeth, kAtomicEth, kAtomicAck, kImm, kIeth, kSnx, kRsn, kSack, kSrx, kWax, kEcx, kCnpPad };

struct ExtLayout {
  bool known = false;         // the opcode exists in this mode
  std::uint8_t bytes = 0;     // all extension headers together (SACK excluded when absent, see below)
  Ext ext[4] = {Ext::kNone, Ext::kNone, Ext::kNone, Ext::kNone};
};

// Extension headers of an opcode in a mode, in wire order. IRN's ACK carries a SACK exactly when its
// syndrome is a sequence NAK; `with_sack` selects that form and is ignored for everything else.
ExtLayout ext_layout(std::uint8_t opcode, Mode mode, bool with_sack);

// BTH + extension headers of this header, in bytes.
std::size_t header_bytes(const Header& h);

enum class DecodeError : std::uint8_t { kTooShort, kUnknownOpcode, kUnknownMode, kBadPad };

struct Decoded {
  Header header;
  std::uint32_t payload_offset = 0;  // from the start of the UDP payload
  std::uint32_t payload = 0;         // bytes, pad and ICRC excluded
};

// `udp_payload` includes the ICRC. On failure `error` tells why and the result is false.
bool decode(std::span<const std::uint8_t> udp_payload, Decoded& out, DecodeError& error);

// Writes BTH and extension headers; returns their length. `out` must hold kMaxHeaderBytes. The pad
// count is derived from `payload`.
std::size_t encode(const Header& h, std::uint32_t payload, std::span<std::uint8_t> out);

// Pad bytes that follow a payload of this length.
constexpr std::uint32_t pad_bytes(std::uint32_t payload) { return (0U - payload) & 3U; }

}  // namespace weft::wire
