// The verbs of context.h over a Nic: lookups, ownership, records; the protocol is the Device's.
#include "live/engine/context.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/base/allocate.h"
#include "core/transport/key_table.h"
#include "live/engine/nic_state.h"
#include "live/engine/sizing.h"
#include "live/wires/program_memory.h"

namespace weft::live {
namespace {

// With the right to bind windows a region may be written through them.
bool writable(std::uint8_t access) {
  return (access & (kLocalWrite | kRemoteWrite | kRemoteAtomic | kMwBind)) != 0;
}

// Copies what a kSendInline work request points to into its slot of the inline area.
void copy_inline(const QpRecord& qp, std::uint32_t slot, const SendWr& wr) {
  std::uint8_t* to = qp.inline_area.get() + std::size_t{slot} * qp.granted.caps.max_inline;
  for (const Sge& s : wr.sges) {
    std::memcpy(to, reinterpret_cast<const void*>(s.address), s.length);
    to += s.length;
  }
}

// Takes the queue pair out of the Device and out of the tables; the caller gets the record. Its events are
// handed out first, because none may follow.
Outcome<std::unique_ptr<QpRecord>> take_qp(Nic& nic, Qpn qpn) {
  nic.farewell_owned(qpn);
  nic.dispatch_events_owned();
  if (const auto done = nic.device().destroy_qp(qpn); !done) return fail(done.error());
  nic.shard().set_inline_area(qpn, nullptr);
  return std::move(nic.qp_slot(qpn));
}
Outcome<std::unique_ptr<CqRecord>> take_cq(Nic& nic, CqId id) {
  nic.dispatch_events_owned();
  if (const auto done = nic.device().destroy_cq(id); !done) return fail(done.error());
  return std::move(nic.cqs[id.v]);
}
Outcome<std::unique_ptr<SrqRecord>> take_srq(Nic& nic, SrqId id) {
  nic.dispatch_events_owned();
  if (const auto done = nic.device().destroy_srq(id); !done) return fail(done.error());
  return std::move(nic.srqs[id.v]);
}

}  // namespace

Result<std::unique_ptr<Context>> Context::open(std::shared_ptr<Nic> nic) {
  auto events = EventQueue::open();
  if (events == nullptr) return fail(std::string("cannot open an eventfd: ") + std::strerror(errno));
  return std::unique_ptr<Context>(new Context(std::move(nic), std::move(events)));
}

Context::Context(std::shared_ptr<Nic> nic, std::unique_ptr<EventQueue> events)
    : nic_(std::move(nic)), events_(std::move(events)) {}

// Queue pairs before their queues, queues before their channels, windows before their regions, regions before
// their domain. Nobody waits for events that were taken and never acknowledged: their queues go with the
// context.
Context::~Context() {
  const Owned owned(nic_->ownership());
  Nic& nic = *nic_;
  nic.settle_owned();
  const auto mine = [&](const auto& record) { return record != nullptr && record->owner == this; };
  for (auto& qp : nic.qps) {
    if (!mine(qp)) continue;
    nic.detach_all_owned(qp->qpn);
    static_cast<void>(take_qp(nic, qp->qpn));
  }
  for (auto& srq : nic.srqs) {
    if (mine(srq)) static_cast<void>(take_srq(nic, srq->id));
  }
  for (auto& cq : nic.cqs) {
    if (mine(cq)) static_cast<void>(take_cq(nic, cq->id));
  }
  std::erase_if(nic.channels, [&](const auto& channel) { return channel->owner == this; });
  for (std::size_t i = 0; i < nic.window_owners.size(); ++i) {
    if (nic.window_owners[i] != this) continue;
    if (nic.device().dealloc_window({static_cast<std::uint32_t>(i) << 8U})) nic.window_owners[i] = nullptr;
  }
  for (MrRecord& mr : nic.mrs) {
    if (mr.owner == this && nic.device().deregister_mr(mr.lkey)) mr.owner = nullptr;
  }
  for (std::size_t i = 0; i < nic.ahs.size(); ++i) {
    if (nic.ahs[i].owner != this) continue;
    if (nic.device().destroy_ah({static_cast<std::uint32_t>(i)})) nic.ahs[i].owner = nullptr;
  }
  for (std::size_t i = 0; i < nic.pd_owners.size(); ++i) {
    if (nic.pd_owners[i] != this) continue;
    if (nic.device().dealloc_pd({static_cast<std::uint32_t>(i)})) nic.pd_owners[i] = nullptr;
  }
}

bool Context::owns(PdId pd) const { return pd.v < nic_->pd_owners.size() && nic_->pd_owners[pd.v] == this; }
bool Context::owns(CqId cq) const {
  return cq.v < nic_->cqs.size() && nic_->cqs[cq.v] != nullptr && nic_->cqs[cq.v]->owner == this;
}
bool Context::owns(SrqId srq) const {
  return srq.v < nic_->srqs.size() && nic_->srqs[srq.v] != nullptr && nic_->srqs[srq.v]->owner == this;
}

bool Context::owns(Key lkey) const {
  const std::uint32_t region = KeyTable::region_of(lkey).v;
  return region < nic_->mrs.size() && nic_->mrs[region].lkey == lkey && nic_->mrs[region].owner == this;
}

const Attributes& Context::attributes() const { return nic_->attributes(); }
Connections Context::connections() const { return Connections(nic_); }

// --- memory ---

Outcome<PdId> Context::alloc_pd() {
  const Owned owned(nic_->ownership());
  const auto pd = nic_->device().alloc_pd();
  if (pd) nic_->pd_owners[pd->v] = this;
  return pd;
}

Outcome<void> Context::dealloc_pd(PdId pd) {
  const Owned owned(nic_->ownership());
  if (!owns(pd)) return fail(Errc::kNotFound);
  const auto done = nic_->device().dealloc_pd(pd);
  if (done) nic_->pd_owners[pd.v] = nullptr;
  return done;
}

Outcome<Mr> Context::register_mr(PdId pd, void* memory, std::uint64_t length, std::uint64_t iova,
                                 std::uint8_t access) {
  guard_program_memory();
  if (!is_mapped(memory, length, writable(access))) return fail(Errc::kFault);
  const Owned owned(nic_->ownership());
  if (!owns(pd)) return fail(Errc::kInvalid);
  const auto info = nic_->device().register_mr(pd, iova, length, access);
  if (!info) return fail(info.error());
  nic_->shard().set_region(info->region, static_cast<std::uint8_t*>(memory));
  nic_->mrs[info->region.v] = {info->lkey, this, memory, length, access};
  return Mr{info->lkey, info->rkey};
}

Outcome<void> Context::reregister_mr(Key lkey, std::uint8_t changes, PdId pd, void* memory,
                                     std::uint64_t length, std::uint8_t access) {
  const bool moves = (changes & kChangeRange) != 0;
  const Owned owned(nic_->ownership());
  if (!owns(lkey)) return fail(Errc::kNotFound);
  if ((changes & kChangePd) != 0 && !owns(pd)) return fail(Errc::kInvalid);
  MrRecord& mr = nic_->mrs[KeyTable::region_of(lkey).v];
  MrRecord will = mr;
  if (moves) will.memory = memory;
  if (moves) will.length = length;
  if ((changes & kChangeAccess) != 0) will.access = access;
  const bool to_be_written = writable(will.access) && !writable(mr.access);
  if ((moves || to_be_written) && !is_mapped(will.memory, will.length, writable(will.access)))
    return fail(Errc::kFault);
  const auto done = nic_->device().reregister_mr(lkey, changes, pd, reinterpret_cast<std::uint64_t>(memory),
                                                 length, access);
  if (!done) return done;
  if (moves) nic_->shard().set_region(KeyTable::region_of(lkey), static_cast<std::uint8_t*>(memory));
  mr = will;
  return {};
}

Outcome<void> Context::deregister_mr(Key lkey) {
  const Owned owned(nic_->ownership());
  if (!owns(lkey)) return fail(Errc::kNotFound);
  const auto done = nic_->device().deregister_mr(lkey);
  if (done) nic_->mrs[KeyTable::region_of(lkey).v].owner = nullptr;
  return done;
}

Outcome<Key> Context::alloc_window(PdId pd, WindowType type) {
  const Owned owned(nic_->ownership());
  if (!owns(pd)) return fail(Errc::kInvalid);
  const auto key = nic_->device().alloc_window(pd, type);
  if (key) nic_->window_owners[KeyTable::region_of(*key).v] = this;
  return key;
}

Outcome<void> Context::dealloc_window(Key key) {
  const Owned owned(nic_->ownership());
  // A window's tag changes with every binding; its index stays.
  const std::uint32_t index = KeyTable::region_of(key).v;
  if (index >= nic_->window_owners.size() || nic_->window_owners[index] != this) return fail(Errc::kNotFound);
  const auto done = nic_->device().dealloc_window(key);
  if (done) nic_->window_owners[index] = nullptr;
  return done;
}

// --- completion channels and queues ---

Outcome<CompletionChannel*> Context::create_channel() {
  auto queue = EventQueue::open();
  if (queue == nullptr) return fail(Errc::kNoMemory);
  const Owned owned(nic_->ownership());
  return nic_->channels.emplace_back(std::make_unique<CompletionChannel>(std::move(queue), this)).get();
}

Outcome<void> Context::destroy_channel(CompletionChannel* channel) {
  const Owned owned(nic_->ownership());
  if (channel->users != 0) return fail(Errc::kBusy);
  std::erase_if(nic_->channels, [&](const auto& c) { return c.get() == channel; });
  return {};
}

int Context::channel_fd(const CompletionChannel* channel) const { return channel->queue->descriptor(); }

Cq* Context::get_cq_event(CompletionChannel* channel) {
  nic_->hand_over();
  AsyncEvent e;
  return channel->queue->take(e) ? e.cq : nullptr;
}

void Context::ack_cq_events(Cq* cq, std::uint32_t count) {
  if (cq->channel != nullptr) cq->channel->queue->acknowledge(record(cq).taken, count);
}

Outcome<Cq*> Context::create_cq(std::uint32_t entries, CompletionChannel* channel, void* cookie) {
  const Owned owned(nic_->ownership());
  if (channel != nullptr && channel->owner != this) return fail(Errc::kInvalid);
  auto cq = std::make_unique<CqRecord>();  // what may fail comes before the Device's part
  const auto id = nic_->device().create_cq(entries);
  if (!id) return fail(id.error());
  cq->id = *id;
  cq->entries = entries;
  cq->channel = channel;
  cq->cookie = cookie;
  cq->owner = this;
  cq->async = events_.get();
  if (channel != nullptr) ++channel->users;
  auto& slot = nic_->cqs[id->v];
  slot = std::move(cq);
  return slot.get();
}

Outcome<void> Context::resize_cq(Cq* cq, std::uint32_t entries) {
  const Owned owned(nic_->ownership());
  const auto done = nic_->device().resize_cq(cq->id, entries);
  if (done) cq->entries = entries;
  return done;
}

Outcome<void> Context::destroy_cq(Cq* cq) {
  std::unique_ptr<CqRecord> gone;
  {
    const Owned owned(nic_->ownership());
    auto taken = take_cq(*nic_, cq->id);
    if (!taken) return fail(taken.error());
    gone = std::move(*taken);
  }
  gone->async->retire(cq, gone->async_taken);
  if (gone->channel == nullptr) return {};
  gone->channel->queue->retire(cq, gone->taken);
  const Owned owned(nic_->ownership());
  --gone->channel->users;  // until here it could not be destroyed
  return {};
}

std::uint32_t Context::poll_cq(Cq* cq, std::span<Completion> out) { return nic_->poll(cq->id, out); }

Outcome<void> Context::request_notify(Cq* cq, bool solicited_only) {
  const Owned owned(nic_->ownership());
  nic_->arm_owned();
  return nic_->device().request_notify(cq->id, solicited_only);
}

// --- queue pairs ---

Outcome<Qp*> Context::create_qp(const QpInit& init, void* cookie) {
  const Attributes& limits = nic_->attributes();
  if (init.caps.max_inline > limits.max_inline) return fail(Errc::kInvalid);
  const Owned owned(nic_->ownership());
  if (!owns(init.pd) || !owns(init.send_cq) || !owns(init.recv_cq)) return fail(Errc::kInvalid);
  if (init.srq != kNoSrq && !owns(init.srq)) return fail(Errc::kInvalid);
  auto qp = std::make_unique<QpRecord>();
  const auto qpn = nic_->device().create_qp(init);
  if (!qpn) return fail(qpn.error());
  qp->qpn = *qpn;
  if (init.type == QpType::kUd) nic_->show_headers_owned();
  qp->granted = *nic_->device().query_qp_init(*qpn);
  qp->cookie = cookie;
  qp->owner = this;
  qp->async = events_.get();
  const std::size_t inline_bytes = std::size_t{qp->granted.caps.max_send_wr} * qp->granted.caps.max_inline;
  if (inline_bytes != 0) qp->inline_area = try_array<std::uint8_t>(inline_bytes);
  if (inline_bytes != 0 && qp->inline_area == nullptr) {
    static_cast<void>(nic_->device().destroy_qp(*qpn));
    return fail(Errc::kNoMemory);
  }
  nic_->shard().set_inline_area(*qpn, qp->inline_area.get());
  auto& slot = nic_->qp_slot(*qpn);
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
  if (nic_->asks() && qp->granted.type == QpType::kRc && (mask & kAttrPath) != 0 &&
      (mask & kAttrDestQpn) != 0) {
    const cm::Known known = nic_->ask(to.peer, attr.dest_qpn);
    record(qp).mode = known.mode;
    path.credit = {std::min<std::uint64_t>(known.capability.buffer_share, kMostCredit)};
  }
  const Owned owned(nic_->ownership());
  nic_->settle_owned();
  const auto done = nic_->modify_owned(*qp, attr, mask, path);
  nic_->settle_owned();  // the credit of what was flushed is for others
  nic_->dispatch_events_owned();
  return done;
}

Outcome<QpAttr> Context::query_qp(const Qp* qp) {
  const Owned owned(nic_->ownership());
  return nic_->device().query_qp(qp->qpn);
}

Outcome<void> Context::destroy_qp(Qp* qp) {
  std::unique_ptr<QpRecord> gone;
  {
    const Owned owned(nic_->ownership());
    if (nic_->shard().memberships().has_groups_of(qp->qpn)) return fail(Errc::kBusy);
    nic_->settle_owned();
    auto taken = take_qp(*nic_, qp->qpn);
    if (!taken) return fail(taken.error());
    gone = std::move(*taken);
    nic_->settle_owned();  // its path credit is for others
  }
  gone->async->retire(qp, gone->async_taken);
  return {};
}

// --- address handles ---

Outcome<AhId> Context::create_ah(PdId pd, const PathAttr& attr) {
  const Owned owned(nic_->ownership());
  if (!owns(pd)) return fail(Errc::kInvalid);
  const auto path = nic_->device().open_path(attr);
  if (!path) return fail(path.error());
  const auto ah = nic_->device().create_ah(pd, *path);
  if (ah) nic_->ahs[ah->v] = {this, *path};
  return ah;
}

Outcome<void> Context::destroy_ah(AhId ah) {
  const Owned owned(nic_->ownership());
  if (ah.v >= nic_->ahs.size() || nic_->ahs[ah.v].owner != this) return fail(Errc::kNotFound);
  const auto done = nic_->device().destroy_ah(ah);
  if (done) nic_->ahs[ah.v].owner = nullptr;
  return done;
}

// --- shared receive queues ---

Outcome<Srq*> Context::create_srq(PdId pd, const SrqCaps& caps, void* cookie) {
  const Owned owned(nic_->ownership());
  if (!owns(pd)) return fail(Errc::kInvalid);
  auto srq = std::make_unique<SrqRecord>();
  const auto id = nic_->device().create_srq(pd, caps);
  if (!id) return fail(id.error());
  srq->id = *id;
  srq->granted = *nic_->device().query_srq(*id);
  srq->cookie = cookie;
  srq->owner = this;
  srq->async = events_.get();
  auto& slot = nic_->srqs[id->v];
  slot = std::move(srq);
  return slot.get();
}

Outcome<void> Context::set_srq_limit(Srq* srq, std::uint32_t limit) {
  const Owned owned(nic_->ownership());
  const auto done = nic_->device().set_srq_limit(srq->id, limit);
  nic_->dispatch_events_owned();  // it may have been reached already
  return done;
}

Outcome<SrqCaps> Context::query_srq(const Srq* srq) {
  const Owned owned(nic_->ownership());
  return nic_->device().query_srq(srq->id);
}

Outcome<void> Context::destroy_srq(Srq* srq) {
  std::unique_ptr<SrqRecord> gone;
  {
    const Owned owned(nic_->ownership());
    auto taken = take_srq(*nic_, srq->id);
    if (!taken) return fail(taken.error());
    gone = std::move(*taken);
  }
  gone->async->retire(srq, gone->async_taken);
  return {};
}

Outcome<void> Context::post_srq_receive(Srq* srq, const RecvWr& wr) {
  const Owned owned(nic_->ownership());
  return nic_->device().post_srq_recv(srq->id, wr);
}

// --- asynchronous events ---

int Context::async_fd() const { return events_->descriptor(); }

bool Context::get_async_event(AsyncEvent& out) { return events_->take(out); }

void Context::ack_async_event(const AsyncEvent& event) { events_->acknowledge(taken_of(event), 1); }

// --- posting ---

void Context::begin_posting() { nic_->begin_posting(); }

Outcome<void> Context::check_send(const Qp* qp, const SendWr& wr, std::uint32_t ahead) {
  return nic_->device().check_send(qp->qpn, wr, ahead);
}

Outcome<void> Context::post_send(Qp* qp, const SendWr& wr) {
  const auto slot = nic_->device().post_send(qp->qpn, wr);
  if (!slot) return fail(slot.error());
  nic_->count_post_owned();
  if (QpRecord& r = record(qp); r.granted.type == QpType::kUd) {
    r.path = nic_->ahs[wr.ah.v].path;
    r.has_path = true;
  }
  if ((wr.flags & kSendInline) != 0) copy_inline(record(qp), *slot, wr);
  return {};
}

Outcome<void> Context::post_receive(Qp* qp, const RecvWr& wr) {
  return nic_->device().post_recv(qp->qpn, wr);
}

void Context::end_posting(Qp* qp) { nic_->end_posting(record(qp)); }

}  // namespace weft::live
