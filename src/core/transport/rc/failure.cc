// Error states (docs/protocol/verbs.md#errors-and-flushing): the failing request completes with its status,
// everything else is flushed in posting order, and nothing the queue pair held of shared pools stays behind.
#include "core/transport/rc/failure.h"

#include <utility>

#include "core/transport/congestion.h"
#include "core/transport/engine.h"
#include "core/transport/rc/acknowledge.h"
#include "core/transport/rc/control.h"
#include "core/transport/uc/requester.h"

namespace weft {
namespace {

void flush_sends(Engine& e, QueuePair& q, WcStatus status, std::uint16_t slot) {
  ColdQueuePair& c = e.cold(q);
  while (q.sq_head != q.sq_tail) {
    const SendWqe& w = e.send_wqe(c, q.sq_head);
    Completion done;
    done.wr_id = w.wr_id;
    done.status = q.sq_head == slot ? status : WcStatus::kFlushed;
    done.qpn = q.qpn;
    e.complete(c.init.send_cq, done, false);
    ++q.sq_head;
  }
  q.sq_acked = q.sq_send = q.sq_head;
  q.send_offset = 0;
}

void flush_receives(Engine& e, QueuePair& q) {
  ColdQueuePair& c = e.cold(q);
  while (q.rq_head != q.rq_tail) {
    Completion done;
    done.wr_id = e.recv_wqe(c, q.rq_head).wr_id;
    done.status = WcStatus::kFlushed;
    done.opcode = WcOpcode::kReceive;
    done.qpn = q.qpn;
    e.complete(c.init.recv_cq, done, false);
    ++q.rq_head;
  }
}

void enter(Engine& e, QueuePair& q, WcStatus status, std::uint16_t slot) {
  if (q.state == QpState::kErr) return;
  q.state = QpState::kErr;
  rc_release(e, q);
  flush_sends(e, q, status, slot);
  flush_receives(e, q);
  if (e.cold(q).init.srq != kNoSrq)
    e.raise({DeviceEventKind::kLastWqeReached, {}, q.qpn, e.cold(q).init.srq});
}

}  // namespace

void rc_release(Engine& e, QueuePair& q) {
  if (q.type != QpType::kRc) return uc_release(e, q);
  if (q.path.v >= e.paths.size()) return;  // it was never connected, nor was any other
  ColdQueuePair& c = e.cold(q);
  release_block(e.pool, q.requests.block);
  release_block(e.pool, q.requests_out.block);
  release_block(e.pool, q.served.block);
  release_block(e.pool, c.responses.block);
  q.requests.held = 0;
  c.responses.held = 0;
  Path& path = e.path_of(q);
  std::uint64_t reads = 0;
  if (!q.tx_dialect().response_stream) {
    while (c.issued_head != c.issued_tail) {
      const ReadIssued& r = c.issued[c.issued_head++ & c.issued_mask];
      reads += (r.end - r.first) * q.mtu;
    }
  }
  c.issued_head = c.issued_tail;
  q.reads_outstanding = 0;
  path.reads -= reads;
  for (SenderAccount* a : {&c.requests_account, &c.responses_account}) {
    path.discharge(a->sent - a->settled);
    a->settled = a->sent;
    a->timed_at = kNever;
  }
  // Streams keep their numbers but nothing is outstanding any more.
  q.requests_out.start(q.requests_out.max);
  q.served.start(q.served.max);
  c.response_next = q.served.max;
  c.served_head = c.served_tail;
  q.responses_owed = 0;
  c.held_syndrome = 0;
  q.flags &= static_cast<std::uint8_t>(~(kRnrWaiting | kAckAfterReads | kReadsWaiting));
  q.rx_flags &= static_cast<std::uint8_t>(~(kSendStopped | kResendRequest));
  e.deadlines.remove(e.index_of(q));
  pacing_leave(e, q);
  e.leave_path(q);  // credit that it was called for, or stood in front of, is the next one's
}

void rc_fail(Engine& e, QueuePair& q, WcStatus status, std::uint16_t slot, Time) {
  enter(e, q, status, slot);
}

// In irn a later request may fail while READs before it still wait for their answers: they complete first.
void rc_fail_in_order(Engine& e, QueuePair& q, WcStatus status, std::uint16_t slot, Time now) {
  if (slot == q.sq_head || !q.tx_dialect().response_stream) {
    rc_fail(e, q, status, slot, now);
    return;
  }
  const ColdQueuePair& c = e.cold(q);
  const bool stopped = (q.rx_flags & kSendStopped) != 0;
  if (stopped && static_cast<std::int16_t>(c.stop_slot - slot) <= 0) return;  // an earlier one has failed
  q.rx_flags |= kSendStopped;
  e.cold(q).stop_status = status;
  e.cold(q).stop_slot = slot;
}

void rc_enter_error(Engine& e, QueuePair& q) {
  if (q.state == QpState::kErr) return;
  enter(e, q, WcStatus::kFlushed, q.sq_tail);
}

// Nothing is acknowledged any more: its user may never hear of it.
void fail_overrun(Engine& e) {
  const auto overran = [&](CqId cq) { return e.cqs[cq.v]->overran(); };
  while (std::exchange(e.overrun, false)) {  // flushing may fill another one
    for (std::size_t i = 0; i < e.colds.size(); ++i) {
      if (e.colds[i] == nullptr) continue;
      QueuePair& q = e.qp(static_cast<std::uint32_t>(i));
      if (!q.has(kInUse) || q.state == QpState::kReset || q.state == QpState::kErr) continue;
      if (!overran(e.colds[i]->init.send_cq) && !overran(e.colds[i]->init.recv_cq)) continue;
      rc_forget_control(e, q);
      e.raise({DeviceEventKind::kQpFatal, {}, q.qpn});
      rc_enter_error(e, q);
    }
  }
}

void rc_fail_send_queue(Engine& e, QueuePair& q, WcStatus status) {
  q.state = QpState::kSqe;
  q.requests_out.una = q.requests_out.nxt;
  q.sq_acked = q.sq_send;
  rc_complete_requests(e, q, {});  // all that was posted before it has left
  flush_sends(e, q, status, q.sq_head);
  e.cold(q).post_seq = q.requests_out.nxt;
  e.leave_path(q);
}

void rc_stop_sending(Engine& e, QueuePair& q, WcStatus status, std::uint16_t slot, Time now) {
  if (q.type != QpType::kRc) return rc_fail_send_queue(e, q, status);
  if (slot == q.sq_head || slot != q.sq_send) {
    rc_fail(e, q, status, slot, now);
    return;
  }
  q.rx_flags |= kSendStopped;
  e.cold(q).stop_status = status;
  e.cold(q).stop_slot = slot;
}

}  // namespace weft
