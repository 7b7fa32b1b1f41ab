// The verbs of context.h over a Nic: lookups, ownership, records; the protocol is the Device's. Here is what
// is in one shard: queue pairs, shared receive queues, posting. What is in every shard is in everywhere.cc.
#include "live/engine/context.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/base/allocate.h"
#include "core/transport/key_table.h"
#include "live/engine/nic_state.h"
#include "live/engine/sizing.h"

namespace weft::live {
namespace {

// Copies what a kSendInline work request points to into its slot of the inline area.
void copy_inline(const QpRecord& qp, std::uint32_t slot, const SendWr& wr) {
  std::uint8_t* to = qp.inline_area.get() + std::size_t{slot} * qp.granted.caps.max_inline;
  for (const Sge& s : wr.sges) {
    std::memcpy(to, reinterpret_cast<const void*>(s.address), s.length);
    to += s.length;
  }
}

// A shared receive queue's number says its shard; the rest is its Device's own number.
constexpr unsigned kShardShift = 24;
SrqId in_device(SrqId id) { return {id.v & ((1U << kShardShift) - 1U)}; }
std::uint32_t shard_of(SrqId id) { return id.v >> kShardShift; }
SrqId in_process(std::uint32_t shard, SrqId id) { return {shard << kShardShift | id.v}; }

// Takes the queue pair out of the Device and out of the tables; the caller gets the record. Its events are
// handed out first, because none may follow.
Outcome<std::unique_ptr<QpRecord>> take_qp(Nic& nic, Qpn qpn) {
  nic.farewell_owned(qpn);
  nic.dispatch_events_owned();
  if (const auto done = nic.device().destroy_qp(qpn); !done) return fail(done.error());
  nic.shard().set_inline_area(qpn, nullptr);
  return std::move(nic.qp_slot(qpn));
}
Outcome<std::unique_ptr<SrqRecord>> take_srq(Nic& nic, SrqId id) {
  nic.dispatch_events_owned();
  if (const auto done = nic.device().destroy_srq(in_device(id)); !done) return fail(done.error());
  return std::move(nic.srqs[in_device(id).v]);
}

}  // namespace

Result<std::unique_ptr<Context>> Context::open(std::shared_ptr<Nic> nic) {
  auto events = EventQueue::open();
  if (events == nullptr) return fail_system("cannot open an eventfd", errno);
  return std::unique_ptr<Context>(new Context(std::move(nic), std::move(events)));
}

Context::Context(std::shared_ptr<Nic> nic, std::unique_ptr<EventQueue> events)
    : nic_(std::move(nic)), events_(std::move(events)) {}

// Queue pairs before their queues, queues before their channels, windows before their regions, regions before
// their domain. Nobody waits for events that were taken and never acknowledged: their queues go with the
// context.
Context::~Context() {
  const OwnedEverywhere owned(*nic_);
  const auto mine = [&](const auto& record) { return record != nullptr && record->owner == this; };
  SharedTables& shared = nic_->shared();
  for (Nic* const nic : nic_->shards()) {
    nic->settle_owned();
    for (auto& qp : nic->qps) {
      if (!mine(qp)) continue;
      nic->detach_all_owned(qp->qpn);
      static_cast<void>(take_qp(*nic, qp->qpn));
    }
    for (auto& srq : nic->srqs) {
      if (mine(srq)) static_cast<void>(take_srq(*nic, srq->id));
    }
  }
  for (auto& cq : shared.cqs) {
    if (mine(cq)) static_cast<void>(take_cq_owned(*nic_, cq->id));
  }
  std::erase_if(shared.channels, [&](const auto& channel) { return channel->owner == this; });
  for (std::size_t i = 0; i < shared.window_owners.size(); ++i) {
    if (shared.window_owners[i] != this) continue;
    if (nic_->device().dealloc_window({static_cast<std::uint32_t>(i) << 8U}))
      shared.window_owners[i] = nullptr;
  }
  for (MrRecord& mr : shared.mrs) {
    if (mr.owner != this) continue;
    for (Nic* const nic : nic_->shards()) {
      if (nic->device().deregister_mr(mr.lkey)) mr.owner = nullptr;
    }
  }
  for (Nic* const nic : nic_->shards()) {
    for (std::size_t i = 0; i < nic->ahs.size(); ++i) {
      if (nic->ahs[i].owner != this) continue;
      if (nic->device().destroy_ah({static_cast<std::uint32_t>(i)})) nic->ahs[i].owner = nullptr;
    }
  }
  for (std::size_t i = 0; i < shared.pd_owners.size(); ++i) {
    if (shared.pd_owners[i] != this) continue;
    for (Nic* const nic : nic_->shards()) {
      if (nic->device().dealloc_pd({static_cast<std::uint32_t>(i)})) shared.pd_owners[i] = nullptr;
    }
  }
}

bool Context::owns(PdId pd) const {
  const auto& owners = nic_->shared().pd_owners;
  return pd.v < owners.size() && owners[pd.v] == this;
}
bool Context::owns(CqId cq) const {
  const auto& cqs = nic_->shared().cqs;
  return cq.v < cqs.size() && cqs[cq.v] != nullptr && cqs[cq.v]->owner == this;
}

bool Context::owns(Key lkey) const {
  const auto& mrs = nic_->shared().mrs;
  const std::uint32_t region = KeyTable::region_of(lkey).v;
  return region < mrs.size() && mrs[region].lkey == lkey && mrs[region].owner == this;
}

std::uint32_t Context::shard_for_thread() {
  const auto turn = nic_->shared().next_thread_domain.fetch_add(1, std::memory_order_relaxed);
  return turn % static_cast<std::uint32_t>(nic_->shards().size());
}

Nic& Context::place_of(std::optional<std::uint32_t> shard) {
  const auto shards = nic_->shards();
  if (shards.size() == 1) return *nic_;
  if (!shard) shard = nic_->shared().next_object.fetch_add(1, std::memory_order_relaxed);
  return *shards[*shard % shards.size()];
}

const Attributes& Context::attributes() const { return nic_->attributes(); }
Connections Context::connections() const { return Connections(nic_); }

// --- queue pairs ---

Outcome<Qp*> Context::create_qp(const QpInit& init, void* cookie, std::optional<std::uint32_t> shard) {
  const Attributes& limits = nic_->attributes();
  if (init.caps.max_inline > limits.max_inline) return fail(Errc::kInvalid);
  const bool draws = init.srq != kNoSrq;
  if (draws && shard_of(init.srq) >= nic_->shards().size()) return fail(Errc::kInvalid);
  Nic& nic = draws ? *nic_->shards()[shard_of(init.srq)] : place_of(shard);
  const Owned owned(nic.ownership());
  if (!owns(init.pd) || !owns(init.send_cq) || !owns(init.recv_cq)) return fail(Errc::kInvalid);
  QpInit there = init;
  if (draws) {
    there.srq = in_device(init.srq);
    const bool known = there.srq.v < nic.srqs.size() && nic.srqs[there.srq.v] != nullptr;
    if (!known || nic.srqs[there.srq.v]->owner != this) return fail(Errc::kInvalid);
  }
  auto qp = std::make_unique<QpRecord>();
  const auto qpn = nic.device().create_qp(there);
  if (!qpn) return fail(qpn.error());
  qp->qpn = *qpn;
  qp->nic = &nic;
  if (init.type == QpType::kUd) nic.show_headers_owned();
  qp->granted = *nic.device().query_qp_init(*qpn);
  qp->granted.srq = init.srq;
  qp->cookie = cookie;
  qp->owner = this;
  qp->async = events_.get();
  const std::size_t inline_bytes = std::size_t{qp->granted.caps.max_send_wr} * qp->granted.caps.max_inline;
  if (inline_bytes != 0) qp->inline_area = try_array<std::uint8_t>(inline_bytes);
  if (inline_bytes != 0 && qp->inline_area == nullptr) {
    static_cast<void>(nic.device().destroy_qp(*qpn));
    return fail(Errc::kNoMemory);
  }
  nic.shard().set_inline_area(*qpn, qp->inline_area.get());
  for (const CqId cq : {init.send_cq, init.recv_cq}) report_to(nic_->shared().cqs[cq.v].get(), nic);
  auto& slot = nic.qp_slot(*qpn);
  slot = std::move(qp);
  return slot.get();
}

Outcome<void> Nic::modify_owned(Qp& qp, const QpAttr& attr, std::uint32_t mask, const PathAttr& to) {
  QpAttr ours = attr;
  ours.mode = attributes_.mode.value_or(record(&qp).mode);
  if ((mask & kAttrPath) != 0) {
    const auto path = device().open_path(to);
    if (!path) return fail(path.error());
    ours.path = *path;
    if (level_from_dscp_) ours.service_level = static_cast<std::uint8_t>(to.traffic_class >> 5U);
  }
  const auto done = device().modify_qp(qp.qpn, ours, mask, clock_.now());
  if (done && (mask & kAttrPath) != 0) {
    record(&qp).path = ours.path;
    record(&qp).has_path = true;
  }
  return done;
}

Outcome<void> Context::modify_qp(Qp* qp, const QpAttr& attr, std::uint32_t mask, const PathAttr& to) {
  PathAttr path = to;
  Nic& nic = *record(qp).nic;
  if (nic.asks() && qp->granted.type == QpType::kRc && (mask & kAttrPath) != 0 &&
      (mask & kAttrDestQpn) != 0) {
    const cm::Known known = nic.ask(to.peer, attr.dest_qpn);
    record(qp).mode = known.mode;
    path.credit = {credit_of_a_shard(known.capability.buffer_share, nic_->shards().size())};
  }
  const Owned owned(nic.ownership());
  nic.settle_owned();
  const auto done = nic.modify_owned(*qp, attr, mask, path);
  nic.settle_owned();  // the credit of what was flushed is for others
  nic.dispatch_events_owned();
  return done;
}

Outcome<QpAttr> Context::query_qp(const Qp* qp) {
  Nic& nic = *record(qp).nic;
  const Owned owned(nic.ownership());
  return nic.device().query_qp(qp->qpn);
}

Outcome<void> Context::destroy_qp(Qp* qp) {
  std::unique_ptr<QpRecord> gone;
  Nic& nic = *record(qp).nic;
  {
    const Owned owned(nic.ownership());
    if (nic.shard().memberships().has_groups_of(qp->qpn)) return fail(Errc::kBusy);
    nic.settle_owned();
    auto taken = take_qp(nic, qp->qpn);
    if (!taken) return fail(taken.error());
    gone = std::move(*taken);
    nic.settle_owned();  // its path credit is for others
  }
  gone->async->retire(qp, gone->async_taken);
  return {};
}

// --- shared receive queues ---

Outcome<Srq*> Context::create_srq(PdId pd, const SrqCaps& caps, void* cookie,
                                  std::optional<std::uint32_t> shard) {
  Nic& nic = place_of(shard);
  const Owned owned(nic.ownership());
  if (!owns(pd)) return fail(Errc::kInvalid);
  auto srq = std::make_unique<SrqRecord>();
  const auto id = nic.device().create_srq(pd, caps);
  if (!id) return fail(id.error());
  srq->id = in_process(nic.number(), *id);
  srq->nic = &nic;
  srq->granted = *nic.device().query_srq(*id);
  srq->cookie = cookie;
  srq->owner = this;
  srq->async = events_.get();
  auto& slot = nic.srqs[id->v];
  slot = std::move(srq);
  return slot.get();
}

Outcome<void> Context::set_srq_limit(Srq* srq, std::uint32_t limit) {
  Nic& nic = *record(srq).nic;
  const Owned owned(nic.ownership());
  const auto done = nic.device().set_srq_limit(in_device(srq->id), limit);
  nic.dispatch_events_owned();  // it may have been reached already
  return done;
}

Outcome<SrqCaps> Context::query_srq(const Srq* srq) {
  Nic& nic = *record(srq).nic;
  const Owned owned(nic.ownership());
  return nic.device().query_srq(in_device(srq->id));
}

Outcome<void> Context::destroy_srq(Srq* srq) {
  std::unique_ptr<SrqRecord> gone;
  {
    Nic& nic = *record(srq).nic;
    const Owned owned(nic.ownership());
    auto taken = take_srq(nic, srq->id);
    if (!taken) return fail(taken.error());
    gone = std::move(*taken);
  }
  gone->async->retire(srq, gone->async_taken);
  return {};
}

Outcome<void> Context::post_srq_receive(Srq* srq, const RecvWr& wr) {
  Nic& nic = *record(srq).nic;
  const Owned owned(nic.ownership());
  return nic.device().post_srq_recv(in_device(srq->id), wr);
}

// --- asynchronous events ---

int Context::async_fd() const { return events_->descriptor(); }

bool Context::get_async_event(AsyncEvent& out) { return events_->take(out); }

void Context::ack_async_event(const AsyncEvent& event) { events_->acknowledge(taken_of(event), 1); }

// --- posting ---

void Context::begin_posting(Qp* qp) { record(qp).nic->begin_posting(); }

Outcome<void> Context::check_send(const Qp* qp, const SendWr& wr, std::uint32_t ahead) {
  return record(qp).nic->device().check_send(qp->qpn, wr, ahead);
}

Outcome<void> Context::post_send(Qp* qp, const SendWr& wr) {
  QpRecord& r = record(qp);
  const auto slot = r.nic->device().post_send(qp->qpn, wr);
  if (!slot) return fail(slot.error());
  r.nic->count_post_owned();
  if (r.granted.type == QpType::kUd) {
    r.path = r.nic->ahs[wr.ah.v].path;
    r.has_path = true;
  }
  if ((wr.flags & kSendInline) != 0) copy_inline(r, *slot, wr);
  return {};
}

Outcome<void> Context::post_receive(Qp* qp, const RecvWr& wr) {
  return record(qp).nic->device().post_recv(qp->qpn, wr);
}

void Context::end_posting(Qp* qp) { record(qp).nic->end_posting(record(qp)); }

}  // namespace weft::live
