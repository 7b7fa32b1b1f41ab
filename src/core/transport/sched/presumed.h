// Bytes of the unreliable services (UC, UD) on their way. Nobody acknowledges them, so nobody says when their
// path has room again: they count as in flight for a presumed time, and then no more. First in, first out,
// for that time is the same for all. A full ring gives its oldest entry back early.
#pragma once
#include <array>
#include <cstdint>

#include "core/base/ids.h"
#include "core/base/units.h"

namespace weft {

class PresumedFlights {
 public:
  struct Flight {
    std::uint32_t qp = 0;  // whose; its timer ends it
    PathId path{};
    std::uint64_t bytes = 0;
    Time until{};
  };
  bool empty() const { return head_ == tail_; }
  bool full() const { return tail_ - head_ == ring_.size(); }
  const Flight& oldest() const { return ring_[head_ % ring_.size()]; }
  Flight pop() { return ring_[head_++ % ring_.size()]; }
  // Those of a queue pair whose timer will not come any more.
  template <class GiveBack>
  void end(std::uint32_t qp, GiveBack give_back) {
    for (std::uint32_t i = head_; i != tail_; ++i) {
      Flight& f = ring_[i % ring_.size()];
      if (f.qp != qp || f.bytes == 0) continue;
      give_back(f);
      f.bytes = 0;
    }
  }
  void push(const Flight& f) { ring_[tail_++ % ring_.size()] = f; }

 private:
  std::array<Flight, 1024> ring_;  // a power of two: head and tail run freely
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
};

}  // namespace weft
