// What a NIC does with a packet, whatever its service: the operations of UC and UD are RC's, with other bits
// in front.
#pragma once
#include <cstdint>

#include "core/transport/rc/opcodes.h"

namespace weft::sim {

constexpr const RcOpcode& operation(std::uint8_t opcode) {
  const std::uint8_t service = opcode & 0xE0U;
  const bool unreliable = service == kUcOpcodes || service == (wire::kUdSendOnly & 0xE0U);
  return rc_opcode(unreliable ? opcode & 0x1FU : opcode);
}
static_assert(operation(wire::kUdSendOnly).kind == RcKind::kSend && operation(wire::kUdSendOnly).last);
static_assert(operation(wire::kCnp).kind == RcKind::kUnknown);

// The last packet of a message, or the only one of a request.
constexpr bool ends_request(const RcOpcode& op) { return op.kind != RcKind::kResponse && op.last; }

// The packet of a message with which it takes its receive.
constexpr bool takes_receive(const RcOpcode& op) {
  return op.kind == RcKind::kSend ? op.first : op.kind == RcKind::kWrite && op.last && op.imm;
}

}  // namespace weft::sim
