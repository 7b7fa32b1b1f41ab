// One decoded packet of any kind: BTH, the extension headers of RoCEv2, and those of the IRN and
// SRNIC modes (docs/protocol/packets.md, irn.md, srnic.md). The simulator passes this struct itself; the live
// world encodes and decodes it at the socket. 64 bytes, one cache line.
//
// Which fields mean something follows from opcode and mode (and an ACK's syndrome): `ext_layout`
// (codec.h) is the one table that says so, and both encode and decode walk it. Fields that the layout
// does not name are zero after decode and ignored by encode.
//
//   bytes  0      8        16       24       32       40       48       56      64
//          |va    |a       |b       |psn,qpn |imm/msn,rkey |len,sn |off,srx |op..  |
//
// `a` and `b` are shared by headers that never meet in one packet:
//   atomics       a = swap_or_add           b = compare
//   ACK 0x11/0x18 a = sack/ePSN, echo MSN   b = echo offset
//   UD            a = Q_Key, source QP
#pragma once
#include <cstdint>
#include <string_view>

#include "core/base/ids.h"
#include "core/base/seq.h"
#include "core/base/units.h"

namespace weft::wire {

// Low five bits of an RC opcode; transport prefix in the top three (docs/protocol/packets.md#opcodes).
enum Opcode : std::uint8_t {
  kSendFirst = 0x00,
  kSendMiddle = 0x01,
  kSendLast = 0x02,
  kSendLastImm = 0x03,
  kSendOnly = 0x04,
  kSendOnlyImm = 0x05,
  kWriteFirst = 0x06,
  kWriteMiddle = 0x07,
  kWriteLast = 0x08,
  kWriteLastImm = 0x09,
  kWriteOnly = 0x0A,
  kWriteOnlyImm = 0x0B,
  kReadRequest = 0x0C,
  kReadResponseFirst = 0x0D,
  kReadResponseMiddle = 0x0E,
  kReadResponseLast = 0x0F,
  kReadResponseOnly = 0x10,
  kAcknowledge = 0x11,
  kAtomicAcknowledge = 0x12,
  kCompareSwap = 0x13,
  kFetchAdd = 0x14,
  kSendLastInvalidate = 0x16,
  kSendOnlyInvalidate = 0x17,
  kReadAcknowledge = 0x18,  // ours: (N)ACK of READ responses, IRN §5.2
  kUdSendOnly = 0x64,
  kUdSendOnlyImm = 0x65,
  kCnp = 0x81,
};

// BTH.TVer marks every packet with its half-connection's mode (docs/protocol/modes.md#the-mark).
enum class Mode : std::uint8_t { kRoce = 0, kIrn = 1, kSrnic = 2 };
inline constexpr std::uint8_t kModeCount = 3;
inline constexpr std::string_view kModeNames[kModeCount] = {"roce", "irn", "srnic"};
constexpr std::string_view mode_name(Mode m) { return kModeNames[static_cast<std::size_t>(m)]; }

// Bits of Header::bits.
enum : std::uint8_t {
  kSolicited = 0x01,
  kMigReq = 0x02,
  kAckReq = 0x04,
  kFecn = 0x08,
  kBecn = 0x10,
};

// Bits of Header::ext_flags (SACK and ECX flag byte).
enum : std::uint8_t {
  kCeEcho = 0x80,
  kSackNotKept = 0x40,  // IRN: the trigger was dropped, it is not selectively acknowledged
                        // (docs/protocol/irn.md#acks-and-nacks)
  kEcxOutOfOrder = 0x40,
  kEcxDuplicate = 0x20,
};

// AETH syndrome (docs/protocol/packets.md#syndromes).
enum : std::uint8_t {
  kSyndromeAck = 0x1F,  // credits not in use
  kSyndromeRnr = 0x20,  // | timer code
  kSyndromeNakSequence = 0x60,
  kSyndromeNakInvalid = 0x61,
  kSyndromeNakAccess = 0x62,
  kSyndromeNakOperation = 0x63,
};
// Types and codes that mean nothing yet.
constexpr bool is_reserved_syndrome(std::uint8_t syndrome) {
  return (syndrome & 0x60U) == 0x40 || syndrome > kSyndromeNakOperation;
}
// What the timer code of a receiver-not-ready NAK asks for
// (docs/protocol/constants.md#receiver-not-ready-delays).
constexpr Duration rnr_delay(std::uint8_t code) {
  constexpr std::int32_t kTens[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return microseconds(10) * kTens[code & 31U];
}

struct Header {
  std::uint64_t va = 0;       // RETH / WAX / AtomicETH address; AtomicAckETH original value
  std::uint64_t a = 0;        // see above
  std::uint64_t b = 0;        // see above
  WirePsn psn{};              // BTH
  Qpn dest_qp{};              // BTH
  std::uint32_t imm = 0;      // ImmDt: the four bytes as in memory (verbs' __be32); IETH: the key; AETH: MSN
  Key rkey{};                 // RETH / WAX / AtomicETH
  std::uint32_t dma_len = 0;  // RETH
  std::uint32_t sn = 0;       // IRN recv_WQE_SN or read_WQE_SN; SRNIC SSN
  std::uint32_t psn_offset = 0;  // IRN / SRNIC packet index inside the message
  std::uint32_t srx_msn = 0;     // SRNIC SRX.MSN
  std::uint8_t opcode = 0;
  std::uint8_t bits = 0;
  Mode mode = Mode::kRoce;
  std::uint8_t syndrome = 0;   // AETH
  std::uint8_t ext_flags = 0;  // SACK / ECX flags
  std::uint8_t reserved = 0;
  std::uint16_t pkey = 0xFFFF;

  constexpr bool operator==(const Header&) const = default;

  // Names for the shared words.
  constexpr std::uint32_t aeth_msn() const { return imm; }
  constexpr void set_aeth(std::uint8_t syn, std::uint32_t msn) {
    syndrome = syn;
    imm = msn & kPsnMask;
  }
  constexpr WirePsn sack_psn() const {
    return {static_cast<std::uint32_t>(a) & kPsnMask};
  }  // IRN trigger, SRNIC ePSN
  constexpr void set_sack(WirePsn p) { a = (a & ~0xFFFF'FFFFULL) | p.v; }
  constexpr std::uint32_t echo_msn() const { return static_cast<std::uint32_t>(a >> 32U); }
  constexpr void set_echo(std::uint32_t msn, std::uint32_t offset) {
    a = (a & 0xFFFF'FFFFULL) | (static_cast<std::uint64_t>(msn) << 32U);
    b = offset;
  }
  constexpr std::uint32_t echo_offset() const { return static_cast<std::uint32_t>(b); }
  // SRNIC NACKs, in the bytes of the ECX that are reserved otherwise: after set_echo. What they say is in
  // core/transport/loss/hole.h.
  constexpr void set_hole(std::uint8_t missing, std::uint8_t since) {
    b = (b & 0xFFFF'FFFFULL) | (static_cast<std::uint64_t>(missing) << 32U) |
        (static_cast<std::uint64_t>(since) << 40U);
  }
  constexpr std::uint8_t hole_missing() const { return static_cast<std::uint8_t>(b >> 32U); }
  constexpr std::uint8_t hole_since() const { return static_cast<std::uint8_t>(b >> 40U); }
  constexpr std::uint32_t qkey() const { return static_cast<std::uint32_t>(a); }
  constexpr Qpn src_qp() const { return {static_cast<std::uint32_t>(a >> 32U)}; }
  constexpr void set_deth(std::uint32_t qkey_value, Qpn src) {
    a = static_cast<std::uint64_t>(qkey_value) | (static_cast<std::uint64_t>(src.v) << 32U);
  }
};
static_assert(sizeof(Header) == 64);

}  // namespace weft::wire
