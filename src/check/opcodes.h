// What an opcode is (docs/protocol/packets.md#opcodes), as the observers read it.
#pragma once
#include <cstdint>

#include "core/wire/header.h"

namespace weft::check {

inline bool is_send(std::uint8_t op) {
  return op <= wire::kSendOnlyImm || op == wire::kSendLastInvalidate || op == wire::kSendOnlyInvalidate;
}
inline bool is_write(std::uint8_t op) { return op >= wire::kWriteFirst && op <= wire::kWriteOnlyImm; }
inline bool starts(std::uint8_t op) {
  return op == wire::kSendFirst || op == wire::kSendOnly || op == wire::kSendOnlyImm ||
         op == wire::kSendOnlyInvalidate || op == wire::kWriteFirst || op == wire::kWriteOnly ||
         op == wire::kWriteOnlyImm;
}
inline bool ends(std::uint8_t op) {
  return op == wire::kSendLast || op == wire::kSendLastImm || op == wire::kSendOnly ||
         op == wire::kSendOnlyImm || op == wire::kSendLastInvalidate || op == wire::kSendOnlyInvalidate ||
         op == wire::kWriteLast || op == wire::kWriteLastImm || op == wire::kWriteOnly ||
         op == wire::kWriteOnlyImm;
}
inline bool has_imm(std::uint8_t op) {
  return op == wire::kSendLastImm || op == wire::kSendOnlyImm || op == wire::kWriteLastImm ||
         op == wire::kWriteOnlyImm;
}
inline std::uint32_t packets_of(std::uint32_t length, std::uint32_t mtu) {
  return length == 0 ? 1 : (length + mtu - 1) / mtu;
}
inline bool is_atomic(std::uint8_t op) { return op == wire::kCompareSwap || op == wire::kFetchAdd; }
// Requests that are answered with data: READs and atomics.
inline bool is_answered(std::uint8_t op) { return op == wire::kReadRequest || is_atomic(op); }
// Responses that a request asks for.
inline std::uint32_t answers_to(const wire::Header& h, std::uint32_t mtu) {
  return is_atomic(h.opcode) ? 1 : packets_of(h.dma_len, mtu);
}
inline std::uint8_t response_opcode(std::uint32_t index, std::uint32_t count) {
  if (count == 1) return wire::kReadResponseOnly;
  if (index == 0) return wire::kReadResponseFirst;
  return index + 1 == count ? wire::kReadResponseLast : wire::kReadResponseMiddle;
}

// Equal but for AckReq, which a sender may set on any copy.
inline bool same_packet(wire::Header a, wire::Header b) {
  a.bits = static_cast<std::uint8_t>(a.bits & ~wire::kAckReq);
  b.bits = static_cast<std::uint8_t>(b.bits & ~wire::kAckReq);
  return a == b;
}

}  // namespace weft::check
