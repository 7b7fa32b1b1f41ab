// Work requests that were fetched before they are needed. Two shapes, after SRNIC §3.2.1 and §4.3.2: so many
// for each queue, or so many in all.
//
//   WqeWindow   one queue's own entries: the WQEs [first, end) of the queue, at most `entries` of them
//   SharedWqes  entries that all queues compete for, kept by the replacement of every cache (tags.h)
//
// A WQE is used once: take() is true if it was there, and then it is gone.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/ids.h"
#include "sim/nic/cache/tags.h"

namespace weft::sim {

class WqeWindow {
 public:
  explicit WqeWindow(std::uint32_t entries) : entries_(entries) {}
  // What a fetch of `n` from `index` brings stays as far as there is room; the next of the queue goes first.
  void bring(std::uint64_t index, std::uint32_t n) {
    if (index > end_ || index + n < first_ || end_ == first_) first_ = end_ = index;
    end_ = std::min(std::max(end_, index + n), first_ + entries_);
  }
  bool take(std::uint64_t index) {
    const bool there = index >= first_ && index < end_;
    if (there) {
      first_ = index + 1;
    } else {
      first_ = end_ = index + 1;
    }
    return there;
  }
  std::uint32_t held() const { return static_cast<std::uint32_t>(end_ - first_); }

 private:
  std::uint32_t entries_;
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
};

class SharedWqes {
 public:
  SharedWqes(std::uint32_t entries, Replacement replacement, std::uint64_t seed)
      : cache_(entries, replacement, seed) {}
  void bring(Qpn qpn, std::uint32_t index) { cache_.look_up(key(qpn, index)); }
  bool take(Qpn qpn, std::uint32_t index) {
    const bool there = cache_.erase(key(qpn, index));
    ++(there ? hits_ : misses_);
    return there;
  }
  std::uint32_t held() const { return cache_.used(); }
  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

 private:
  static std::uint64_t key(Qpn qpn, std::uint32_t index) { return (std::uint64_t{qpn.v} << 32U) | index; }
  Cache cache_;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace weft::sim
