// Packets that came ahead of a gap, on the chip until the gap is filled: what a NIC needs whose packets do
// not name their place in memory (SRNIC §3.2.2). A buffer has places of one full packet each.
//
//   per queue pair   | qp 7: 3 packets      | qp 9: 1 packet       | ...   each has room of its own
//   shared           | qp 7: 3 packets | qp 9: 1 packet |          free|   the losses of one take the room of
//   all
//
// The Device knows which packets wait (core/transport/stream.h, `held`); here is only whether one more has
// room. One that has none is lost, as if the network had lost it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/nic/design.h"

namespace weft::sim {

class ReorderBuffers {
 public:
  ReorderBuffers(const RecoveryDesign& design, std::size_t queue_pairs)
      : size_(design.reorder_buffer.n),
        shared_(design.reorder == Reorder::kShared),
        waiting_(design.reorder == Reorder::kNothing ? 0 : queue_pairs) {}

  // False: packets ahead of a gap take no room, because they go to their place in memory at once.
  bool there() const { return !waiting_.empty(); }
  // So many bytes of this queue pair wait now.
  void waiting(std::size_t queue_pair, std::uint64_t bytes) {
    if (!there()) return;
    used_ = used_ - waiting_[queue_pair] + bytes;
    waiting_[queue_pair] = bytes;
  }
  bool has_room(std::size_t queue_pair, std::uint32_t bytes) const {
    return !there() || (shared_ ? used_ : waiting_[queue_pair]) + bytes <= size_;
  }
  // By all queue pairs.
  std::uint64_t used() const { return used_; }

 private:
  std::uint64_t size_;
  bool shared_;
  std::uint64_t used_ = 0;
  std::vector<std::uint64_t> waiting_;
};

}  // namespace weft::sim
