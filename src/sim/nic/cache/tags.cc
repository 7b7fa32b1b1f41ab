#include "sim/nic/cache/tags.h"

#include <bit>

namespace weft::sim {

Tags::Tags(std::uint32_t entries, Replacement replacement, std::uint64_t seed)
    : replacement_(replacement),
      random_(seed),
      slots_(entries),
      buckets_(std::bit_ceil(std::uint64_t{entries} * 2), kNone) {
  CHECK_OP(entries, >, 0);
  if (replacement == Replacement::kRandom) array_.resize(entries);
  for (Slot s = entries; s-- != 0;) {
    slots_[s].chain = unused_;
    unused_ = s;
  }
}

std::uint32_t Tags::bucket(std::uint64_t key) const {
  return static_cast<std::uint32_t>((key * 0x9E37'79B9'7F4A'7C15ULL) >> 32U) &
         static_cast<std::uint32_t>(buckets_.size() - 1);
}

Tags::Slot Tags::find(std::uint64_t key) const {
  Slot s = buckets_[bucket(key)];
  while (s != kNone && slots_[s].key != key) s = slots_[s].chain;
  return s;
}

void Tags::enter(Slot s) {
  Entry& e = slots_[s];
  if (replacement_ == Replacement::kRandom) {
    e.before = evictable_;
    array_[evictable_] = s;
  } else {
    e.before = newest_;
    e.behind = kNone;
    (newest_ == kNone ? oldest_ : slots_[newest_].behind) = s;
    newest_ = s;
  }
  ++evictable_;
}

void Tags::leave(Slot s) {
  Entry& e = slots_[s];
  --evictable_;
  if (replacement_ == Replacement::kRandom) {
    const Slot last = array_[evictable_];
    array_[e.before] = last;
    slots_[last].before = e.before;
  } else {
    (e.before == kNone ? oldest_ : slots_[e.before].behind) = e.behind;
    (e.behind == kNone ? newest_ : slots_[e.behind].before) = e.before;
  }
}

void Tags::drop(Slot s) {
  Slot* at = &buckets_[bucket(slots_[s].key)];
  while (*at != s) at = &slots_[*at].chain;
  *at = slots_[s].chain;
  slots_[s] = {};
  slots_[s].chain = unused_;
  unused_ = s;
  --used_;
}

void Tags::erase(Slot s) {
  CHECK_OP(slots_[s].pins, ==, 0);
  leave(s);
  drop(s);
}

Tags::Slot Tags::insert(std::uint64_t key, Left& left) {
  DCHECK(find(key) == kNone);
  left = {};
  if (unused_ == kNone) {
    CHECK_OP(evictable_, >, 0);
    const Slot victim = replacement_ == Replacement::kLru ? oldest_ : array_[random_.below(evictable_)];
    left = {true, slots_[victim].key, slots_[victim].dirty};
    erase(victim);
  }
  const Slot s = unused_;
  Entry& e = slots_[s];
  unused_ = e.chain;
  e.key = key;
  Slot& head = buckets_[bucket(key)];
  e.chain = head;
  head = s;
  ++used_;
  enter(s);
  return s;
}

void Tags::check_invariants() const {
  std::uint32_t chained = 0;
  for (const Slot head : buckets_) {
    for (Slot s = head; s != kNone; s = slots_[s].chain) {
      CHECK_OP(buckets_[bucket(slots_[s].key)], ==, head);
      CHECK_OP(++chained, <=, used_);
    }
  }
  CHECK_OP(chained, ==, used_);
  if (replacement_ == Replacement::kRandom) return;
  std::uint32_t listed = 0;
  for (Slot s = oldest_; s != kNone; s = slots_[s].behind) {
    CHECK_OP(slots_[s].pins, ==, 0);
    CHECK_OP(++listed, <=, evictable_);
  }
  CHECK_OP(listed, ==, evictable_);
}

bool Cache::look_up(std::uint64_t key) {
  if (const Tags::Slot s = tags_.find(key); s != Tags::kNone) {
    tags_.touch(s);
    ++counters_.hits;
    return true;
  }
  Tags::Left left;
  tags_.insert(key, left);
  counters_.evictions += left.any ? 1U : 0U;
  ++counters_.misses;
  return false;
}

bool Cache::erase(std::uint64_t key) {
  const Tags::Slot s = tags_.find(key);
  if (s == Tags::kNone) return false;
  tags_.erase(s);
  return true;
}

}  // namespace weft::sim
