// The pending events of a simulation, earliest first; equal times in order of insertion.
//
// An event is 16 bytes and carries no data: it says which actor wakes up when. What the actor then
// does follows from its own state. An event that has become pointless is harmless, so no event is ever
// cancelled: a timer that moved to a later time is woken by its old event and sees that it is too early.
//
//   at     picoseconds                                       64 bits
//   order  | last, 1 bit | serial number, 39 bits | actor, 24 bits |   ties: the earlier push wins, but
//            what was pushed as `last` comes after everything else of its time
//
// Structure: a wheel of buckets for the near future, a 4-ary heap for everything else.
//
//        open              horizon = 4096 buckets of 2^shift ps
//          v
//   ... [ sorted ][ list ][ list ] ... [ list ]     far future, and pushes into the open bucket: heap
//
// A push into the wheel is O(1); when a bucket's turn comes its few events are sorted into `front_`.
// A pop compares the head of `front_` with the top of the heap, so events need never migrate from one
// to the other. The bucket width follows the load (`retune`); it decides speed only: the order of pops
// is fixed by (at, order) alone and is the same bytes on every machine.
//
// Considered instead: a binary or 4-ary heap alone (log n cache misses; 2 to 3 times slower from 4096
// events up, see hold_main.cc), a ladder queue (same speed here, three times the code).
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/units.h"

namespace weft::sim {

struct WakeUp {
  std::int64_t at_ps = 0;
  std::uint64_t order = 0;
  static constexpr unsigned kActorBits = 24;
  constexpr std::uint32_t actor() const {
    return static_cast<std::uint32_t>(order) & ((1U << kActorBits) - 1U);
  }
  constexpr bool before(const WakeUp& o) const { return key() < o.key(); }

 private:
  __extension__ using Wide = unsigned __int128;
  constexpr Wide key() const { return (static_cast<Wide>(static_cast<std::uint64_t>(at_ps)) << 64U) | order; }
};
static_assert(sizeof(WakeUp) == 16);

// A 4-ary min-heap of events. Part of EventQueue; on its own, the yardstick of the benchmark.
class EventHeap {
 public:
  bool empty() const { return events_.empty(); }
  std::size_t size() const { return events_.size(); }
  const WakeUp& top() const { return events_.front(); }
  void push(WakeUp e) {
    std::size_t i = events_.size();
    events_.push_back(e);
    while (i != 0) {
      const std::size_t parent = (i - 1U) / 4U;
      if (!e.before(events_[parent])) break;
      events_[i] = events_[parent];
      i = parent;
    }
    events_[i] = e;
  }
  WakeUp pop() {
    const WakeUp result = events_.front();
    const WakeUp last = events_.back();
    events_.pop_back();
    const std::size_t n = events_.size();
    if (n == 0) return result;
    std::size_t i = 0;
    for (;;) {
      const std::size_t child = 4U * i + 1U;
      if (child >= n) break;
      std::size_t least = child;
      const std::size_t end = child + 4U < n ? child + 4U : n;
      for (std::size_t k = child + 1U; k < end; ++k) {
        if (events_[k].before(events_[least])) least = k;
      }
      if (!events_[least].before(last)) break;
      events_[i] = events_[least];
      i = least;
    }
    events_[i] = last;
    return result;
  }
  void take_all(std::vector<WakeUp>& out) {
    out.insert(out.end(), events_.begin(), events_.end());
    events_.clear();
  }

 private:
  std::vector<WakeUp> events_;
};

class EventQueue {
 public:
  EventQueue();

  // `at` is not before the event popped last. `actor` fits in 24 bits.
  void push(Time at, std::uint32_t actor, bool last = false) {
    const WakeUp e{at.ps, (last ? kLast : 0) | (serial_ << WakeUp::kActorBits) | actor};
    insert(e);
    if ((++serial_ & (kRetuneEvery - 1U)) == 0) retune();
  }

  // Takes the earliest event if it is not later than `limit`.
  bool pop(Time limit, WakeUp& out) {
    for (;;) {
      if (front_at_ != front_.size()) [[likely]] {
        const WakeUp& head = front_[front_at_];
        if (!heap_.empty() && heap_.top().before(head)) return pop_heap(limit, out);
        if (head.at_ps > limit.ps) return false;
        out = head;
        ++front_at_;
        last_ps_ = out.at_ps;
        return true;
      }
      if (in_wheel_ == 0) return !heap_.empty() && pop_heap(limit, out);
      const std::int64_t next = next_bucket();
      if (!heap_.empty() && heap_.top().at_ps < (next << shift_)) return pop_heap(limit, out);
      if ((next << shift_) > limit.ps) return false;
      open(next);
    }
  }

  // The event that will probably be popped k after the next one, if that is known already: for prefetching.
  const WakeUp* ahead(std::size_t k) const {
    return front_at_ + k < front_.size() ? &front_[front_at_ + k] : nullptr;
  }
  std::size_t size() const { return front_.size() - front_at_ + in_wheel_ + heap_.size(); }
  bool empty() const { return size() == 0; }
  std::uint64_t pushed() const { return serial_; }
  // Log2 of the bucket width in picoseconds: for tests and benchmarks.
  unsigned shift() const { return shift_; }
  void check_invariants() const;

 private:
  static constexpr std::uint32_t kBuckets = 4096;  // one word summarises 64 words of 64 bits
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  static constexpr std::uint64_t kRetuneEvery = 1U << 15U;
  static constexpr unsigned kFirstShift = 10;  // about 1 ns
  static constexpr unsigned kLowestShift = 2;
  static constexpr unsigned kHighestShift = 40;  // about 1 s

  struct Node {
    WakeUp event;
    std::uint32_t next = kNone;
  };

  void insert(WakeUp e) {
    const std::int64_t bucket = e.at_ps >> shift_;
    const auto ahead = static_cast<std::uint64_t>(bucket - open_);
    if (ahead - 1U >= kBuckets - 1U) {
      far_ += static_cast<std::int64_t>(ahead) > 0 ? 1U : 0U;
      heap_.push(e);
      return;
    }
    upper_ += ahead >= kBuckets / 2U ? 1U : 0U;
    const auto slot = static_cast<std::uint32_t>(bucket) & (kBuckets - 1U);
    std::uint32_t n = free_;
    if (n != kNone) {
      free_ = nodes_[n].next;
    } else {
      n = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
    }
    nodes_[n] = {e, heads_[slot]};
    heads_[slot] = n;
    bits_[slot >> 6U] |= 1ULL << (slot & 63U);
    summary_ |= 1ULL << (slot >> 6U);
    ++in_wheel_;
  }

  // Number of the first bucket after `open_` that holds events. There is one.
  std::int64_t next_bucket() const {
    const auto from = static_cast<std::uint32_t>(open_ + 1) & (kBuckets - 1U);
    const std::uint32_t word = from >> 6U;
    std::uint32_t slot = 0;
    if (const std::uint64_t rest = bits_[word] & (~0ULL << (from & 63U)); rest != 0) {
      slot = (word << 6U) + static_cast<std::uint32_t>(std::countr_zero(rest));
    } else {
      const std::uint64_t later = word == 63U ? 0 : summary_ & (~0ULL << (word + 1U));
      const auto w = static_cast<std::uint32_t>(std::countr_zero(later != 0 ? later : summary_));
      slot = (w << 6U) + static_cast<std::uint32_t>(std::countr_zero(bits_[w]));
    }
    return open_ + 1 + ((slot - from) & (kBuckets - 1U));
  }

  bool pop_heap(Time limit, WakeUp& out) {
    if (heap_.top().at_ps > limit.ps) return false;
    out = heap_.pop();
    last_ps_ = out.at_ps;
    // Everything up to this event's bucket is empty or open; the horizon moves along.
    if (const std::int64_t bucket = out.at_ps >> shift_; bucket > open_) open_ = bucket;
    return true;
  }

  void open(std::int64_t bucket);
  void retune();

  std::int64_t open_ = 0;  // number of the open bucket: at >> shift
  unsigned shift_ = kFirstShift;
  std::uint32_t free_ = kNone;
  std::size_t in_wheel_ = 0;
  std::size_t front_at_ = 0;
  std::vector<WakeUp> front_;  // the open bucket, sorted; consumed up to front_at_
  EventHeap heap_;
  static constexpr std::uint64_t kLast = 1ULL << 63U;
  std::uint64_t serial_ = 0;
  std::int64_t last_ps_ = 0;
  std::uint64_t summary_ = 0;  // bit w: bits_[w] is not zero
  std::array<std::uint64_t, kBuckets / 64U> bits_{};
  std::array<std::uint32_t, kBuckets> heads_{};
  std::vector<Node> nodes_;
  // Since the last retune.
  std::uint64_t far_ = 0;     // pushes beyond the horizon
  std::uint64_t upper_ = 0;   // pushes into its upper half; buckets half as wide would put them beyond it
  std::uint64_t opened_ = 0;  // buckets
  std::uint64_t sorted_ = 0;  // events in them
  std::vector<WakeUp> scratch_;
};

}  // namespace weft::sim
