// Completion queues: a ring of entries in the order they happened, and the arming rule of
// docs/protocol/verbs.md#completion-queues (one event per arming; entries already there do not trigger).
//
// A queue that overran takes no entry any more; those that are in it can be polled.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/verbs/types.h"

namespace weft {

class CompletionQueue {
 public:
  enum class Push : std::uint8_t { kQuiet, kEvent, kOverrun };

  explicit CompletionQueue(std::uint32_t entries) : ring_(entries) {}
  explicit CompletionQueue(std::vector<Completion>&& ring) : ring_(std::move(ring)) {}

  std::uint32_t capacity() const { return static_cast<std::uint32_t>(ring_.size()); }
  std::uint32_t size() const { return count_; }

  Push push(const Completion& c, bool solicited) {
    if (count_ == ring_.size() || overrun_) return Push::kOverrun;
    ring_[tail_] = c;
    tail_ = tail_ + 1 == ring_.size() ? 0 : tail_ + 1;
    ++count_;
    if (armed_ == 0 || (armed_ == 2 && !solicited && c.status == WcStatus::kSuccess)) return Push::kQuiet;
    armed_ = 0;
    return Push::kEvent;
  }
  std::uint32_t poll(std::span<Completion> out) {
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(out.size(), count_));
    for (std::uint32_t i = 0; i < n; ++i) {
      out[i] = ring_[head_];
      head_ = head_ + 1 == ring_.size() ? 0 : head_ + 1;
    }
    count_ -= n;
    return n;
  }
  // From now on it takes nothing. True the first time.
  bool overrun() { return !std::exchange(overrun_, true); }
  bool overran() const { return overrun_; }
  // Whoever waits for an event is told, for there will be no other.
  bool disarm() { return std::exchange(armed_, std::uint8_t{0}) != 0; }
  void arm(bool solicited_only) {
    if (armed_ != 1) armed_ = solicited_only ? 2 : 1;
  }
  // A queue pair that is reset leaves nothing behind; what others reported keeps its order.
  void forget(Qpn qpn) {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Completion& c = ring_[place(i)];
      if (c.qpn != qpn) ring_[place(kept++)] = c;
    }
    count_ = kept;
    tail_ = place(kept);
  }
  void resize(std::uint32_t entries) {
    std::vector<Completion> next(entries);
    count_ = poll(next);
    head_ = 0;
    tail_ = count_ % entries;
    ring_ = std::move(next);
  }
  // A destroyed queue pair's entries stay: verbs lets the user drain them.
  std::uint32_t users = 0;

 private:
  // Where the entry lies that comes `behind` the oldest.
  std::uint32_t place(std::uint32_t behind) const {
    const std::uint32_t at = head_ + behind;
    return at < ring_.size() ? at : at - static_cast<std::uint32_t>(ring_.size());
  }

  std::vector<Completion> ring_;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
  std::uint32_t count_ = 0;
  bool overrun_ = false;
  std::uint8_t armed_ = 0;  // 0 no, 1 any entry, 2 solicited or failed entries
};

}  // namespace weft
