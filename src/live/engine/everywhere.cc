// The verbs of context.h about what is in every shard under one number: domains, regions, address handles,
// completion queues (docs/ARCHITECTURE.md#shards). What makes or ends one of them owns every shard; with one
// shard, that is the ownership that every call takes. What is in one shard is in context.cc.
#include <algorithm>
#include <vector>

#include "core/transport/key_table.h"
#include "core/transport/several_devices.h"
#include "live/engine/context.h"
#include "live/engine/nic_state.h"
#include "live/engine/sizing.h"
#include "live/wires/program_memory.h"

namespace weft::live {
namespace {

// With the right to bind windows a region may be written through them.
bool writable(std::uint8_t access) {
  return (access & (kLocalWrite | kRemoteWrite | kRemoteAtomic | kMwBind)) != 0;
}

// A queue without queue pairs, whose mask is empty, is looked after by the first shard.
bool has(std::uint32_t mask, const Nic& nic) { return ((mask == 0 ? 1U : mask) >> nic.number() & 1U) != 0; }

// Makes one thing in every shard under the same number, or nowhere. Every shard must be owned. The Devices'
// tables are alike, for nothing else changes them, so the number differs only where memory ran out on the
// way; then it is undone like a failure.
template <class Make, class Undo>
auto make_in_all(Nic& first, const Make& make, const Undo& undo) -> decltype(make(first)) {
  struct Undoing {
    ~Undoing() {
      for (std::size_t i = 0; i < made.size(); ++i) undo(*shards[i], made[i]);
    }
    std::span<Nic* const> shards;
    const Undo& undo;
    std::vector<typename decltype(make(first))::value_type> made;
  };
  Undoing so_far{first.shards(), undo, {}};
  so_far.made.reserve(first.shards().size());
  for (Nic* const nic : first.shards()) {
    const auto one = make(*nic);
    if (!one) return fail(one.error());
    so_far.made.push_back(*one);
    if (so_far.made.back() != so_far.made.front()) return fail(Errc::kNoMemory);
  }
  const auto made = so_far.made.front();
  so_far.made.clear();
  return made;
}

}  // namespace

Outcome<std::unique_ptr<CqRecord>> take_cq_owned(Nic& first, CqId id) {
  for (Nic* const nic : first.shards()) {
    nic->dispatch_events_owned();
    if (is_used(nic->device().engine(), id)) return fail(Errc::kBusy);
  }
  for (Nic* const nic : first.shards()) {
    if (const auto done = nic->device().destroy_cq(id); !done) return fail(done.error());
  }
  return std::move(first.shared().cqs[id.v]);
}
// --- memory ---

Outcome<PdId> Context::alloc_pd() {
  const OwnedEverywhere owned(*nic_);
  const auto pd = make_in_all(
      *nic_, [](Nic& nic) { return nic.device().alloc_pd(); },
      [](Nic& nic, PdId made) { static_cast<void>(nic.device().dealloc_pd(made)); });
  if (pd) nic_->shared().pd_owners[pd->v] = this;
  return pd;
}

Outcome<void> Context::dealloc_pd(PdId pd) {
  const OwnedEverywhere owned(*nic_);
  if (!owns(pd)) return fail(Errc::kNotFound);
  for (Nic* const nic : nic_->shards()) {
    if (is_used(nic->device().engine(), pd)) return fail(Errc::kBusy);
  }
  for (Nic* const nic : nic_->shards()) {
    if (const auto done = nic->device().dealloc_pd(pd); !done) return done;
  }
  nic_->shared().pd_owners[pd.v] = nullptr;
  return {};
}

Outcome<Mr> Context::register_mr(PdId pd, void* memory, std::uint64_t length, std::uint64_t iova,
                                 std::uint8_t access) {
  guard_program_memory();
  if (!is_mapped(memory, length, writable(access))) return fail(Errc::kFault);
  const OwnedEverywhere owned(*nic_);
  if (!owns(pd)) return fail(Errc::kInvalid);
  const auto key = make_in_all(
      *nic_,
      [&](Nic& nic) -> Outcome<Key> {
        const auto info = nic.device().register_mr(pd, iova, length, access);
        if (!info) return fail(info.error());
        return info->lkey;
      },
      [](Nic& nic, Key made) { static_cast<void>(nic.device().deregister_mr(made)); });
  if (!key) return fail(key.error());
  const RegionId region = KeyTable::region_of(*key);
  for (Nic* const nic : nic_->shards()) nic->shard().set_region(region, static_cast<std::uint8_t*>(memory));
  nic_->shared().mrs[region.v] = {*key, this, memory, length, access};
  return Mr{*key, *key};
}

// What one Device takes or refuses, all do: no window is ever bound where there are several.
Outcome<void> Context::reregister_mr(Key lkey, std::uint8_t changes, PdId pd, void* memory,
                                     std::uint64_t length, std::uint8_t access) {
  const bool moves = (changes & kChangeRange) != 0;
  const OwnedEverywhere owned(*nic_);
  if (!owns(lkey)) return fail(Errc::kNotFound);
  if ((changes & kChangePd) != 0 && !owns(pd)) return fail(Errc::kInvalid);
  MrRecord& mr = nic_->shared().mrs[KeyTable::region_of(lkey).v];
  MrRecord will = mr;
  if (moves) will.memory = memory;
  if (moves) will.length = length;
  if ((changes & kChangeAccess) != 0) will.access = access;
  const bool to_be_written = writable(will.access) && !writable(mr.access);
  if ((moves || to_be_written) && !is_mapped(will.memory, will.length, writable(will.access)))
    return fail(Errc::kFault);
  for (Nic* const nic : nic_->shards()) {
    const auto done = nic->device().reregister_mr(lkey, changes, pd, reinterpret_cast<std::uint64_t>(memory),
                                                  length, access);
    if (!done) return done;
    if (moves) nic->shard().set_region(KeyTable::region_of(lkey), static_cast<std::uint8_t*>(memory));
  }
  mr = will;
  return {};
}

Outcome<void> Context::deregister_mr(Key lkey) {
  const OwnedEverywhere owned(*nic_);
  if (!owns(lkey)) return fail(Errc::kNotFound);
  for (Nic* const nic : nic_->shards()) {
    if (const auto done = nic->device().deregister_mr(lkey); !done) return done;
  }
  nic_->shared().mrs[KeyTable::region_of(lkey).v].owner = nullptr;
  return {};
}

Outcome<Key> Context::alloc_window(PdId pd, WindowType type) {
  if (nic_->shards().size() > 1) return fail(Errc::kUnsupported);
  const Owned owned(nic_->ownership());
  if (!owns(pd)) return fail(Errc::kInvalid);
  const auto key = nic_->device().alloc_window(pd, type);
  if (key) nic_->shared().window_owners[KeyTable::region_of(*key).v] = this;
  return key;
}

Outcome<void> Context::dealloc_window(Key key) {
  const OwnedEverywhere owned(*nic_);
  // A window's tag changes with every binding; its index stays.
  const std::uint32_t index = KeyTable::region_of(key).v;
  auto& owners = nic_->shared().window_owners;
  if (index >= owners.size() || owners[index] != this) return fail(Errc::kNotFound);
  const auto done = nic_->device().dealloc_window(key);
  if (done) owners[index] = nullptr;
  return done;
}

// --- completion channels and queues ---

Outcome<CompletionChannel*> Context::create_channel() {
  auto queue = EventQueue::open();
  if (queue == nullptr) return fail(Errc::kNoDescriptor);
  const Owned owned(nic_->ownership());
  return nic_->shared()
      .channels.emplace_back(std::make_unique<CompletionChannel>(std::move(queue), this))
      .get();
}

Outcome<void> Context::destroy_channel(CompletionChannel* channel) {
  const Owned owned(nic_->ownership());
  if (channel->users != 0) return fail(Errc::kBusy);
  std::erase_if(nic_->shared().channels, [&](const auto& c) { return c.get() == channel; });
  return {};
}

int Context::channel_fd(const CompletionChannel* channel) const { return channel->queue->descriptor(); }

Cq* Context::get_cq_event(CompletionChannel* channel) {
  const std::uint32_t mask = channel->shards.load();
  for (Nic* const nic : nic_->shards()) {
    if (has(mask, *nic)) nic->hand_over();
  }
  AsyncEvent e;
  return channel->queue->take(e) ? e.cq : nullptr;
}

void Context::ack_cq_events(Cq* cq, std::uint32_t count) {
  if (cq->channel != nullptr) cq->channel->queue->acknowledge(record(cq).taken, count);
}

Outcome<Cq*> Context::create_cq(std::uint32_t entries, CompletionChannel* channel, void* cookie) {
  const OwnedEverywhere owned(*nic_);
  if (channel != nullptr && channel->owner != this) return fail(Errc::kInvalid);
  auto cq = std::make_unique<CqRecord>();  // what may fail comes before the Devices' part
  const auto id = make_in_all(
      *nic_, [&](Nic& nic) { return nic.device().create_cq(entries); },
      [](Nic& nic, CqId made) { static_cast<void>(nic.device().destroy_cq(made)); });
  if (!id) return fail(id.error());
  cq->id = *id;
  cq->entries = entries;
  cq->channel = channel;
  cq->cookie = cookie;
  cq->owner = this;
  cq->async = events_.get();
  if (channel != nullptr) ++channel->users;
  auto& slot = nic_->shared().cqs[id->v];
  slot = std::move(cq);
  return slot.get();
}

// Several shards keep the room that they have when the queue becomes smaller, so that none can fail behind
// another.
// What may leave at once leaves first: a datagram is complete then, and its entry needs room.
Outcome<void> Context::resize_cq(Cq* cq, std::uint32_t entries) {
  const OwnedEverywhere owned(*nic_);
  if (entries < cq->entries) {
    for (Nic* const nic : nic_->shards()) nic->settle_owned();
  }
  if (nic_->shards().size() > 1) {
    std::uint64_t waiting = 0;
    for (Nic* const nic : nic_->shards()) waiting += nic->device().completions_waiting(cq->id);
    if (entries == 0 || entries < waiting || cq->overran.load()) return fail(Errc::kInvalid);
  }
  for (Nic* const nic : nic_->shards()) {
    if (nic_->shards().size() > 1 && entries <= cq->entries) break;
    if (const auto done = nic->device().resize_cq(cq->id, entries); !done) return done;
  }
  cq->entries = entries;
  return {};
}

Outcome<void> Context::destroy_cq(Cq* cq) {
  std::unique_ptr<CqRecord> gone;
  {
    const OwnedEverywhere owned(*nic_);
    auto taken = take_cq_owned(*nic_, cq->id);
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

std::uint32_t Context::poll_cq(Cq* cq, std::span<Completion> out) {
  if (nic_->shards().size() == 1) return nic_->poll(cq->id, out);
  return poll_in_turns(cq, out);
}

// A poll that finds nothing drives each shard that has queue pairs of this queue. One that finds something
// takes from the others what is there: a program that gets less than it asked for takes the queue for empty.
std::uint32_t Context::poll_in_turns(Cq* cq, std::span<Completion> out) {
  CqRecord& r = record(cq);
  const auto shards = nic_->shards();
  const std::uint32_t mask = r.shards.load(std::memory_order_relaxed);
  const std::uint32_t begin = r.turn.load(std::memory_order_relaxed);
  std::size_t n = 0;
  for (std::size_t i = 0; i < shards.size() && n < out.size(); ++i) {
    Nic& nic = *shards[(begin + i) % shards.size()];
    if (!has(mask, nic)) continue;
    const std::size_t got =
        n == 0 ? nic.poll(cq->id, out) : nic.collect(cq->id, out.subspan(n, out.size() - n));
    if (n == 0 && got != 0) r.turn.store(nic.number() + 1, std::memory_order_relaxed);
    n += got;
  }
  return static_cast<std::uint32_t>(n);
}

Outcome<void> Context::request_notify(Cq* cq, bool solicited_only) {
  if (nic_->shards().size() > 1) return request_notify_in_all(cq, solicited_only);
  const Owned owned(nic_->ownership());
  nic_->arm_owned();
  return nic_->device().request_notify(cq->id, solicited_only);
}

// Every shard of the queue is armed, and the first that has something takes `wanted` away, so that there is
// one event (Nic::dispatch_events_owned). The others stay armed until the next arming, which begins anew.
Outcome<void> Context::request_notify_in_all(Cq* cq, bool solicited_only) {
  CqRecord& r = record(cq);
  std::uint8_t was = 0;
  if (solicited_only)
    r.wanted.compare_exchange_strong(was, kWakeForSolicited);  // who waits for any entry goes on doing so
  else
    was = r.wanted.exchange(kWakeForAny);
  const std::uint32_t mask = r.shards.load();
  for (Nic* const nic : nic_->shards()) {
    if (!has(mask, *nic)) continue;
    const Owned owned(nic->ownership());
    nic->arm_owned();
    const auto done = was == 0 ? arm_anew(nic->device(), cq->id, solicited_only)
                               : nic->device().request_notify(cq->id, solicited_only);
    if (!done) return done;
  }
  return {};
}

// From now on the queue is polled and armed in this shard, too. Either who arms it sees the shard here, or
// this sees that it is armed.
void Context::report_to(Cq* cq, Nic& shard) {
  CqRecord& r = record(cq);
  const std::uint32_t bit = 1U << shard.number();
  if ((r.shards.fetch_or(bit) & bit) != 0) return;
  if (r.channel != nullptr) r.channel->shards.fetch_or(bit);
  const std::uint8_t wanted = r.wanted.load();
  if (wanted == 0) return;
  shard.arm_owned();
  static_cast<void>(shard.device().request_notify(cq->id, wanted == kWakeForSolicited));
}

// --- address handles ---

// Its path is another row in every shard.
Outcome<AhId> Context::create_ah(PdId pd, const PathAttr& attr) {
  const OwnedEverywhere owned(*nic_);
  if (!owns(pd)) return fail(Errc::kInvalid);
  return make_in_all(
      *nic_,
      [&](Nic& nic) -> Outcome<AhId> {
        const auto path = nic.device().open_path(attr);
        if (!path) return fail(path.error());
        const auto ah = nic.device().create_ah(pd, *path);
        if (ah) nic.ahs[ah->v] = {this, *path};
        return ah;
      },
      [](Nic& nic, AhId made) {
        static_cast<void>(nic.device().destroy_ah(made));
        nic.ahs[made.v].owner = nullptr;
      });
}

Outcome<void> Context::destroy_ah(AhId ah) {
  const OwnedEverywhere owned(*nic_);
  if (ah.v >= nic_->ahs.size() || nic_->ahs[ah.v].owner != this) return fail(Errc::kNotFound);
  for (Nic* const nic : nic_->shards()) {
    if (const auto done = nic->device().destroy_ah(ah); !done) return done;
    nic->ahs[ah.v].owner = nullptr;
  }
  return {};
}

}  // namespace weft::live
