// decode and encode: the BTH by hand, then one case per extension header, in the order that the table
// of layout.cc gives. Each header is drawn at its reading case; the writing case mirrors it.
//
//   BTH  0       1            2       4             5         8           9
//        opcode  S M Pad TVer P_Key   F B rsv6      DestQP    A rsv7      PSN
//
// All lengths are checked before the first field is read, so the cases need no bounds of their own.
#include "core/wire/codec.h"

#include "core/base/check.h"
#include "core/wire/bytes.h"

namespace weft::wire {
namespace {

constexpr std::uint8_t kWireSolicited = 0x80;  // byte 1
constexpr std::uint8_t kWireMigReq = 0x40;
constexpr std::uint8_t kWireFecn = 0x80;  // byte 4
constexpr std::uint8_t kWireBecn = 0x40;
constexpr std::uint8_t kWireAckReq = 0x80;  // byte 8
constexpr std::uint8_t kSackFlags = kCeEcho | kSackNotKept;
constexpr std::uint8_t kEcxFlags = kCeEcho | kEcxOutOfOrder | kEcxDuplicate;

constexpr std::uint8_t move_bit(unsigned from_word, unsigned from, unsigned to) {
  return static_cast<std::uint8_t>((from_word & from) != 0 ? to : 0U);
}

void read_bth(const std::uint8_t* p, Header& h) {
  h.opcode = p[0];
  h.bits = static_cast<std::uint8_t>(move_bit(p[1], kWireSolicited, kSolicited) |
                                     move_bit(p[1], kWireMigReq, kMigReq) | move_bit(p[4], kWireFecn, kFecn) |
                                     move_bit(p[4], kWireBecn, kBecn) | move_bit(p[8], kWireAckReq, kAckReq));
  h.mode = static_cast<Mode>(p[1] & 0x0FU);
  h.pkey = load_be16(p + 2);
  h.dest_qp = {load_be24(p + 5)};
  h.psn = {load_be24(p + 9)};
}

void write_bth(std::uint8_t* p, const Header& h, std::uint32_t payload) {
  p[0] = h.opcode;
  p[1] = static_cast<std::uint8_t>(move_bit(h.bits, kSolicited, kWireSolicited) |
                                   move_bit(h.bits, kMigReq, kWireMigReq) | (pad_bytes(payload) << 4U) |
                                   static_cast<unsigned>(h.mode));
  store_be16(p + 2, h.pkey);
  p[4] = static_cast<std::uint8_t>(move_bit(h.bits, kFecn, kWireFecn) | move_bit(h.bits, kBecn, kWireBecn));
  store_be24(p + 5, h.dest_qp.v);
  p[8] = move_bit(h.bits, kAckReq, kWireAckReq);
  store_be24(p + 9, h.psn.v);
}

// Reads one extension header at `p`; returns its length.
std::size_t read_ext(Ext ext, const std::uint8_t* p, Header& h) {
  switch (ext) {
    case Ext::kNone:
      return 0;
    case Ext::kReth:  // VA 8 | R_Key 4 | DMALen 4
      h.va = load_be64(p);
      h.rkey = {load_be32(p + 8)};
      h.dma_len = load_be32(p + 12);
      return 16;
    case Ext::kDeth:  // Q_Key 4 | rsv 1 | source QP 3
      h.set_deth(load_be32(p), {load_be24(p + 5)});
      return 8;
    case Ext::kAeth:  // syndrome 1 | MSN 3
      h.set_aeth(p[0], load_be24(p + 1));
      return 4;
    case Ext::kAtomicEth:  // VA 8 | R_Key 4 | swap or add 8 | compare 8
      h.va = load_be64(p);
      h.rkey = {load_be32(p + 8)};
      h.a = load_be64(p + 12);
      h.b = load_be64(p + 20);
      return 28;
    case Ext::kAtomicAck:  // original value 8
      h.va = load_be64(p);
      return 8;
    case Ext::kImm:  // 4 raw bytes
      std::memcpy(&h.imm, p, sizeof h.imm);
      return 4;
    case Ext::kIeth:  // R_Key 4
      h.imm = load_be32(p);
      return 4;
    case Ext::kSnx:  // recv_WQE_SN 3 | PSN_OFFSET 3
      h.sn = load_be24(p);
      h.psn_offset = load_be24(p + 3);
      return 6;
    case Ext::kRsn:  // rsv 1 | read_WQE_SN 3
      h.sn = load_be24(p + 1);
      return 4;
    case Ext::kSack:  // flags 1 | trigger PSN 3
      h.ext_flags = p[0] & kSackFlags;
      h.set_sack({load_be24(p + 1)});
      return 4;
    case Ext::kSrx:  // MSN 3 | PSN_OFFSET 3 | SSN 2
      h.srx_msn = load_be24(p);
      h.psn_offset = load_be24(p + 3);
      h.sn = load_be16(p + 6);
      return 8;
    case Ext::kWax:  // VA 8 | R_Key 4
      h.va = load_be64(p);
      h.rkey = {load_be32(p + 8)};
      return 12;
    case Ext::kEcx:  // flags 1 | ePSN 3 | missing 1 | echoed MSN 3 | since 1 | echoed PSN_OFFSET 3
      h.ext_flags = p[0] & kEcxFlags;
      h.set_sack({load_be24(p + 1)});
      h.set_echo(load_be24(p + 5), load_be24(p + 9));
      h.set_hole(p[4], p[8]);
      return 12;
    case Ext::kCnpPad:
      return 16;
  }
  return 0;
}

std::size_t write_ext(Ext ext, std::uint8_t* p, const Header& h) {
  switch (ext) {
    case Ext::kNone:
      return 0;
    case Ext::kReth:
      store_be64(p, h.va);
      store_be32(p + 8, h.rkey.v);
      store_be32(p + 12, h.dma_len);
      return 16;
    case Ext::kDeth:
      store_be32(p, h.qkey());
      p[4] = 0;
      store_be24(p + 5, h.src_qp().v);
      return 8;
    case Ext::kAeth:
      p[0] = h.syndrome;
      store_be24(p + 1, h.aeth_msn());
      return 4;
    case Ext::kAtomicEth:
      store_be64(p, h.va);
      store_be32(p + 8, h.rkey.v);
      store_be64(p + 12, h.a);
      store_be64(p + 20, h.b);
      return 28;
    case Ext::kAtomicAck:
      store_be64(p, h.va);
      return 8;
    case Ext::kImm:
      std::memcpy(p, &h.imm, sizeof h.imm);
      return 4;
    case Ext::kIeth:
      store_be32(p, h.imm);
      return 4;
    case Ext::kSnx:
      store_be24(p, h.sn);
      store_be24(p + 3, h.psn_offset);
      return 6;
    case Ext::kRsn:
      p[0] = 0;
      store_be24(p + 1, h.sn);
      return 4;
    case Ext::kSack:
      p[0] = h.ext_flags & kSackFlags;
      store_be24(p + 1, h.sack_psn().v);
      return 4;
    case Ext::kSrx:
      store_be24(p, h.srx_msn);
      store_be24(p + 3, h.psn_offset);
      store_be16(p + 6, static_cast<std::uint16_t>(h.sn));
      return 8;
    case Ext::kWax:
      store_be64(p, h.va);
      store_be32(p + 8, h.rkey.v);
      return 12;
    case Ext::kEcx:
      p[0] = h.ext_flags & kEcxFlags;
      store_be24(p + 1, h.sack_psn().v);
      p[4] = h.hole_missing();
      store_be24(p + 5, h.echo_msn());
      p[8] = h.hole_since();
      store_be24(p + 9, h.echo_offset());
      return 12;
    case Ext::kCnpPad:
      std::memset(p, 0, 16);
      return 16;
  }
  return 0;
}

bool refuse(DecodeError why, DecodeError& error) {
  error = why;
  return false;
}

}  // namespace

bool decode(std::span<const std::uint8_t> udp_payload, Decoded& out, DecodeError& error) {
  const std::uint8_t* const p = udp_payload.data();
  const std::size_t size = udp_payload.size();
  if (size < kBthBytes + kIcrcBytes) return refuse(DecodeError::kTooShort, error);
  const std::uint8_t tver = p[1] & 0x0FU;
  if (tver >= kModeCount) return refuse(DecodeError::kUnknownMode, error);
  // Only an ACK's layout depends on its syndrome, and an ACK's AETH comes first. For any other opcode
  // this byte is something else and changes nothing; it exists, since an ICRC follows the BTH at least.
  const ExtLayout& layout = ext_layout(p[0], static_cast<Mode>(tver), p[kBthBytes]);
  if (!layout.known) return refuse(DecodeError::kUnknownOpcode, error);
  const std::size_t around = kBthBytes + layout.bytes + kIcrcBytes;
  if (size < around) return refuse(DecodeError::kTooShort, error);
  const auto body = static_cast<std::uint32_t>(size - around);
  const std::uint32_t pad = (p[1] >> 4U) & 3U;
  if (pad > body || pad != pad_bytes(body - pad)) return refuse(DecodeError::kBadPad, error);
  if (body != 0 && !layout.payload) return refuse(DecodeError::kUnexpectedPayload, error);

  out.header = Header{};
  read_bth(p, out.header);
  const std::uint8_t* at = p + kBthBytes;
  for (const Ext ext : layout.ext) {
    if (ext == Ext::kNone) break;
    at += read_ext(ext, at, out.header);
  }
  out.payload_offset = static_cast<std::uint32_t>(kBthBytes + layout.bytes);
  out.payload = body - pad;
  return true;
}

std::size_t encode(const Header& h, std::uint32_t payload, std::span<std::uint8_t> out) {
  const ExtLayout& layout = ext_layout(h.opcode, h.mode, h.syndrome);
  CHECK(layout.known);
  CHECK_OP(out.size(), >=, kBthBytes + layout.bytes);
  std::uint8_t* at = out.data();
  write_bth(at, h, payload);
  at += kBthBytes;
  for (const Ext ext : layout.ext) {
    if (ext == Ext::kNone) break;
    at += write_ext(ext, at, h);
  }
  return kBthBytes + layout.bytes;
}

}  // namespace weft::wire
