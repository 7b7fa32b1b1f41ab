// Binding and invalidating memory windows (docs/protocol/verbs.md#memory-windows): requests without packets.
//
// They take no sequence number (`packets` is 0) and run when the sending cursor reaches them, in the
// queue's order and behind a fence if they ask for one; once, however often the cursor is rewound. They
// complete in order with the rest: when everything before them is acknowledged.
#include "core/transport/engine.h"
#include "core/transport/rc/failure.h"
#include "core/transport/rc/opcodes.h"
#include "core/transport/rc/requester.h"

namespace weft {
namespace {

bool execute(Engine& e, const QueuePair& q, const ColdQueuePair& c, const SendWqe& w, std::uint16_t slot) {
  if (w.opcode == WrOpcode::kLocalInvalidate) return e.keys.invalidate({w.imm}, q.qpn);
  const SendOperands& o = c.sq_operands[slot & c.sq_mask];
  WindowBind bind;
  bind.window = w.rkey;
  bind.region = {w.imm};
  bind.address = w.remote_address;
  bind.length = o.compare_or_add;
  bind.access = static_cast<std::uint8_t>(o.swap);
  return e.keys.bind(bind, q.pd, q.qpn);
}

}  // namespace

void rc_run_local(Engine& e, QueuePair& q, Time now) {
  ColdQueuePair& c = e.cold(q);
  if (q.state != QpState::kRts || (q.rx_flags & kSendStopped) != 0) return;
  while (q.sq_send != q.sq_tail && q.send_offset == 0) {
    SendWqe& w = e.send_wqe(c, q.sq_send);
    if (!is_local(w.opcode)) break;
    if (!w.executed) {
      if ((w.flags & kSendFence) != 0 && q.reads_outstanding > 0) break;
      if (!execute(e, q, c, w, q.sq_send)) {
        rc_stop_sending(e, q, WcStatus::kBindError, q.sq_send, now);  // of any operation on windows
        return;
      }
      w.executed = true;
    }
    ++q.sq_send;
  }
  while (q.sq_acked != q.sq_send) {
    const SendWqe& w = e.send_wqe(c, q.sq_acked);
    if (!is_local(w.opcode) || w.first > q.requests_out.una) break;
    ++q.sq_acked;
  }
}

}  // namespace weft
