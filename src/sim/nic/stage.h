// Two small parts that every larger one is made of.
//
// A Stage is a pipeline: it takes a new item every `interval`, and an item is in it for `depth`. An item that
// is wider than one step (a packet of many bytes) keeps its entrance busy for longer. Calls come in the order
// of time, so a stage needs no event of its own: it says when the item will be out.
//
// A Gauge watches a place where items wait or work, from outside. It holds the two sides of Little's law: the
// number of items, integrated over time, and the time that each of them spent there, added up as it leaves.
// Whenever the place is empty they are equal; if they are not, somebody came or went unseen.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/units.h"

namespace weft::sim {

class Stage {
 public:
  Stage() = default;
  Stage(Duration interval, Duration depth) : interval_(interval), depth_(depth) {}

  // When the item is out. `width`: how long the entrance is busy with it, if that is longer than usual.
  Time pass(Time now, Duration width = {}) {
    const Duration step = std::max(interval_, width);
    const Time begin = std::max(now, free_at_);
    free_at_ = begin + step;
    ++items_;
    busy_ += step;
    waited_ += begin - now;
    return begin + depth_ + (step - interval_);
  }
  // Of an item in an idle stage.
  Duration latency(Duration width = {}) const { return depth_ + (std::max(interval_, width) - interval_); }
  Duration interval(Duration width = {}) const { return std::max(interval_, width); }
  Time free_at() const { return free_at_; }

  std::uint64_t items() const { return items_; }
  Duration busy() const { return busy_; }
  Duration waited() const { return waited_; }

 private:
  Duration interval_{};
  Duration depth_{};
  Time free_at_{};
  std::uint64_t items_ = 0;
  Duration busy_{};
  Duration waited_{};
};

class Gauge {
 public:
  void enter(Time now) {
    integrate(now);
    ++inside_;
    ++entered_;
    most_ = std::max(most_, inside_);
  }
  void leave(Time entered, Time now) {
    integrate(now);
    --inside_;
    stayed_ += wide(now - entered);
  }
  std::uint64_t entered() const { return entered_; }
  std::uint64_t inside() const { return inside_; }
  std::uint64_t most() const { return most_; }
  // Both sides of Little's law, in picoseconds; they wrap alike.
  std::uint64_t area() const { return area_; }
  std::uint64_t stayed() const { return stayed_; }
  bool balanced() const { return inside_ == 0 && area_ == stayed_; }

 private:
  static std::uint64_t wide(Duration d) { return static_cast<std::uint64_t>(d.ps); }
  void integrate(Time now) {
    area_ += inside_ * wide(now - seen_);
    seen_ = now;
  }
  std::uint64_t inside_ = 0;
  std::uint64_t entered_ = 0;
  std::uint64_t most_ = 0;
  std::uint64_t area_ = 0;
  std::uint64_t stayed_ = 0;
  Time seen_{};
};

}  // namespace weft::sim
