// SRNIC's schedule queue (SRNIC §4.3.1): the numbers of send queues that have both work and credit,
// each at most once, served round robin. The caller keeps the "queued" mark in the queue pair, so a
// duplicate costs nothing to detect; the ring can therefore never overflow.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/check.h"

namespace weft {

class ReadyQueue {
 public:
  explicit ReadyQueue(std::uint32_t capacity) : ring_(capacity), mask_(capacity - 1) {}
  bool empty() const { return head_ == tail_; }
  std::uint32_t size() const { return tail_ - head_; }
  void push(std::uint32_t index) {
    DCHECK(size() < ring_.size());
    ring_[tail_++ & mask_] = index;
  }
  // The one that leaves after k others; k < size().
  std::uint32_t peek(std::uint32_t k) const { return ring_[(head_ + k) & mask_]; }
  std::uint32_t pop() { return ring_[head_++ & mask_]; }

 private:
  std::vector<std::uint32_t> ring_;  // power of two
  std::uint32_t mask_;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
};

}  // namespace weft
