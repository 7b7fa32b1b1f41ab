// What an RC opcode is, as a table: one look-up per packet. The last of its 33 rows is for every other
// number.
#pragma once
#include <array>
#include <cstdint>

#include "core/verbs/types.h"
#include "core/wire/header.h"

namespace weft {

enum class RcKind : std::uint8_t { kUnknown, kSend, kWrite, kRead, kAtomic, kResponse, kAck, kReadAck };
// Requests that bring something. A READ's request acknowledges answers, too; the other packets answer ours.
constexpr bool rc_brings(RcKind kind) { return kind == RcKind::kSend || kind == RcKind::kWrite; }

struct RcOpcode {
  RcKind kind = RcKind::kUnknown;
  bool first = false;  // First or Only
  bool last = false;   // Last or Only
  bool imm = false;
  bool invalidate = false;
  bool atomic = false;  // of responses: an atomic's
};

constexpr std::array<RcOpcode, 33> make_rc_opcodes() {
  std::array<RcOpcode, 33> t{};
  t[wire::kSendFirst] = {RcKind::kSend, true, false, false};
  t[wire::kSendMiddle] = {RcKind::kSend, false, false, false};
  t[wire::kSendLast] = {RcKind::kSend, false, true, false};
  t[wire::kSendLastImm] = {RcKind::kSend, false, true, true};
  t[wire::kSendOnly] = {RcKind::kSend, true, true, false};
  t[wire::kSendOnlyImm] = {RcKind::kSend, true, true, true};
  t[wire::kWriteFirst] = {RcKind::kWrite, true, false, false};
  t[wire::kWriteMiddle] = {RcKind::kWrite, false, false, false};
  t[wire::kWriteLast] = {RcKind::kWrite, false, true, false};
  t[wire::kWriteLastImm] = {RcKind::kWrite, false, true, true};
  t[wire::kWriteOnly] = {RcKind::kWrite, true, true, false};
  t[wire::kWriteOnlyImm] = {RcKind::kWrite, true, true, true};
  t[wire::kReadRequest] = {RcKind::kRead, true, true, false};
  t[wire::kReadResponseFirst] = {RcKind::kResponse, true, false, false};
  t[wire::kReadResponseMiddle] = {RcKind::kResponse, false, false, false};
  t[wire::kReadResponseLast] = {RcKind::kResponse, false, true, false};
  t[wire::kReadResponseOnly] = {RcKind::kResponse, true, true, false};
  t[wire::kSendLastInvalidate] = {RcKind::kSend, false, true, false, true};
  t[wire::kSendOnlyInvalidate] = {RcKind::kSend, true, true, false, true};
  t[wire::kCompareSwap] = {RcKind::kAtomic, true, true, false};
  t[wire::kFetchAdd] = {RcKind::kAtomic, true, true, false};
  t[wire::kAtomicAcknowledge] = {RcKind::kResponse, true, true, false, false, true};
  t[wire::kAcknowledge] = {RcKind::kAck, false, false, false};
  t[wire::kReadAcknowledge] = {RcKind::kReadAck, false, false, false};
  return t;
}
inline constexpr std::array<RcOpcode, 33> kRcOpcodes = make_rc_opcodes();

constexpr const RcOpcode& rc_opcode(std::uint8_t opcode) { return kRcOpcodes[opcode < 32 ? opcode : 32]; }

inline constexpr std::uint8_t kUcOpcodes = 0x20;  // UC's are RC's with this bit

// What a WorkRequest's answer is: READs and atomics are answered by responses, in every mode.
constexpr bool is_atomic(WrOpcode op) { return op == WrOpcode::kCompareSwap || op == WrOpcode::kFetchAdd; }
constexpr bool is_local(WrOpcode op) {
  return op == WrOpcode::kBindWindow || op == WrOpcode::kLocalInvalidate;
}
constexpr bool has_response(WrOpcode op) { return op == WrOpcode::kRead || is_atomic(op); }
// What can be asked of each service (ibv_post_send): without acknowledgements nothing is answered, UC has no
// opcode for SEND with invalidate, and a datagram is a SEND.
constexpr bool service_offers(QpType type, WrOpcode op) {
  if (type == QpType::kUd) return op == WrOpcode::kSend || op == WrOpcode::kSendImm;
  const bool answered = has_response(op) || op == WrOpcode::kSendInvalidate;
  return type == QpType::kRc || !answered;
}

// Opcode of packet k of n of a SEND or WRITE.
constexpr std::uint8_t send_opcode(bool first, bool last, bool imm, bool invalidate) {
  if (last && invalidate) return first ? wire::kSendOnlyInvalidate : wire::kSendLastInvalidate;
  if (first && last) return imm ? wire::kSendOnlyImm : wire::kSendOnly;
  if (first) return wire::kSendFirst;
  if (last) return imm ? wire::kSendLastImm : wire::kSendLast;
  return wire::kSendMiddle;
}
constexpr std::uint8_t write_opcode(bool first, bool last, bool imm) {
  if (first && last) return imm ? wire::kWriteOnlyImm : wire::kWriteOnly;
  if (first) return wire::kWriteFirst;
  if (last) return imm ? wire::kWriteLastImm : wire::kWriteLast;
  return wire::kWriteMiddle;
}
constexpr std::uint8_t response_opcode(bool first, bool last) {
  if (first && last) return wire::kReadResponseOnly;
  if (first) return wire::kReadResponseFirst;
  return last ? wire::kReadResponseLast : wire::kReadResponseMiddle;
}

}  // namespace weft
