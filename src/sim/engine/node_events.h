// The events of one node in the open window: the soonest in a short sorted list, the rest in a heap.
//
//   rest   heap    none sooner than the list's
//   list   ... third, second, first        at most 32
//
// A node has a wire and a serialiser for each of its links, so that the list usually holds all of its events.
// Taking one compares nothing, and adding one walks past those that are sooner. With a heap alone a whole run
// of IRN's default network takes a sixteenth longer.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/check.h"
#include "sim/engine/wake_up.h"

namespace weft::sim {

class NodeEvents {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_ + rest_.size(); }
  const WakeUp& top() const { return soon_[count_ - 1U]; }
  void push(WakeUp e) {
    if (count_ == kSoon) [[unlikely]]
      make_room();
    if (!rest_.empty() && !e.before(rest_.top())) return rest_.push(e);
    std::uint32_t i = count_++;
    for (; i != 0 && soon_[i - 1U].before(e); --i) soon_[i] = soon_[i - 1U];
    soon_[i] = e;
  }
  WakeUp pop() {
    const WakeUp result = soon_[--count_];
    if (count_ == 0 && !rest_.empty()) [[unlikely]]
      refill();
    return result;
  }
  void check_invariants() const {
    for (std::uint32_t i = 1; i < count_; ++i) CHECK(!soon_[i - 1U].before(soon_[i]));
    if (!rest_.empty()) CHECK(count_ != 0 && !rest_.top().before(soon_[0]));
  }

 private:
  static constexpr std::uint32_t kSoon = 32;

  void make_room() {
    constexpr std::uint32_t kLeave = kSoon / 2U;
    for (std::uint32_t i = 0; i < kLeave; ++i) rest_.push(soon_[i]);
    std::copy(soon_.begin() + kLeave, soon_.end(), soon_.begin());
    count_ = kSoon - kLeave;
  }
  void refill() {
    count_ = static_cast<std::uint32_t>(std::min<std::size_t>(rest_.size(), kSoon / 2U));
    for (std::uint32_t i = count_; i-- != 0;) soon_[i] = rest_.pop();
  }

  std::uint32_t count_ = 0;
  std::array<WakeUp, kSoon> soon_;  // the first `count_`, the soonest last
  EventHeap rest_;                  // none of it sooner than what is in the list
};

}  // namespace weft::sim
