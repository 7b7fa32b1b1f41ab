// Time-outs of queue pairs: a binary heap of (deadline, queue pair), each queue pair at most once.
//
// DESIGN names a timer wheel. A wheel rounds deadlines to its slots; both worlds must fire at exactly
// the same picosecond for the differential test to hold, so exact order wins. What makes a wheel fast
// is had another way: an entry may be early. Progress moves a queue pair's real deadline later without
// touching the heap; when the early entry fires, the engine looks at the real deadline and inserts
// again. A busy connection thus touches the heap once per time-out, not once per packet.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/units.h"

namespace weft {

class Deadlines {
 public:
  explicit Deadlines(std::uint32_t capacity) : position_(capacity, kAbsent) { heap_.reserve(capacity); }

  Time next() const { return heap_.empty() ? kNever : heap_[0].at; }
  std::uint32_t top() const { return heap_[0].index; }
  bool empty() const { return heap_.empty(); }
  bool contains(std::uint32_t index) const { return position_[index] != kAbsent; }

  // Makes sure the entry of `index` is not later than `at`.
  void at_latest(std::uint32_t index, Time at) {
    std::uint32_t p = position_[index];
    if (p == kAbsent) {
      p = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back({at, index});
      position_[index] = p;
      up(p);
    } else if (at < heap_[p].at) {
      heap_[p].at = at;
      up(p);
    }
  }
  void remove(std::uint32_t index) {
    const std::uint32_t p = position_[index];
    if (p == kAbsent) return;
    position_[index] = kAbsent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (p == heap_.size()) return;
    heap_[p] = last;
    position_[last.index] = p;
    up(p);
    down(position_[last.index]);
  }

 private:
  struct Entry {
    Time at;
    std::uint32_t index;
    // Ties go to the lower index, so that the order never depends on the heap's history.
    bool before(const Entry& o) const { return at != o.at ? at < o.at : index < o.index; }
  };
  static constexpr std::uint32_t kAbsent = UINT32_MAX;

  void up(std::uint32_t p) {
    const Entry e = heap_[p];
    while (p > 0) {
      const std::uint32_t parent = (p - 1) / 2;
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
      std::uint32_t child = 2 * p + 1;
      if (child >= n) break;
      if (child + 1 < n && heap_[child + 1].before(heap_[child])) ++child;
      if (!heap_[child].before(e)) break;
      move(p, heap_[child]);
      p = child;
    }
    move(p, e);
  }
  void move(std::uint32_t p, const Entry& e) {
    heap_[p] = e;
    position_[e.index] = p;
  }

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> position_;
};

}  // namespace weft
