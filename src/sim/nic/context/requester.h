// csRNA's QPC requester (csRNA §4.4, Figure 5b): what one stage has asked for and not been given yet.
//
//   index FIFO     0 1 2 ... : numbers that are free; their count is the out-of-order capacity
//   waiting SRAM   [index] -> what the stage wants back: the doorbell, the descriptor, the packet
//
// A request takes an index and leaves its information under it. Answers come in any order and name the index,
// which is then free again. Without a free index the stage waits: that is all there is of backpressure.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/units.h"
#include "sim/nic/context/ring.h"

namespace weft::sim {

class Requester {
 public:
  struct Waiting {
    std::uint64_t tag = 0;
    Time asked{};
    bool prefetch = false;  // nobody wants an answer
  };
  explicit Requester(std::uint32_t indexes) : free_(indexes), waiting_(indexes) {
    for (std::uint32_t i = 0; i < indexes; ++i) free_.push(static_cast<std::uint16_t>(i));
  }
  bool full() const { return free_.empty(); }
  std::uint16_t put(const Waiting& w) {
    const std::uint16_t i = free_.pop();
    waiting_[i] = w;
    return i;
  }
  const Waiting& at(std::uint16_t i) const { return waiting_[i]; }
  Waiting take(std::uint16_t i) {
    free_.push(i);
    return waiting_[i];
  }

 private:
  Ring<std::uint16_t> free_;
  std::vector<Waiting> waiting_;
};

}  // namespace weft::sim
