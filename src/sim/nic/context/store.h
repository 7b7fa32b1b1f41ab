// Where a NIC keeps the contexts of its queue pairs, and how long a stage waits for one. A stage asks for a
// context, goes on with something else, and is granted it later; meanwhile the context stays where it is.
//
//   stage --request--> [ store ] --Grant--> stage --release(dirty)--> [ store ]
//                        |    ^
//                   read |    | fetched            ContextMemory: host memory over PCIe, or on-board DDR
//                        v    |
//                      [ memory ]
//
// What every store promises, and check/context_order.h holds it to:
//   - each request is granted once;
//   - requests of one queue pair are granted in the order in which they were made, across all channels
//     (csRNA §3, C2). Those of different queue pairs may overtake each other;
//   - a context that is granted stays on the chip until it is released, and what was released as dirty
//   reaches
//     the memory before the context is read again.
//
// A store is a machine without a clock: calls bring the time, which never goes back. `next_event` says when
// `advance` has something to do; grants come out of `next_grant` in the order of their times. A grant must
// be given back without waiting for another one, or a small cache may come to a halt. After each call nothing
// is due any more at its time.
//
// The stores: on_chip.h (all contexts), first_come.h (a cache that blocks), non_blocking.h (csRNA §4.3 to
// §4.5). `make_store` builds what a design says; sim/nic/memory.h counts its bytes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/ids.h"
#include "core/base/units.h"
#include "sim/nic/context/observer.h"
#include "sim/nic/context/requester.h"
#include "sim/nic/context/ring.h"
#include "sim/nic/design.h"

namespace weft::sim {

// Who asks (csRNA §4.4). Each requester has indexes of its own; a design may have fewer channels, or more.
enum class StoreChannel : std::uint8_t { kDescriptor, kRequester, kResponder };

inline constexpr std::uint32_t kMostQueuePairs = 1U << 24U;  // a number has 24 bits
// How many queue pairs a NIC can have whose contexts are kept like this.
std::uint32_t most_queue_pairs(const ContextDesign& design);

// Where contexts are that are not on the chip. Reads end in the order in which they began; the owner of the
// store then calls ContextStore::fetched. Writes are posted, and a later read sees them.
class ContextMemory {
 public:
  virtual ~ContextMemory() = default;
  // Does not call the store.
  virtual void read(Qpn qpn, Bytes bytes, Time now) = 0;
  virtual void write(Qpn qpn, Bytes bytes, Time now) = 0;
};

struct ContextRequest {
  Qpn qpn = kNoQpn;
  StoreChannel channel = StoreChannel::kDescriptor;
  std::uint64_t tag = 0;  // comes back with the grant; a store does not look at it
};

struct ContextGrant {
  Qpn qpn = kNoQpn;
  StoreChannel channel = StoreChannel::kDescriptor;
  std::uint16_t index = 0;  // of the channel; free again
  std::uint64_t tag = 0;
  Time asked{};
  Time at{};
};

struct StoreCounters {
  std::uint64_t requests = 0;
  std::uint64_t grants = 0;
  std::uint64_t hits = 0;                // granted from the cache at once
  std::uint64_t misses = 0;              // reads of the memory for a request
  std::uint64_t ordered = 0;             // waited behind an earlier request of their queue pair
  std::uint64_t refetched = 0;           // of those: whose context had left again meanwhile (also a miss)
  std::uint64_t prefetches = 0;          // reads that a prefetch began
  std::uint64_t prefetches_dropped = 0;  // no index was free
  std::uint64_t evictions = 0;
  std::uint64_t write_backs = 0;  // of dirty contexts
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t most_waiting = 0;
  // Two sides of Little's law: time that requests waited, summed up grant by grant; and the number of
  // waiting requests, integrated over time.
  Duration waited{};
  Duration occupied{};
};

class ContextStore {
 public:
  ContextStore(const Design& design, ContextMemory* memory);
  virtual ~ContextStore() = default;
  ContextStore(const ContextStore&) = delete;
  ContextStore& operator=(const ContextStore&) = delete;

  // Whether the channel has a free index. One becomes free when a grant is taken.
  bool can_request(StoreChannel channel) const { return !requesters_[row(channel)].full(); }
  void request(const ContextRequest& request, Time now);
  // The oldest read of the memory has ended.
  void fetched(Qpn qpn, Time now);
  virtual void advance(Time now) = 0;
  // kNever: nothing before the next call.
  virtual Time next_event() const = 0;
  // False: none is due.
  bool next_grant(Time now, ContextGrant& out);
  Time next_grant_at() const { return grants_.empty() ? kNever : grants_.front().at; }
  // One grant is over. `dirty`: it changed the context.
  void release(Qpn qpn, bool dirty, Time now);
  // The queue pair is gone; its context is not written back. It has no requests and no grants.
  void forget(Qpn qpn, Time now);
  void observe(StoreObserver* observer) { seen_.observer = observer; }

  // Whether the send queue's address is on the chip without the context. If so the WQE read may begin, and
  // the store brings the context in meanwhile (csRNA §4.5).
  virtual bool queue_address(Qpn /*qpn*/, Time /*now*/) { return false; }

  const ContextDesign& design() const { return design_; }
  const StoreCounters& counters() const { return counters_; }
  std::uint32_t waiting() const { return waiting_; }
  // Of contexts, on the chip.
  virtual bool holds(Qpn qpn) const = 0;
  virtual void check_invariants() const {}

 protected:
  // What of a request travels inside a store. Everything else waits with its requester, under the index.
  struct Asked {
    Qpn qpn = kNoQpn;
    std::uint16_t channel = 0;
    std::uint16_t index = 0;
  };
  // Each is followed by `advance`, and came after one.
  virtual void accept(const Asked& asked, Time now) = 0;
  virtual void arrive(Qpn qpn, Time now) = 0;
  virtual void let_go(Qpn qpn, bool dirty, Time now) = 0;
  virtual void drop(Qpn qpn) = 0;
  // The answer leaves `depth_` after `now`.
  void grant(const Asked& asked, Time now);

  // A unit takes a request each `interval_`.
  const ContextDesign design_;
  const Duration interval_;
  const Duration depth_;
  ContextMemory& memory() { return seen_; }
  StoreCounters counters_;
  std::vector<Requester> requesters_;  // of each channel

 private:
  std::size_t row(StoreChannel c) const {
    return std::min<std::size_t>(static_cast<std::size_t>(c), requesters_.size() - 1);
  }
  void integrate(Time now);
  // The memory, in the eyes of the observer.
  struct Seen final : ContextMemory {
    explicit Seen(ContextMemory* m) : memory(m) {}
    void read(Qpn qpn, Bytes bytes, Time now) override;
    void write(Qpn qpn, Bytes bytes, Time now) override;
    ContextMemory* memory;
    StoreObserver* observer = nullptr;
  };

  Seen seen_;
  Ring<ContextGrant> grants_;
  std::uint32_t waiting_ = 0;
  Time integrated_{};
};

// `memory` may be null for a store that holds all contexts. The design is valid.
std::unique_ptr<ContextStore> make_store(const Design& design, ContextMemory* memory);

}  // namespace weft::sim
