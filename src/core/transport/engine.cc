#include "core/transport/engine.h"

#include <algorithm>
#include <bit>

#include "core/transport/rc/failure.h"
#include "core/transport/rc/read_responder.h"
#include "core/transport/rc/requester.h"
#include "core/transport/uc/requester.h"

namespace weft {

Engine::Engine(const DeviceConfig& c)
    : Tables(c),
      ready_queue(std::bit_ceil(c.max_qp), c.schedule),
      deadlines(c.max_qp),
      pacing(c.max_qp),
      control(c.control_ring),
      events(std::bit_ceil(c.max_cq * 2 + c.max_qp * 4 + c.max_srq)),
      burst_packets(c.burst_packets),
      burst_segments(static_cast<std::size_t>(c.burst_packets) * 4 + 64) {}

void Engine::settle_now() {
  if (unsettled != kSettled) {
    QueuePair& q = qp(unsettled);
    uc_settle(*this);
    reconcile(q);
  }
  if (overrun) fail_overrun(*this);
}

void Engine::raise(const DeviceEvent& event) {
  // Sized for one event per completion queue and four per queue pair; what does not fit repeats what is
  // there.
  (void)events.push(event);
}

void Engine::tell_of(CompletionQueue::Push pushed, CqId cq, Qpn qpn) {
  if (pushed == CompletionQueue::Push::kEvent) return raise({DeviceEventKind::kCompletion, cq, qpn});
  counters.add(Counter::cq_overflow);
  if (cqs[cq.v]->overrun()) {
    raise({DeviceEventKind::kCqError, cq, qpn});
    if (cqs[cq.v]->disarm()) raise({DeviceEventKind::kCompletion, cq, qpn});
  }
  const QueuePair* q = find(qpn);
  if (q != nullptr && q->state != QpState::kErr) overrun = true;
}

bool Engine::can_send_now(QueuePair& q) {
  if (!q.receives()) return false;
  return (owes_responses(q) && rc_responses_sendable(*this, q)) || rc_requests_sendable(*this, q);
}

// Two turns ahead the queue pair itself, one turn ahead what it points to: each step needs the one before.
void Engine::prefetch_ready() {
  if (ready_queue.upcoming() > 2) {
    const std::uint32_t index = ready_queue.peek(2);
    const QueuePair& q = qp(index);
    deadlines.prefetch(index);
    __builtin_prefetch(&q, 1);
    __builtin_prefetch(&q.requests_out, 1);
    __builtin_prefetch(&q.controller, 1);
    const ColdQueuePair* c = colds[index].get();
    if (c != nullptr) {  // or destroyed since it was queued
      __builtin_prefetch(c);
      __builtin_prefetch(&c->requests_account, 1);
      __builtin_prefetch(&c->init, 1);
    }
  }
  if (!ready_queue.empty()) {
    const std::uint32_t index = ready_queue.peek(0);
    const QueuePair& q = qp(index);
    if (!q.has(kInUse)) return;
    const ColdQueuePair& c = *colds[index];
    __builtin_prefetch(&c.sq[q.sq_send & c.sq_mask]);
    __builtin_prefetch(send_sges(c, q.sq_send));
  }
}

// Nobody is forgotten: who can send stands in the ready queue, an acknowledgement that is owed in the ring,
// and the first of a path's line has too little credit, or is called.
void Engine::check_nobody_forgotten(QueuePair& q) {
  const std::uint32_t index = index_of(q);
  if (can_send(q)) CHECK(q.has(kQueued));
  for (const std::uint8_t mark : {kAckQueued, kReadAckQueued}) {
    if (!q.has(mark)) continue;
    const bool found = control.any([&](const ControlEntry& c) {
      const bool read = c.opcode == wire::kReadAcknowledge;
      return c.qp == index && c.coalesced && read == (mark == kReadAckQueued);
    });
    CHECK(found);
  }
  if (!q.has(kWaitingPath)) return;
  const Path& path = path_of(q);
  if (path.waiting_head == index && path.called == UINT32_MAX) CHECK(path_need(q) == PathNeed::kTooLittle);
}

void Engine::check_invariants() const {
  std::uint32_t in_lines = 0;
  for (std::size_t i = 0; i < colds.size(); ++i) {
    if (colds[i] == nullptr) continue;
    const QueuePair& q = const_cast<Engine*>(this)->qp(static_cast<std::uint32_t>(i));
    if (!q.has(kInUse)) continue;
    for (const Sender* s : {&q.requests_out, &q.served}) {
      CHECK_OP(s->una.v, <=, s->nxt.v);
      CHECK_OP(s->nxt.v, <=, s->max.v);
    }
    const_cast<Engine*>(this)->check_nobody_forgotten(const_cast<QueuePair&>(q));
    const ColdQueuePair& c = *colds[i];
    const auto posted = static_cast<std::uint16_t>(q.sq_tail - q.sq_head);
    CHECK_OP(posted, <=, c.sq_mask + 1);
    CHECK_OP(static_cast<std::uint16_t>(q.sq_acked - q.sq_head), <=, posted);
    CHECK_OP(static_cast<std::uint16_t>(q.sq_send - q.sq_head), <=, posted);
    CHECK_OP(static_cast<std::uint16_t>(q.rq_tail - q.rq_head), <=, c.rq_mask + 1);
    if (q.has(kWaitingPath)) ++in_lines;
    for (const SenderAccount* a : {&c.requests_account, &c.responses_account})
      CHECK_OP(a->settled, <=, a->sent);
    if (q.requests.block == kNoBlock) CHECK_OP(q.requests.held, ==, 0);
    if (q.sq_send != q.sq_tail) {
      const SendWqe& w = c.sq[q.sq_send & c.sq_mask];
      CHECK_OP((w.first + q.send_offset).v, ==, q.requests_out.nxt.v);
    }
  }
  CHECK_OP(in_lines, ==, waiting);
}

}  // namespace weft
