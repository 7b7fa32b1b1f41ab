// SRNIC's schedule queue and policy module (SRNIC §4.3.1): the numbers of send queues that have both work
// and credit, each at most once. The caller keeps the "queued" mark in the queue pair, so a duplicate costs
// nothing to detect; the rings can therefore never overflow.
//
//   round robin   one line, first come first served: who still has work goes to its end
//   weighted      one line; a queue pair of weight w has w turns in a row for each one of weight 1
//   priority      a line per service level; nobody has a turn while a higher level has work
//
// A turn is bounded by the caller, in requests and bytes; a message that does not fit into one goes on in the
// next (DeviceConfig::burst_requests, burst_bytes).
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "core/base/check.h"

namespace weft {

enum class Schedule : std::uint8_t { kRoundRobin, kWeighted, kPriority };
inline constexpr std::uint32_t kServiceLevels = 16;  // as in an address vector

class ReadyQueue {
 public:
  // `capacity`: power of two.
  ReadyQueue(std::uint32_t capacity, Schedule schedule)
      : ring_(std::size_t{capacity} * (schedule == Schedule::kPriority ? kServiceLevels : 1U)),
        capacity_(capacity),
        mask_(capacity - 1),
        level_mask_(schedule == Schedule::kPriority ? kServiceLevels - 1U : 0U),
        weighted_(schedule == Schedule::kWeighted) {}

  bool empty() const { return lines_[top_].empty(); }
  // Those in the line that is being served.
  std::uint32_t upcoming() const { return lines_[top_].tail - lines_[top_].head; }
  // The one that leaves after k others; k < upcoming().
  std::uint32_t peek(std::uint32_t k) const { return at(top_, lines_[top_].head + k); }

  void push(std::uint32_t index, std::uint32_t level) {
    level &= level_mask_;
    if (level > top_ || empty()) top_ = level;
    DCHECK(lines_[level].tail - lines_[level].head < capacity_);
    at(level, lines_[level].tail++) = index;
  }
  // After a turn that left work over.
  void push_again(std::uint32_t index, std::uint32_t level, std::uint32_t weight) {
    if (weighted_ && index == running_ && ++turns_ < weight) {
      at(0, --lines_[0].head) = index;
      return;
    }
    running_ = kNobody;
    push(index, level);
  }
  std::uint32_t pop() {
    const std::uint32_t index = at(top_, lines_[top_].head++);
    while (top_ > 0 && lines_[top_].empty()) --top_;
    if (weighted_ && index != running_) {
      running_ = index;
      turns_ = 0;
    }
    return index;
  }

 private:
  struct Line {  // free-running
    std::uint32_t head = 0;
    std::uint32_t tail = 0;
    bool empty() const { return head == tail; }
  };
  static constexpr std::uint32_t kNobody = UINT32_MAX;

  std::uint32_t& at(std::uint32_t level, std::uint32_t i) { return ring_[level * capacity_ + (i & mask_)]; }
  const std::uint32_t& at(std::uint32_t level, std::uint32_t i) const {
    return ring_[level * capacity_ + (i & mask_)];
  }

  std::vector<std::uint32_t> ring_;
  std::uint32_t capacity_;
  std::uint32_t mask_;
  std::uint32_t level_mask_;
  bool weighted_;
  std::uint32_t top_ = 0;  // the highest line with anybody in it; 0 if there is none
  std::uint32_t running_ = kNobody;
  std::uint32_t turns_ = 0;  // that it has had in a row
  std::array<Line, kServiceLevels> lines_{};
};

}  // namespace weft
