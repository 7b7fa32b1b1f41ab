// Time-outs of queue pairs: (deadline, queue pair) in order, each queue pair at most once.
//
// Considered instead: a timer wheel. A wheel rounds deadlines to its slots; both worlds must fire at exactly
// the same picosecond for the differential test to hold, so exact order wins. What makes a wheel fast
// is had another way: an entry may be early. Progress moves a queue pair's real deadline later without
// its entry; when the early entry fires, the engine looks at the real deadline and inserts
// again. A busy connection thus moves its entry once per time-out, not once per packet. An entry whose
// queue pair awaits nothing any more is forgotten: it stays, and nobody looks when it fires.
//
// Time-outs of one length come in the order of their deadlines. Those are a row, where coming and going is a
// few instructions: most of them are forgotten by the time they fire, and no heap is asked to put them in
// order first. Inside the row equal deadlines stand as they came. Before such a group fires, those of it that
// are not forgotten go to the heap, so that what is due fires in the order of deadline and index, wherever it
// lay. What does not fit behind the row's end goes to the heap at once.
//
// The heap has four children a node: half the levels of a binary heap, and four entries are one cache line.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/units.h"

namespace weft {

class Deadlines {
 public:
  explicit Deadlines(std::uint32_t capacity)
      : known_(capacity), place_(capacity), row_(std::bit_ceil(capacity)) {
    heap_.reserve(capacity);
  }

  Time next() const { return next_; }
  std::uint32_t top() {
    if (row_next() > settled_ && row_next() <= heap_next()) settle();
    return row_leads() ? row_head().index : heap_[0].index;
  }
  bool empty() const { return heap_.empty() && row_empty(); }
  bool contains(std::uint32_t index) const { return known_[index].present; }
  bool forgotten(std::uint32_t index) const { return known_[index].forgotten; }

  // Makes sure the entry of `index` is not later than `at`.
  void at_latest(std::uint32_t index, Time at) {
    Known& known = known_[index];
    known.forgotten = false;
    if (known.present && known.at <= at) return;
    put_in(index, at);
  }
  void forget(std::uint32_t index) { known_[index].forgotten = true; }
  void remove(std::uint32_t index) {
    if (known_[index].present) take_out(index);
    if (known_[index].at == next_) next_ = std::min(row_next(), heap_next());
    known_[index] = {};
  }
  // What at_latest and forget look at first, and mostly last.
  void prefetch(std::uint32_t index) const { __builtin_prefetch(&known_[index], 1); }

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX;
  struct Entry {
    Time at{};
    std::uint32_t index = kNobody;  // kNobody: taken out of the row, and not at its head
    // Ties go to the lower index, so that the order never depends on the heap's history.
    bool before(const Entry& o) const { return at != o.at ? at < o.at : index < o.index; }
  };
  struct Known {
    Time at{};  // the entry's
    bool present = false;
    bool forgotten = false;
  };
  static constexpr std::uint32_t kInRow = 1U << 31U;
  static constexpr std::uint32_t kChildren = 4;

  Time heap_next() const { return heap_.empty() ? kNever : heap_[0].at; }
  Time row_next() const { return row_empty() ? kNever : row_head().at; }
  bool row_empty() const { return head_ == tail_; }
  bool row_leads() const { return !row_empty() && (heap_.empty() || row_head().before(heap_[0])); }
  const Entry& row_head() const { return row_[slot(head_)]; }
  std::uint32_t slot(std::uint32_t i) const { return i & static_cast<std::uint32_t>(row_.size() - 1); }

  void put_in(std::uint32_t index, Time at);
  void take_out(std::uint32_t index);
  void settle();
  void push(const Entry& e);
  void up(std::uint32_t p);
  void down(std::uint32_t p);
  void move(std::uint32_t p, const Entry& e) {
    heap_[p] = e;
    place_[e.index] = p;
  }

  std::vector<Known> known_;
  std::vector<std::uint32_t> place_;  // of those present: in the heap, or kInRow and the slot there
  std::vector<Entry> heap_;
  std::vector<Entry> row_;  // a ring; head_ and tail_ run freely, the entry at head_ is somebody's
  Time next_ = kNever;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
  Time row_last_{};
  Time settled_{std::numeric_limits<std::int64_t>::min()};  // up to here the row's groups have been settled
};

inline void Deadlines::put_in(std::uint32_t index, Time at) {
  Known& known = known_[index];
  if (known.present) take_out(index);
  known.at = at;
  known.present = true;
  next_ = std::min(next_, at);
  // Nothing could stand behind what never comes.
  const bool behind = row_empty() || at >= row_last_;
  if (behind && at > settled_ && at != kNever && tail_ - head_ < row_.size()) {
    place_[index] = kInRow | slot(tail_);
    row_[slot(tail_++)] = {at, index};
    row_last_ = at;
  } else {
    push({at, index});
  }
}

// The row's first group is about to fire.
inline void Deadlines::settle() {
  settled_ = row_next();
  const std::uint32_t begin = head_;
  std::uint32_t end = begin + 1;
  while (end != tail_ && row_[slot(end)].at == settled_) ++end;
  if (end == begin + 1) return;  // one alone is in order
  for (std::uint32_t i = begin; i != end; ++i) {
    const Entry e = row_[slot(i)];
    if (e.index == kNobody || known_[e.index].forgotten) continue;
    take_out(e.index);
    push(e);
  }
}

inline void Deadlines::push(const Entry& e) {
  heap_.push_back(e);
  up(static_cast<std::uint32_t>(heap_.size() - 1));
}

inline void Deadlines::take_out(std::uint32_t index) {
  const std::uint32_t p = place_[index];
  if ((p & kInRow) != 0) {
    row_[p & ~kInRow].index = kNobody;
    while (!row_empty() && row_head().index == kNobody) ++head_;
    return;
  }
  const Entry last = heap_.back();
  heap_.pop_back();
  if (p == heap_.size()) return;
  heap_[p] = last;
  up(p);
  down(place_[last.index]);
}

inline void Deadlines::up(std::uint32_t p) {
  const Entry e = heap_[p];
  while (p > 0) {
    const std::uint32_t parent = (p - 1) / kChildren;
    if (!e.before(heap_[parent])) break;
    move(p, heap_[parent]);
    p = parent;
  }
  move(p, e);
}

inline void Deadlines::down(std::uint32_t p) {
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

}  // namespace weft
