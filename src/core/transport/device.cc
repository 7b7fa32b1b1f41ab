// The Device's public face: resources and the order in which a world's calls reach the protocol files.
#include "core/transport/device.h"

#include <algorithm>
#include <bit>

#include "core/base/allocate.h"
#include "core/transport/congestion.h"
#include "core/transport/engine.h"
#include "core/transport/post_request.h"
#include "core/transport/rc/attributes.h"
#include "core/transport/rc/control.h"
#include "core/transport/rc/failure.h"
#include "core/transport/rc/read_responder.h"
#include "core/transport/rc/requester.h"
#include "core/transport/rc/timers.h"
#include "core/transport/several_devices.h"
#include "core/transport/uc/requester.h"

namespace weft {

Device::Device(const DeviceConfig& config) : engine_(std::make_unique<Engine>(config)) {}
Device::~Device() = default;

Outcome<PdId> Device::alloc_pd() {
  Engine& e = *engine_;
  for (std::uint32_t i = 0; i < e.pds.size(); ++i) {
    if (!e.pds[i]) {
      e.pds[i] = true;
      return PdId{i};
    }
  }
  if (e.pds.size() == e.config.max_pd) return fail(Errc::kNoMemory);
  e.pds.push_back(true);
  return PdId{static_cast<std::uint32_t>(e.pds.size() - 1)};
}

Outcome<void> Device::dealloc_pd(PdId pd) {
  Engine& e = *engine_;
  if (pd.v >= e.pds.size() || !e.pds[pd.v]) return fail(Errc::kNotFound);
  if (is_used(e, pd)) return fail(Errc::kBusy);
  e.pds[pd.v] = false;
  return {};
}

Outcome<MrInfo> Device::register_mr(PdId pd, std::uint64_t address, std::uint64_t length,
                                    std::uint8_t access) {
  Engine& e = *engine_;
  if (pd.v >= e.pds.size() || !e.pds[pd.v]) return fail(Errc::kInvalid);
  const auto key = e.keys.add(pd, address, length, access);
  if (!key) return fail(key.error());
  return MrInfo{*key, *key, KeyTable::region_of(*key)};
}

Outcome<void> Device::reregister_mr(Key key, std::uint8_t changes, PdId pd, std::uint64_t address,
                                    std::uint64_t length, std::uint8_t access) {
  Engine& e = *engine_;
  if ((changes & kChangePd) != 0 && (pd.v >= e.pds.size() || !e.pds[pd.v])) return fail(Errc::kInvalid);
  return e.keys.change(key, changes, pd, address, length, access);
}

Outcome<void> Device::deregister_mr(Key key) { return engine_->keys.remove(key); }

Outcome<Key> Device::alloc_window(PdId pd, WindowType type) {
  Engine& e = *engine_;
  if (pd.v >= e.pds.size() || !e.pds[pd.v]) return fail(Errc::kInvalid);
  return e.keys.add_window(pd, type);
}

Outcome<void> Device::dealloc_window(Key key) { return engine_->keys.remove_window(key); }

Outcome<CqId> Device::create_cq(std::uint32_t entries) {
  Engine& e = *engine_;
  if (entries == 0 || entries > e.config.max_cqe) return fail(Errc::kInvalid);
  std::size_t i = 0;
  while (i < e.cqs.size() && e.cqs[i] != nullptr) ++i;
  if (i == e.config.max_cq) return fail(Errc::kNoMemory);
  if (i == e.cqs.size()) e.cqs.emplace_back();
  std::vector<Completion> ring(entries);  // first: without memory for it there is nothing to give back
  e.cqs[i].reset(new (std::nothrow) CompletionQueue(std::move(ring)));
  if (e.cqs[i] == nullptr) return fail(Errc::kNoMemory);
  return CqId{static_cast<std::uint32_t>(i)};
}

Outcome<void> Device::resize_cq(CqId cq, std::uint32_t entries) {
  Engine& e = *engine_;
  if (cq.v >= e.cqs.size() || e.cqs[cq.v] == nullptr) return fail(Errc::kNotFound);
  if (entries == 0 || entries > e.config.max_cqe || entries < e.cqs[cq.v]->size() || e.cqs[cq.v]->overran())
    return fail(Errc::kInvalid);
  e.cqs[cq.v]->resize(entries);
  return {};
}

Outcome<void> Device::destroy_cq(CqId cq) {
  Engine& e = *engine_;
  if (cq.v >= e.cqs.size() || e.cqs[cq.v] == nullptr) return fail(Errc::kNotFound);
  if (is_used(e, cq)) return fail(Errc::kBusy);
  e.cqs[cq.v].reset();
  return {};
}

Outcome<Qpn> Device::create_qp(const QpInit& init) {
  Engine& e = *engine_;
  if (init.type != QpType::kRc && init.type != QpType::kUc && init.type != QpType::kUd)
    return fail(Errc::kUnsupported);
  const auto cq_known = [&](CqId id) { return id.v < e.cqs.size() && e.cqs[id.v] != nullptr; };
  if (init.pd.v >= e.pds.size() || !e.pds[init.pd.v] || !cq_known(init.send_cq) || !cq_known(init.recv_cq)) {
    return fail(Errc::kInvalid);
  }
  const SharedReceiveQueue* srq = nullptr;
  if (init.srq != kNoSrq) {
    srq = e.find_srq(init.srq);
    if (srq == nullptr) return fail(Errc::kInvalid);
  }
  QpCaps asked = init.caps;
  if (srq != nullptr) {
    asked.max_recv_wr = kSharedHeld;
    asked.max_recv_sge = srq->caps.max_sge;
  }
  if (asked.max_send_wr > e.config.max_ring || (srq == nullptr && asked.max_recv_wr > e.config.max_ring) ||
      asked.max_send_sge > 32 || asked.max_recv_sge > 32 || asked.max_inline > 4096) {
    return fail(Errc::kInvalid);
  }
  if (e.free_qps.empty()) return fail(Errc::kNoMemory);
  const std::uint32_t index = e.free_qps.back();
  auto& chunk = e.chunks[index / Engine::kChunk];
  if (chunk == nullptr) chunk = try_array<QueuePair>(Engine::kChunk);
  std::unique_ptr<ColdQueuePair> cold(new (std::nothrow) ColdQueuePair);
  if (chunk == nullptr || cold == nullptr) return fail(Errc::kNoMemory);
  cold->init = init;
  QpCaps& caps = cold->init.caps;
  caps.max_send_wr = std::bit_ceil(std::max(asked.max_send_wr, 1U));
  caps.max_recv_wr = std::bit_ceil(std::max(asked.max_recv_wr, 1U));
  caps.max_send_sge = std::max(asked.max_send_sge, 1U);
  caps.max_recv_sge = std::max(asked.max_recv_sge, 1U);
  cold->sq = try_array<SendWqe>(caps.max_send_wr);
  cold->sq_operands = try_array<SendOperands>(caps.max_send_wr);
  cold->rq = try_array<RecvWqe>(caps.max_recv_wr);
  cold->sq_sges = try_array<Sge>(std::size_t{caps.max_send_wr} * caps.max_send_sge);
  cold->rq_sges = try_array<Sge>(std::size_t{caps.max_recv_wr} * caps.max_recv_sge);
  if (!cold->sq || !cold->sq_operands || !cold->rq || !cold->sq_sges || !cold->rq_sges)
    return fail(Errc::kNoMemory);
  e.free_qps.pop_back();
  cold->receive_pd = srq != nullptr ? srq->pd : init.pd;
  cold->sq_mask = static_cast<std::uint16_t>(caps.max_send_wr - 1);
  cold->rq_mask = static_cast<std::uint16_t>(caps.max_recv_wr - 1);
  e.colds[index] = std::move(cold);
  QueuePair& q = e.qp(index);
  const bool still_queued = q.has(kQueued);  // a destroyed predecessor's entry is still in the ready queue
  q = QueuePair{};
  q.qpn = {(e.config.qpn_base & ~e.qpn_mask) | index};
  q.type = init.type;
  q.pd = init.pd;
  q.flags = static_cast<std::uint8_t>(kInUse | (still_queued ? kQueued : 0));
  ++e.cqs[init.send_cq.v]->users;
  ++e.cqs[init.recv_cq.v]->users;
  if (srq != nullptr) ++e.srqs[init.srq.v]->users;
  return q.qpn;
}

Outcome<void> Device::modify_qp(Qpn qpn, const QpAttr& attr, std::uint32_t mask, Time now) {
  QueuePair* q = engine_->find(qpn);
  if (q == nullptr) return fail(Errc::kNotFound);
  engine_->settle();
  auto done = rc_modify(*engine_, *q, attr, mask, now);
  engine_->reconcile(*q);
  return done;
}

Outcome<QpAttr> Device::query_qp(Qpn qpn) const {
  QueuePair* q = engine_->find(qpn);
  if (q == nullptr) return fail(Errc::kNotFound);
  QpAttr a = engine_->cold(*q).attr;
  a.state = a.current_state = q->state;
  a.sq_draining = q->state == QpState::kSqd && !rc_drained(*q);
  return a;
}

Outcome<QpInit> Device::query_qp_init(Qpn qpn) const {
  const QueuePair* q = engine_->find(qpn);
  if (q == nullptr) return fail(Errc::kNotFound);
  return engine_->cold(*q).init;
}

Outcome<void> Device::destroy_qp(Qpn qpn) {
  Engine& e = *engine_;
  QueuePair* q = e.find(qpn);
  if (q == nullptr) return fail(Errc::kNotFound);
  e.settle();
  if (q->state != QpState::kReset && q->state != QpState::kInit) rc_release(e, *q);
  rc_forget_control(e, *q);
  const std::uint32_t index = e.index_of(*q);
  --e.cqs[e.colds[index]->init.send_cq.v]->users;
  --e.cqs[e.colds[index]->init.recv_cq.v]->users;
  if (const SrqId srq = e.colds[index]->init.srq; srq != kNoSrq) --e.srqs[srq.v]->users;
  e.keys.unbind_all(qpn);
  q->clear(kInUse);
  q->state = QpState::kReset;
  e.colds[index].reset();
  // At the far end of the free list: a number comes back as late as possible.
  e.free_qps.insert(e.free_qps.begin(), index);
  return {};
}

Outcome<void> Device::check_send(Qpn qpn, const SendWr& wr, std::uint32_t ahead) {
  engine_->settle();
  const QueuePair* q = engine_->find(qpn);
  if (q == nullptr) return fail(Errc::kNotFound);
  return check_request(*engine_, *q, wr, ahead);
}

Outcome<std::uint32_t> Device::post_send(Qpn qpn, const SendWr& wr) {
  QueuePair* q = engine_->find(qpn);
  if (q == nullptr) return fail(Errc::kNotFound);
  engine_->settle();
  auto slot = post_request(*engine_, *q, wr);
  if (slot) engine_->reconcile_posted(*q);
  return slot;
}

Outcome<void> Device::post_recv(Qpn qpn, const RecvWr& wr) {
  Engine& e = *engine_;
  e.settle();
  QueuePair* q = e.find(qpn);
  if (q == nullptr) return fail(Errc::kNotFound);
  ColdQueuePair& c = e.cold(*q);
  if (q->state == QpState::kReset || c.init.srq != kNoSrq) return fail(Errc::kInvalid);
  if (wr.sges.size() > c.init.caps.max_recv_sge) return fail(Errc::kInvalid);
  if (q->state == QpState::kErr) {
    Completion done;
    done.wr_id = wr.wr_id;
    done.status = WcStatus::kFlushed;
    done.opcode = WcOpcode::kReceive;
    done.qpn = qpn;
    e.complete(c.init.recv_cq, done, false);
    return {};
  }
  if (static_cast<std::uint16_t>(q->rq_tail - q->rq_head) > c.rq_mask) return fail(Errc::kNoMemory);
  RecvWqe& r = e.recv_wqe(c, q->rq_tail);
  r = {};
  r.wr_id = wr.wr_id;
  r.sge_count = static_cast<std::uint8_t>(wr.sges.size());
  std::copy(wr.sges.begin(), wr.sges.end(),
            &c.rq_sges[static_cast<std::size_t>(q->rq_tail & c.rq_mask) * c.init.caps.max_recv_sge]);
  ++q->rq_tail;
  return {};
}

std::uint32_t Device::poll_cq(CqId cq, std::span<Completion> out) {
  Engine& e = *engine_;
  if (cq.v >= e.cqs.size() || e.cqs[cq.v] == nullptr) return 0;
  e.settle();
  return e.cqs[cq.v]->poll(out);
}

Outcome<void> Device::request_notify(CqId cq, bool solicited_only) {
  Engine& e = *engine_;
  if (cq.v >= e.cqs.size() || e.cqs[cq.v] == nullptr) return fail(Errc::kNotFound);
  if (e.cqs[cq.v]->overran()) return fail(Errc::kInvalid);  // it would wait for ever
  e.cqs[cq.v]->arm(solicited_only);
  return {};
}

std::uint32_t Device::completions_waiting(CqId cq) const {
  Engine& e = *engine_;
  if (cq.v >= e.cqs.size() || e.cqs[cq.v] == nullptr) return 0;
  e.settle();
  return e.cqs[cq.v]->size();
}

bool Device::poll_event(DeviceEvent& out) {
  engine_->settle();
  return engine_->events.take(out);
}

namespace {
// The next queue pair with work and credit, removed from the ready queue; nullptr when there is none.
QueuePair* next_turn(Engine& e, Time now) {
  e.settle();
  while (e.pacing.next() <= now) pacing_release(e);
  while (!e.ready_queue.empty()) {
    const std::uint32_t index = e.ready_queue.pop();
    e.prefetch_ready();
    QueuePair& q = e.qp(index);
    if (q.has(kInUse) && e.can_send(q)) {
      if (!controlled(q) || q.next_send <= now) return &q;
      pacing_wait(e, q, now);
      e.wake_path(e.path_of(q));  // credit that it was called for is for others meanwhile
      continue;
    }
    q.clear(kQueued);  // destroyed, failed or satisfied since it was queued
    if (q.has(kInUse) && q.receives()) e.end_turn(q);
  }
  return nullptr;
}

// The burst is written where the caller wants it, not copied.
void take_turn(Engine& e, QueuePair& q, Time now, Budget budget, wire::Burst& burst) {
  q.clear(kQueued);
  if (!q.receives()) return;
  budget.bytes = std::min(budget.bytes, e.config.burst_bytes);
  if (e.config.burst_requests != 0) budget.requests = std::min(budget.requests, e.config.burst_requests);
  if (controlled(q)) {
    pacing_leave(e, q);  // a NIC model chose it before its time
    budget = congestion_budget(e, q, now, budget);
  }
  // Responses and requests of one queue pair take turns. One in which nothing could leave does not count:
  // who found no path credit comes first when there is some.
  const auto send = [&](bool requests) {
    if (requests) return rc_send_requests(e, q, now, budget);
    const bool any = e.owes_responses(q) && rc_responses_sendable(e, q);
    return any ? rc_send_responses(e, q, now, budget) : Filled{};
  };
  bool requests = (q.rx_flags & kRequestsFirst) != 0;
  Filled filled = send(requests);
  if (filled.packets == 0) {
    requests = !requests;
    filled = send(requests);
  }
  if (filled.packets != 0) {
    if (requests == ((q.rx_flags & kRequestsFirst) != 0)) q.rx_flags ^= kRequestsFirst;
    burst.qpn = q.qpn;
    burst.path = q.path;
    burst.packets = {e.burst_packets.data(), filled.packets};
    burst.segments = {e.burst_segments.data(), filled.segments};
  }
  if (controlled(q)) congestion_sent(e, q, now, burst);
  e.reconcile_after_turn(q);
}
}  // namespace

Qpn Device::pick(Time now) {
  const QueuePair* q = next_turn(*engine_, now);
  return q == nullptr ? kNoQpn : q->qpn;
}

void Device::put_back(Qpn qpn) {
  QueuePair* q = engine_->find(qpn);
  if (q == nullptr) return engine_->forget_pick(qpn);
  engine_->ready_queue.push(engine_->index_of(*q), q->level & kServiceLevel);
}

bool Device::is_ready(Qpn qpn) const {
  QueuePair* q = const_cast<Engine&>(*engine_).find(qpn);
  return q != nullptr && engine_->can_send(*q) && !engine_->pacing.contains(engine_->index_of(*q));
}

bool Device::next_is_retransmission(Qpn qpn) {
  Engine& e = *engine_;
  e.settle();
  QueuePair* q = e.find(qpn);
  if (q == nullptr || !q->receives()) return false;
  // In the order of transmit.
  const bool responses = rc_responses_sendable(e, *q);
  const bool responses_first = (q->rx_flags & kRequestsFirst) == 0;
  if (responses && responses_first) return rc_response_again(e, *q);
  if (rc_requests_sendable(e, *q)) return rc_request_again(e, *q);
  return responses && rc_response_again(e, *q);
}

wire::Burst Device::transmit(Qpn qpn, Time now, Budget budget) {
  wire::Burst burst;
  engine_->settle();
  QueuePair* q = engine_->find(qpn);
  if (q == nullptr) {
    engine_->forget_pick(qpn);
  } else {
    take_turn(*engine_, *q, now, budget, burst);
  }
  return burst;
}

wire::Burst Device::poll_transmit(Time now, Budget budget) {
  wire::Burst burst;
  while (burst.empty()) {
    QueuePair* q = next_turn(*engine_, now);
    if (q == nullptr) break;
    take_turn(*engine_, *q, now, budget, burst);
  }
  return burst;
}

bool Device::has_to_send() const { return !engine_->control.empty() || !engine_->ready_queue.empty(); }

Qpn Device::peek_control() const {
  const Engine& e = *engine_;
  if (e.control.empty()) return kNoQpn;
  const std::uint32_t index = e.control.front().qp;
  return const_cast<Engine&>(e).qp(index).qpn;
}

wire::Burst Device::poll_control(Time now) {
  if (engine_->overrun) fail_overrun(*engine_);
  return rc_poll_control(*engine_, now);
}

namespace {
void gather_failed_at(Engine& e, QueuePair& q, const wire::Header& h, Time now) {
  if (q.type != QpType::kRc) return uc_gather_failed(e, q, h.psn);
  const std::uint8_t op = h.opcode;
  if (op >= wire::kReadResponseFirst && op <= wire::kReadResponseOnly) {
    const bool stream = q.rx_dialect().response_stream;
    Seq at = expand(h.psn, stream ? q.served.una : q.requests.expected);
    if (stream) {
      if (const ReadServed* r = rc_find_served(e, q, at); r != nullptr) at = r->request;
    }
    rc_withdraw_acks(e, q, at);
    rc_nak_read(e, q, wire::kSyndromeNakOperation, at);
    return;
  }
  rc_fail(e, q, WcStatus::kLocalProtection, rc_slot_of(e, q, expand(h.psn, q.requests_out.una)), now);
}
}  // namespace

void Device::gather_failed(const wire::Burst& burst, std::size_t index, Time now) {
  QueuePair* q = engine_->find(burst.qpn);
  if (q == nullptr || index >= burst.packets.size()) return;
  gather_failed_at(*engine_, *q, burst.packets[index].header, now);
  engine_->reconcile(*q);
}

void Device::acknowledge_again(Qpn qpn) {
  QueuePair* q = engine_->find(qpn);
  if (q != nullptr && q->receives() && q->rx_mode != kUnpinned) rc_repeat_ack(*engine_, *q);
}

const DeviceConfig& Device::config() const { return engine_->config; }
const Counters& Device::counters() const { return engine_->counters; }
std::uint32_t Device::loss_blocks_in_use() const { return engine_->pool.in_use(); }
void Device::check_invariants() const { engine_->check_invariants(); }

}  // namespace weft
