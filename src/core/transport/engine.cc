#include "core/transport/engine.h"

#include <algorithm>
#include <bit>

namespace weft {

Result<void> DeviceConfig::validate() const {
  if (max_qp == 0 || max_qp > (1U << qpn_bits)) return fail("max_qp must be between 1 and 2^qpn_bits");
  if (qpn_bits == 0 || qpn_bits > 24) return fail("qpn_bits must be between 1 and 24");
  if (!std::has_single_bit(window_packets) || window_packets < 64 || window_packets > 32768)
    return fail("window_packets must be a power of two between 64 and 32768");
  if (bdp_cap == 0 || bdp_cap > window_packets) return fail("bdp_cap must be between 1 and window_packets");
  if (loss_blocks >= kNoBlock) return fail("loss_blocks must be below 65535");
  if (!std::has_single_bit(control_ring) || control_ring < 2)  // a CNP alone would keep every ACK out
    return fail("control_ring must be a power of two, at least 2");
  if (max_ring == 0 || max_ring > 32768) return fail("max_ring must be between 1 and 32768");
  if (burst_packets == 0 || burst_packets > 1024) return fail("burst_packets must be between 1 and 1024");
  if (burst_bytes < 4096 + 128) return fail("burst_bytes must hold one packet of 4096 bytes and its headers");
  if (ack_every == 0) return fail("ack_every must be at least 1");
  if (roce_window != 0 && ack_every > roce_window)
    return fail("ack_every must not exceed roce_window: nothing in a full window would ask for an ACK");
  if (nack_threshold == 0 || nack_threshold > bdp_cap)
    return fail("nack_threshold must be between 1 and bdp_cap");
  if (rto_low.ps <= 0 || rto_high < rto_low)
    return fail("rto_low must be positive and no larger than rto_high");
  if (roce_timeout.ps < 0) return fail("roce_timeout must not be negative");
  if (controller >= controllers().size()) return fail("controller must be a row of the table of controllers");
  if (line_rate.bps < 1'000'000) return fail("line_rate must be at least 1 Mb/s");
  if (pacing_quantum.ps < 0 || pacing_quantum > milliseconds(10))
    return fail("pacing_quantum must be between 0 and 10 ms");
  if (std::any_of(level_weights.begin(), level_weights.end(), [](std::uint8_t w) { return w == 0; }))
    return fail("level_weights must be at least 1");
  if (presumed_flight.ps <= 0) return fail("presumed_flight must be positive");
  if (port_mtu < 256 || port_mtu > 4096 || port_mtu % 4 != 0)
    return fail("port_mtu must be a multiple of 4 between 256 and 4096");
  if (max_mr == 0 || max_mr > (1U << 24U)) return fail("max_mr must be between 1 and 2^24");
  return {};
}

Engine::Engine(const DeviceConfig& c)
    : config(c),
      random(c.seed),
      keys(c.max_mr, random.fork(1)),
      pool(c.loss_blocks, c.window_packets),
      ready_queue(std::bit_ceil(c.max_qp), c.schedule),
      deadlines(c.max_qp),
      pacing(c.max_qp),
      control(c.control_ring),
      events(std::bit_ceil(c.max_cq * 2 + c.max_qp * 4 + c.max_srq)),
      burst_packets(c.burst_packets),
      burst_segments(static_cast<std::size_t>(c.burst_packets) * 4 + 64) {
  CHECK(c.validate().has_value());
  for (std::uint8_t m = 0; m < wire::kModeCount; ++m) schemes[m] = &loss_scheme(static_cast<wire::Mode>(m));
  schemes[kUnpinned] = &kGoBackN;  // no packet of such a half comes so far as to be recovered
  if (c.recovery != nullptr) schemes[static_cast<std::size_t>(c.recovery->mode)] = c.recovery;
  qpn_mask = (1U << c.qpn_bits) - 1U;
  chunks.resize((c.max_qp + kChunk - 1) / kChunk);
  colds.resize(c.max_qp);
  Prng order = random.fork(2);
  free_qps.resize(c.max_qp);
  for (std::uint32_t i = 0; i < c.max_qp; ++i) free_qps[i] = i;
  // Numbers 0 and 1 of slot 0 are QP0 and QP1.
  for (std::uint32_t i = c.max_qp; i > 1; --i) std::swap(free_qps[i - 1], free_qps[order.below(i)]);
  if (c.qpn_base == 0 && c.max_qp > 2) std::erase_if(free_qps, [](std::uint32_t i) { return i < 2; });
}

void Engine::raise(const Event& event) {
  // Sized for one event per completion queue and four per queue pair; what does not fit repeats what is
  // there.
  if (event_tail - event_head == events.size()) return;
  events[event_tail++ & (events.size() - 1)] = event;
}

void Engine::tell_of(CompletionQueue::Push pushed, CqId cq, Qpn qpn) {
  if (pushed == CompletionQueue::Push::kEvent) return raise({EventKind::kCompletion, cq, qpn});
  counters.add(Counter::cq_overflow);
  if (cqs[cq.v]->overrun()) {
    raise({EventKind::kCqError, cq, qpn});
    if (cqs[cq.v]->disarm()) raise({EventKind::kCompletion, cq, qpn});
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

void Engine::wait_for_path(QueuePair& q) {
  counters.add(Counter::path_blocked);
  if (q.has(kWaitingPath)) return;
  q.set(kWaitingPath);
  ++waiting;
  Path& path = path_of(q);
  const std::uint32_t index = index_of(q);
  cold(q).next_waiting = UINT32_MAX;
  if (path.waiting_tail == UINT32_MAX) {
    path.waiting_head = index;
  } else {
    colds[path.waiting_tail]->next_waiting = index;
  }
  path.waiting_tail = index;
}

// Of what its next turn begins with: what came second would use that turn up, again and again, if it took
// less credit.
PathNeed Engine::path_need(QueuePair& q) {
  const PathNeed requests = rc_requests_need(*this, q);
  const PathNeed responses = rc_responses_need(*this, q);
  const bool requests_first = (q.rx_flags & kRequestsFirst) != 0;
  const PathNeed first = requests_first ? requests : responses;
  return first != PathNeed::kNone ? first : std::max(requests, responses);
}

void Engine::wake_line(Path& path) {
  while (path.waiting_head != UINT32_MAX && path.called == UINT32_MAX) {
    const std::uint32_t index = path.waiting_head;
    QueuePair& q = qp(index);
    const PathNeed need = path_need(q);
    if (need == PathNeed::kTooLittle) return;  // it keeps its place
    path.waiting_head = colds[index]->next_waiting;
    if (path.waiting_head == UINT32_MAX) path.waiting_tail = UINT32_MAX;
    q.clear(kWaitingPath);
    --waiting;
    if (need == PathNeed::kEnough) path.called = index;
    stand_ready(q);
  }
}

void Engine::leave_path(QueuePair& q) {
  Path& path = path_of(q);
  if (q.has(kWaitingPath)) {
    const std::uint32_t self = index_of(q);
    std::uint32_t* link = &path.waiting_head;
    std::uint32_t previous = UINT32_MAX;
    while (*link != UINT32_MAX && *link != self) {
      previous = *link;
      link = &colds[*link]->next_waiting;
    }
    if (*link == self) {
      *link = cold(q).next_waiting;
      if (path.waiting_tail == self) path.waiting_tail = previous;
    }
    q.clear(kWaitingPath);
    --waiting;
  }
  end_turn(q);
}

// Nobody is forgotten: who can send stands in the ready queue, an acknowledgement that is owed in the ring,
// and the first of a path's line has too little credit, or is called.
void Engine::check_nobody_forgotten(QueuePair& q) {
  const std::uint32_t index = index_of(q);
  if (can_send(q)) CHECK(q.has(kQueued));
  for (const std::uint8_t mark : {kAckQueued, kReadAckQueued}) {
    if (!q.has(mark)) continue;
    bool found = false;
    for (std::uint32_t i = control_head; i != control_tail && !found; ++i) {
      const ControlEntry& c = control[i & (control.size() - 1)];
      const bool read = c.opcode == wire::kReadAcknowledge;
      found = c.qp == index && c.coalesced && read == (mark == kReadAckQueued);
    }
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
