// Which keys a cache of a fixed number of entries holds, and which one leaves for a new one: the least
// recently used, or one drawn at random. Contexts, translations and WQEs are kept by the same machinery; what
// the entries hold is their caches' business.
//
// An entry that is pinned does not leave. LRU: a list through the entries that may leave, the oldest use
// first; an entry comes to its end when it is used, and when its last pin goes. Random: those entries stand
// in an array. Either way every operation takes constant time, and nothing allocates after the constructor.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/base/prng.h"
#include "sim/nic/design.h"

namespace weft::sim {

class Tags {
 public:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = 0xFFFF'FFFF;

  Tags(std::uint32_t entries, Replacement replacement, std::uint64_t seed);

  std::uint32_t entries() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t used() const { return used_; }
  std::uint32_t pinned() const { return used_ - evictable_; }
  // Entries that a new key could have.
  std::uint32_t free() const { return entries() - pinned(); }

  Slot find(std::uint64_t key) const;
  // The entry was used just now.
  void touch(Slot s) {
    if (slots_[s].pins != 0) return;
    leave(s);
    enter(s);
  }
  void pin(Slot s) {
    if (slots_[s].pins++ == 0) leave(s);
  }
  void unpin(Slot s) {
    CHECK_OP(slots_[s].pins, >, 0);
    if (--slots_[s].pins == 0) enter(s);
  }

  struct Left {
    bool any = false;
    std::uint64_t key = 0;
    bool dirty = false;
  };
  // The key is in no entry, and some entry is free. What left for it comes back.
  Slot insert(std::uint64_t key, Left& left);
  // The entry is not pinned.
  void erase(Slot s);

  std::uint64_t key(Slot s) const { return slots_[s].key; }
  std::uint32_t pins(Slot s) const { return slots_[s].pins; }
  bool dirty(Slot s) const { return slots_[s].dirty; }
  void set_dirty(Slot s) { slots_[s].dirty = true; }
  void check_invariants() const;

 private:
  struct Entry {
    std::uint64_t key = 0;
    Slot chain = kNone;                   // the next entry of the same bucket, or of the unused ones
    Slot before = kNone, behind = kNone;  // LRU: neighbours. Random: `before` is the place in the array
    std::uint32_t pins = 0;
    bool dirty = false;
  };
  std::uint32_t bucket(std::uint64_t key) const;
  void enter(Slot s);
  void leave(Slot s);
  void drop(Slot s);  // out of its bucket, to the unused ones

  Replacement replacement_;
  Prng random_;
  std::vector<Entry> slots_;
  std::vector<Slot> buckets_;
  std::vector<Slot> array_;  // random: entries that may leave
  Slot oldest_ = kNone, newest_ = kNone;
  Slot unused_ = kNone;
  std::uint32_t used_ = 0;
  std::uint32_t evictable_ = 0;
};

// A table on the chip of things that lie elsewhere, where only presence counts: look_up says whether it was a
// hit, and after a miss the key is there.
struct CacheCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t evictions = 0;
};

class Cache {
 public:
  Cache(std::uint32_t entries, Replacement replacement, std::uint64_t seed)
      : tags_(entries, replacement, seed) {}
  bool look_up(std::uint64_t key);
  bool holds(std::uint64_t key) const { return tags_.find(key) != Tags::kNone; }
  // False: it was not there.
  bool erase(std::uint64_t key);
  std::uint32_t used() const { return tags_.used(); }
  std::uint32_t entries() const { return tags_.entries(); }
  const CacheCounters& counters() const { return counters_; }

 private:
  Tags tags_;
  CacheCounters counters_;
};

}  // namespace weft::sim
