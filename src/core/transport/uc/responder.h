// Messages in over UC (docs/protocol/unreliable.md#lost-packets): what a packet does once it is accepted is
// what it does in roce mode (rc/responder.h), but nothing is ever answered. A packet that is missing, or that
// breaks a rule, ends its message: the rest of it is dropped until the next First or Only, whose number is
// then the new start. A SEND that ends early leaves its receive to the next one.
//
// The standard takes any First or Only for new, whatever its number, and so delivers a packet twice that the
// network duplicated, and an overtaken one out of order. Here numbers that were passed lately are dropped;
// those that lie further back count as far ahead, for an outage may be that long.
#pragma once
#include "core/transport/engine.h"
#include "core/transport/rc/opcodes.h"
#include "core/transport/rc/responder.h"

namespace weft {

inline constexpr std::uint32_t kUcStale = 1U << 16U;  // packets

void uc_refuse(Engine& e, QueuePair& q, Placed v);

template <Sink S>
void uc_on_packet(Engine& e, QueuePair& q, std::uint32_t index, const wire::RxPacket& p, S& sink) {
  const wire::Header& h = p.header;
  const RcOpcode& op = rc_opcode(static_cast<std::uint8_t>(h.opcode ^ kUcOpcodes));
  if ((op.kind != RcKind::kSend && op.kind != RcKind::kWrite) || op.invalidate || h.mode != wire::Mode::kRoce)
    return e.counters.add(Counter::drop_opcode);
  const std::uint32_t ahead = (h.psn.v - q.requests.expected.wire().v) & kPsnMask;
  if (ahead > kPsnMask - kUcStale) return e.counters.add(Counter::rx_duplicate);
  e.established(q);
  const Seq next = q.requests.expected + ahead + 1;
  if (ahead != 0 || op.first) q.inbound = Inbound::kNone;
  q.requests.expected = next - 1;
  Placed v = Placed::kSilent;
  if (op.first || q.inbound != Inbound::kNone) v = rc_place<false>(e, q, p, op, next - 1, index, sink);
  q.requests.expected = next;
  if (v != Placed::kDone) {
    q.inbound = Inbound::kNone;
    return uc_refuse(e, q, v);
  }
  e.counters.add(Counter::rx_in_order);
  if (op.last) rc_complete_receives(e, q, q.requests.expected);
}

}  // namespace weft
