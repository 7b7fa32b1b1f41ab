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
  explicit Deadlines(std::uint32_t capacity) : place_(capacity) { heap_.reserve(capacity); }

  Time next() const { return heap_.empty() ? kNever : heap_[0].at; }
  std::uint32_t top() const { return heap_[0].index; }
  bool empty() const { return heap_.empty(); }
  bool contains(std::uint32_t index) const { return place_[index].at != kAbsent; }
  bool forgotten(std::uint32_t index) const { return place_[index].forgotten; }

  // Makes sure the entry of `index` is not later than `at`.
  void at_latest(std::uint32_t index, Time at) {
    Place& place = place_[index];
    place.forgotten = false;
    if (place.at == kAbsent) {
      heap_.push_back({at, index});
      up(static_cast<std::uint32_t>(heap_.size() - 1));
    } else if (at < heap_[place.at].at) {
      heap_[place.at].at = at;
      up(place.at);
    }
  }
  void forget(std::uint32_t index) { place_[index].forgotten = true; }
  void remove(std::uint32_t index) {
    const std::uint32_t p = place_[index].at;
    place_[index] = {};
    if (p == kAbsent) return;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (p == heap_.size()) return;
    heap_[p] = last;
    up(p);
    down(place_[last.index].at);
  }

 private:
  struct Entry {
    Time at;
    std::uint32_t index;
    // Ties go to the lower index, so that the order never depends on the heap's history.
    bool before(const Entry& o) const { return at != o.at ? at < o.at : index < o.index; }
  };
  static constexpr std::uint32_t kAbsent = 0x7FFF'FFFF;
  struct Place {
    std::uint32_t at : 31 = kAbsent;
    bool forgotten : 1 = false;
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
    place_[e.index].at = p & kAbsent;
  }

  std::vector<Entry> heap_;
  std::vector<Place> place_;
};

}  // namespace weft
