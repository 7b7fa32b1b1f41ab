// Time-outs of queue pairs: a heap of (deadline, queue pair), each queue pair at most once.
//
// DESIGN names a timer wheel. A wheel rounds deadlines to its slots; both worlds must fire at exactly
// the same picosecond for the differential test to hold, so exact order wins. What makes a wheel fast
// is had another way: an entry may be early. Progress moves a queue pair's real deadline later without
// touching the heap; when the early entry fires, the engine looks at the real deadline and inserts
// again. A busy connection thus touches the heap once per time-out, not once per packet. An entry whose
// queue pair awaits nothing any more is forgotten: it stays, and nobody looks when it fires.
//
// Four children a node: half the levels of a binary heap, and four entries are one cache line.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/units.h"

namespace weft {

class Deadlines {
 public:
  explicit Deadlines(std::uint32_t capacity) : known_(capacity), place_(capacity) { heap_.reserve(capacity); }

  Time next() const { return heap_.empty() ? kNever : heap_[0].at; }
  std::uint32_t top() const { return heap_[0].index; }
  bool empty() const { return heap_.empty(); }
  bool contains(std::uint32_t index) const { return known_[index].present; }
  bool forgotten(std::uint32_t index) const { return known_[index].forgotten; }

  // Makes sure the entry of `index` is not later than `at`.
  void at_latest(std::uint32_t index, Time at) {
    Known& known = known_[index];
    known.forgotten = false;
    if (known.present && known.at <= at) return;
    if (!known.present) {
      place_[index] = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back({at, index});
    }
    known.at = heap_[place_[index]].at = at;
    known.present = true;
    up(place_[index]);
  }
  void forget(std::uint32_t index) { known_[index].forgotten = true; }
  void remove(std::uint32_t index) {
    const bool present = known_[index].present;
    known_[index] = {};
    if (!present) return;
    const std::uint32_t p = place_[index];
    const Entry last = heap_.back();
    heap_.pop_back();
    if (p == heap_.size()) return;
    heap_[p] = last;
    up(p);
    down(place_[last.index]);
  }
  // What at_latest and forget look at first, and mostly last.
  void prefetch(std::uint32_t index) const { __builtin_prefetch(&known_[index], 1); }

 private:
  struct Entry {
    Time at;
    std::uint32_t index;
    // Ties go to the lower index, so that the order never depends on the heap's history.
    bool before(const Entry& o) const { return at != o.at ? at < o.at : index < o.index; }
  };
  struct Known {
    Time at{};  // as in the heap
    bool present = false;
    bool forgotten = false;
  };
  static constexpr std::uint32_t kChildren = 4;

  void up(std::uint32_t p) {
    const Entry e = heap_[p];
    while (p > 0) {
      const std::uint32_t parent = (p - 1) / kChildren;
      if (!e.before(heap_[parent])) break;
      move(p, heap_[parent]);
      p = parent;
    }
    move(p, e);
  }
  void down(std::uint32_t p) {
    const Entry e = heap_[p];
    const auto n = static_cast<std::uint32_t>(heap_.size());
    for (;;) {
      const std::uint32_t first = kChildren * p + 1;
      if (first >= n) break;
      std::uint32_t child = first;
      const std::uint32_t end = std::min(first + kChildren, n);
      for (std::uint32_t c = first + 1; c < end; ++c) {
        if (heap_[c].before(heap_[child])) child = c;
      }
      if (!heap_[child].before(e)) break;
      move(p, heap_[child]);
      p = child;
    }
    move(p, e);
  }
  void move(std::uint32_t p, const Entry& e) {
    heap_[p] = e;
    place_[e.index] = p;
  }

  std::vector<Entry> heap_;
  std::vector<Known> known_;
  std::vector<std::uint32_t> place_;  // in the heap, of those present
};

}  // namespace weft
