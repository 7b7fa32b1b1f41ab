// What an attacker on the wire makes of packets: one field at a time becomes something else, and the result
// is what a decoder would hand on.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "core/base/check.h"
#include "core/wire/codec.h"
#include "core/wire/packet.h"
#include "tests/fuzz/input.h"

namespace weft::fuzz {

inline std::uint8_t any_opcode(Input& in) {
  const std::uint32_t which = in.below(8);
  if (which == 0) return in.u8();
  if (which == 2) return static_cast<std::uint8_t>(0x20U + in.below(12));  // UC
  if (which == 3) return in.flag() ? wire::kUdSendOnly : wire::kUdSendOnlyImm;
  return which == 1 ? std::uint8_t{wire::kCnp} : static_cast<std::uint8_t>(in.below(0x19));
}

// One field of a packet becomes something else.
inline void alter(wire::RxPacket& p, Input& in) {
  wire::Header& h = p.header;
  const std::uint32_t nudge = in.u8();
  switch (in.below(18)) {
    case 0:
      h.psn.v += nudge;
      break;
    case 1:
      h.psn.v -= nudge;
      break;
    case 2:
      h.psn.v = in.u32();
      break;
    case 3:
      h.opcode = any_opcode(in);
      break;
    case 4:
      h.syndrome = in.u8();
      break;
    case 5:
      h.va += static_cast<std::uint64_t>(nudge) << in.below(64);
      break;
    case 6:
      h.dma_len = in.flag() ? in.u32() : h.dma_len + nudge;
      break;
    case 7:
      h.rkey.v ^= 1U << in.below(32);
      break;
    case 8:
      h.sn += in.flag() ? nudge : 0U - nudge;
      break;
    case 9:
      h.psn_offset = in.flag() ? in.u32() : h.psn_offset + nudge;
      break;
    case 10:
      h.srx_msn += in.flag() ? nudge : 0U - nudge;
      break;
    case 11:
      h.imm = in.u32();
      break;
    case 12:
      h.mode = static_cast<wire::Mode>(in.below(wire::kModeCount));
      break;
    case 13:
      h.a ^= in.u64();
      break;
    case 14:
      h.b = in.u64();
      break;
    case 15:
      h.ext_flags = in.u8();
      break;
    case 16:
      p.payload = in.flag() ? in.below(1100) : p.payload + nudge;
      break;
    default:
      h.bits = in.u8() & 31U;
      if (in.below(4) == 0) h.pkey = in.u8();
      p.tos = in.u8();
      h.dest_qp = {in.u8()};
  }
}

// The packet as a decoder would hand it on; false when it would not.
inline bool as_decoded(wire::RxPacket& p) {
  wire::Header& h = p.header;
  const wire::ExtLayout& layout = wire::ext_layout(h.opcode, h.mode, h.syndrome);
  if (!layout.known) return false;
  if (!layout.payload) p.payload = 0;
  p.payload = std::min(p.payload, 4096U);
  std::uint8_t bytes[wire::kMaxHeaderBytes + 4096 + 8] = {};
  const std::size_t n = wire::encode(h, p.payload, bytes);
  wire::Decoded d;
  wire::DecodeError error{};
  CHECK(wire::decode(std::span(bytes).first(n + p.payload + wire::pad_bytes(p.payload) + wire::kIcrcBytes), d,
                     error));
  h = d.header;
  return true;
}

}  // namespace weft::fuzz
