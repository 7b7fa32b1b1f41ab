// Bytes <-> Header, from BTH to the last extension header (docs/protocol/packets.md, irn.md, srnic.md).
//
// Total functions: any input gives a value or a reason, nothing is read or written outside the
// span, nothing allocates. One table (layout.cc) names the extension headers of every (opcode, mode);
// decode and encode both walk it, so the two cannot disagree.
//
// The bytes handled here are the UDP payload:
//
//   0     12            payload_offset             -4
//   | BTH | extensions  | payload        | pad 0-3 | ICRC |
//
// Payload, pad and ICRC are left to the caller; `Decoded` says where they lie. decode refuses packets that
// neither weft nor a standard NIC sends (a pad count that does not round the payload to four,
// a payload behind an opcode that has none); reserved bits are ignored on receipt and zero when sent.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/wire/header.h"

namespace weft::wire {

inline constexpr std::size_t kBthBytes = 12;
inline constexpr std::size_t kIcrcBytes = 4;
inline constexpr std::size_t kMaxHeaderBytes = 12 + 8 + 28 + 8;  // BTH + SRX + AtomicETH, rounded up
inline constexpr std::uint16_t kUdpPort = 4791;

// One extension header (packets.md#extension-headers). kCnpPad: the 16 zero bytes of a CNP.
enum class Ext : std::uint8_t {
  kNone,
  kReth,
  kDeth,
  kAeth,
  kAtomicEth,
  kAtomicAck,
  kImm,
  kIeth,
  kSnx,
  kRsn,
  kSack,
  kSrx,
  kWax,
  kEcx,
  kCnpPad
};

struct ExtLayout {
  bool known = false;                                             // the opcode exists in this mode
  bool payload = false;                                           // payload bytes may follow
  std::uint8_t bytes = 0;                                         // all extension headers together
  Ext ext[4] = {Ext::kNone, Ext::kNone, Ext::kNone, Ext::kNone};  // in wire order, kNone after the last
  constexpr bool operator==(const ExtLayout&) const = default;
};

// The extension headers of an opcode in a mode. The syndrome matters for 0x11 and 0x18 only: IRN adds
// a SACK to a sequence NAK and to nothing else; SRNIC adds its ECX to ACKs and sequence NAKs, while RNR
// and error NAKs look as in plain RoCE in every mode (docs/protocol/irn.md#acks-and-nacks).
const ExtLayout& ext_layout(std::uint8_t opcode, Mode mode, std::uint8_t syndrome = kSyndromeAck);

// "RC_SEND_FIRST" … "CNP"; empty for an opcode that weft does not speak.
std::string_view opcode_name(std::uint8_t opcode);

// Does an acknowledgement of this syndrome tell what arrived out of order (IRN) or echo its trigger (SRNIC)?
constexpr bool carries_report(Mode mode, std::uint8_t syndrome) {
  if (syndrome == kSyndromeNakSequence) return true;
  return mode == Mode::kSrnic && syndrome <= kSyndromeAck;
}

// [1: with its report, 0: without][opcode][the two bits of a mode], in bytes.
using HeaderBytes = std::array<std::array<std::array<std::uint8_t, 4>, 256>, 2>;
static_assert(kModeCount <= 4);
extern const HeaderBytes kHeaderBytes;

// BTH + extension headers of this header, in bytes. An unknown opcode has a BTH alone.
inline std::size_t header_bytes(const Header& h, bool with_report) {
  return kHeaderBytes[with_report ? 1 : 0][h.opcode][static_cast<std::size_t>(h.mode) & 3U];
}
inline std::size_t header_bytes(const Header& h) {
  return header_bytes(h, carries_report(h.mode, h.syndrome));
}

enum class DecodeError : std::uint8_t {
  kTooShort,           // ends before its headers and ICRC do
  kUnknownOpcode,      // reserved, or not of this mode
  kUnknownMode,        // BTH.TVer above 2
  kBadPad,             // PadCnt beyond the payload, or not the one that rounds it to four bytes
  kUnexpectedPayload,  // bytes behind an ACK, a READ request, an atomic or a CNP
};

struct Decoded {
  Header header;
  std::uint32_t payload_offset = 0;  // from the start of the UDP payload
  std::uint32_t payload = 0;         // bytes, pad and ICRC excluded
};

// `udp_payload` includes the ICRC. On failure the result is false, `error` tells why and `out` is untouched.
bool decode(std::span<const std::uint8_t> udp_payload, Decoded& out, DecodeError& error);

// Writes BTH and extension headers; returns their length. `out` must hold header_bytes(h), which never
// exceeds kMaxHeaderBytes. The pad count is derived from `payload`. Fields wider than their place on the
// wire lose their upper bits; an opcode unknown in its mode is a bug of the caller.
std::size_t encode(const Header& h, std::uint32_t payload, std::span<std::uint8_t> out);

// Pad bytes that follow a payload of this length.
constexpr std::uint32_t pad_bytes(std::uint32_t payload) { return (0U - payload) & 3U; }

// Length of a packet that is no acknowledgement, from BTH to pad: its ICRC is not in it.
inline std::uint32_t data_packet_bytes(const Header& h, std::uint32_t payload) {
  return kHeaderBytes[0][h.opcode][static_cast<std::size_t>(h.mode) & 3U] + payload + pad_bytes(payload);
}

}  // namespace weft::wire
