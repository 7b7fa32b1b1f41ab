// The verbs of context.h over a Nic: lookups, ownership, records; the protocol is the Device's.
#include "live/engine/context.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "live/engine/nic_state.h"

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

}  // namespace

Result<std::unique_ptr<Context>> Context::open(std::shared_ptr<Nic> nic) {
  auto events = EventQueue::open();
  if (events == nullptr) return fail(std::string("cannot open an eventfd: ") + std::strerror(errno));
  return std::unique_ptr<Context>(new Context(std::move(nic), std::move(events)));
}

Context::Context(std::shared_ptr<Nic> nic, std::unique_ptr<EventQueue> events)
    : nic_(std::move(nic)), events_(std::move(events)) {}

// Queue pairs before their queues, queues before their channels, regions before their domain. Events
// that were taken and never acknowledged do not hold up a closing context.
Context::~Context() {
  for (auto& qp : nic_->qps) {
    if (qp == nullptr || qp->owner != this) continue;
    events_->acknowledge(qp->async_taken, UINT32_MAX);
    destroy_qp(qp.get());
  }
  for (auto& srq : nic_->srqs) {
    if (srq == nullptr || srq->owner != this) continue;
    events_->acknowledge(srq->async_taken, UINT32_MAX);
    destroy_srq(srq.get());
  }
  for (auto& cq : nic_->cqs) {
    if (cq == nullptr || cq->owner != this) continue;
    ack_cq_events(cq.get(), UINT32_MAX);
    events_->acknowledge(cq->async_taken, UINT32_MAX);
    destroy_cq(cq.get());
  }
  for (auto& [channel, owner] : nic_->channels) {
    if (owner == this) destroy_channel(channel.get());
  }
  const Owned owned(nic_->ownership());
  for (auto& [key, owner] : nic_->windows) {
    if (owner == this && nic_->device().dealloc_window(key)) owner = nullptr;
  }
  std::erase_if(nic_->windows, [](const auto& w) { return w.second == nullptr; });
  for (auto& [key, owner] : nic_->mrs) {
    if (owner == this && nic_->device().deregister_mr(key)) owner = nullptr;
  }
  for (std::size_t i = 0; i < nic_->ahs.size(); ++i) {
    if (nic_->ahs[i].owner != this) continue;
    if (nic_->device().destroy_ah({static_cast<std::uint32_t>(i)})) nic_->ahs[i].owner = nullptr;
  }
  for (std::size_t i = 0; i < nic_->pd_owners.size(); ++i) {
    if (nic_->pd_owners[i] != this) continue;
    if (nic_->device().dealloc_pd({static_cast<std::uint32_t>(i)})) nic_->pd_owners[i] = nullptr;
  }
}

const Attributes& Context::attributes() const { return nic_->attributes(); }

// --- memory ---

Outcome<PdId> Context::alloc_pd() {
  const Owned owned(nic_->ownership());
  const auto pd = nic_->device().alloc_pd();
  if (pd) nic_->pd_owners[pd->v] = this;
  return pd;
}

Outcome<void> Context::dealloc_pd(PdId pd) {
  const Owned owned(nic_->ownership());
  const auto done = nic_->device().dealloc_pd(pd);
  if (done) nic_->pd_owners[pd.v] = nullptr;
  return done;
}

Outcome<Mr> Context::register_mr(PdId pd, void* memory, std::uint64_t length, std::uint64_t iova,
                                 std::uint8_t access) {
  const Owned owned(nic_->ownership());
  const auto info = nic_->device().register_mr(pd, iova, length, access);
  if (!info) return fail(info.error());
  nic_->shard().set_region(info->region, static_cast<std::uint8_t*>(memory));
  nic_->mrs[info->region.v] = {info->lkey, this};
  return Mr{info->lkey, info->rkey};
}

Outcome<void> Context::deregister_mr(Key lkey) {
  const Owned owned(nic_->ownership());
  const auto done = nic_->device().deregister_mr(lkey);
  if (done) {
    for (auto& [key, owner] : nic_->mrs) {
      if (key == lkey) owner = nullptr;
    }
  }
  return done;
}

Outcome<Key> Context::alloc_window(PdId pd, WindowType type) {
  const Owned owned(nic_->ownership());
  const auto key = nic_->device().alloc_window(pd, type);
  if (key) nic_->windows.emplace_back(*key, this);
  return key;
}

Outcome<void> Context::dealloc_window(Key key) {
  const Owned owned(nic_->ownership());
  const auto done = nic_->device().dealloc_window(key);
  // A window's tag changes with every binding; its index stays.
  if (done) std::erase_if(nic_->windows, [&](const auto& w) { return (w.first.v ^ key.v) < 256; });
  return done;
}

// --- completion channels and queues ---

Outcome<CompletionChannel*> Context::create_channel() {
  auto queue = EventQueue::open();
  if (queue == nullptr) return fail(Errc::kNoMemory);
  const Owned owned(nic_->ownership());
  auto& slot = nic_->channels.emplace_back(std::make_unique<CompletionChannel>(std::move(queue)), this);
  return slot.first.get();
}

Outcome<void> Context::destroy_channel(CompletionChannel* channel) {
  const Owned owned(nic_->ownership());
  if (channel->users != 0) return fail(Errc::kBusy);
  std::erase_if(nic_->channels, [&](const auto& c) { return c.first.get() == channel; });
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
  const auto id = nic_->device().create_cq(entries);
  if (!id) return fail(id.error());
  auto cq = std::make_unique<CqRecord>();
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
  CqRecord& r = record(cq);
  std::unique_ptr<CqRecord> gone;
  {
    const Owned owned(nic_->ownership());
    nic_->dispatch_events_owned();  // none may come after this
    const auto done = nic_->device().destroy_cq(cq->id);
    if (!done) return done;
    gone = std::move(nic_->cqs[cq->id.v]);
    if (r.channel != nullptr) --r.channel->users;
  }
  if (r.channel != nullptr) r.channel->queue->retire(cq, r.taken);
  r.async->retire(cq, r.async_taken);
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
  const auto qpn = nic_->device().create_qp(init);
  if (!qpn) return fail(qpn.error());
  auto qp = std::make_unique<QpRecord>();
  qp->qpn = *qpn;
  qp->granted = *nic_->device().query_qp_init(*qpn);
  qp->cookie = cookie;
  qp->owner = this;
  qp->async = events_.get();
  const std::size_t inline_bytes = std::size_t{qp->granted.caps.max_send_wr} * qp->granted.caps.max_inline;
  if (inline_bytes != 0) qp->inline_area = std::make_unique<std::uint8_t[]>(inline_bytes);
  nic_->shard().set_inline_area(*qpn, qp->inline_area.get());
  auto& slot = nic_->qp_slot(*qpn);
  slot = std::move(qp);
  return slot.get();
}

Outcome<PathId> Context::open_path(const wire::Address& peer) {
  const Owned owned(nic_->ownership());
  return nic_->device().open_path({.peer = peer});
}

wire::Address Context::path_peer(PathId path) const {
  const Owned owned(nic_->ownership());
  return nic_->device().path(path).peer;
}

Outcome<void> Context::modify_qp(Qp* qp, const QpAttr& attr, std::uint32_t mask) {
  const Owned owned(nic_->ownership());
  nic_->settle_owned();
  QpAttr moded = attr;
  moded.mode = nic_->mode();
  const auto done = nic_->device().modify_qp(qp->qpn, moded, mask, nic_->clock().now());
  if (done && (mask & kAttrPath) != 0) {
    record(qp).path = attr.path;
    record(qp).has_path = true;
  }
  nic_->dispatch_events_owned();
  return done;
}

Outcome<QpAttr> Context::query_qp(const Qp* qp) {
  const Owned owned(nic_->ownership());
  return nic_->device().query_qp(qp->qpn);
}

Outcome<void> Context::destroy_qp(Qp* qp) {
  QpRecord& r = record(qp);
  std::unique_ptr<QpRecord> gone;
  {
    const Owned owned(nic_->ownership());
    nic_->settle_owned();
    nic_->farewell_owned(qp->qpn);
    nic_->dispatch_events_owned();
    const auto done = nic_->device().destroy_qp(qp->qpn);
    if (!done) return done;
    nic_->shard().set_inline_area(qp->qpn, nullptr);
    gone = std::move(nic_->qp_slot(qp->qpn));
  }
  r.async->retire(qp, r.async_taken);
  return {};
}

// --- address handles ---

Outcome<AhId> Context::create_ah(PdId pd, const wire::Address& peer) {
  const Owned owned(nic_->ownership());
  const auto path = nic_->device().open_path({.peer = peer});
  if (!path) return fail(path.error());
  const auto ah = nic_->device().create_ah(pd, *path);
  if (ah) nic_->ahs[ah->v] = {this, *path};
  return ah;
}

Outcome<void> Context::destroy_ah(AhId ah) {
  const Owned owned(nic_->ownership());
  const auto done = nic_->device().destroy_ah(ah);
  if (done) nic_->ahs[ah.v].owner = nullptr;
  return done;
}

// --- shared receive queues ---

Outcome<Srq*> Context::create_srq(PdId pd, const SrqCaps& caps, void* cookie) {
  const Owned owned(nic_->ownership());
  const auto id = nic_->device().create_srq(pd, caps);
  if (!id) return fail(id.error());
  auto srq = std::make_unique<SrqRecord>();
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
  return nic_->device().set_srq_limit(srq->id, limit);
}

Outcome<SrqCaps> Context::query_srq(const Srq* srq) {
  const Owned owned(nic_->ownership());
  return nic_->device().query_srq(srq->id);
}

Outcome<void> Context::destroy_srq(Srq* srq) {
  SrqRecord& r = record(srq);
  std::unique_ptr<SrqRecord> gone;
  {
    const Owned owned(nic_->ownership());
    nic_->dispatch_events_owned();
    const auto done = nic_->device().destroy_srq(srq->id);
    if (!done) return done;
    gone = std::move(nic_->srqs[srq->id.v]);
  }
  r.async->retire(srq, r.async_taken);
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

Outcome<void> Context::post_send(Qp* qp, const SendWr& wr) {
  const auto slot = nic_->device().post_send(qp->qpn, wr, {});
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
