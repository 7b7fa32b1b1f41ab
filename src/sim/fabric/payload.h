// Real payload bytes, for runs that verify them. Most runs only count bytes and never come here.
//
// A slot holds the payload of one packet and is counted, because a link may duplicate a packet. The
// copy that a link corrupts differs in one bit that the receiver's ICRC catches, so bytes themselves
// never change on the way and both copies share a slot.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/fabric/packet.h"

namespace weft::sim {

class PayloadStore {
 public:
  static constexpr std::uint32_t kSlotBytes = 4096 + 512;  // the largest path MTU, or parity for that

  PayloadRef acquire() {
    if (free_.empty()) {
      free_.push_back({static_cast<std::uint32_t>(slots_.size())});
      slots_.push_back(std::make_unique<Slot>());
    }
    const PayloadRef ref = free_.back();
    free_.pop_back();
    slots_[ref.v]->holders = 1;
    return ref;
  }
  void share(PayloadRef ref) { ++slots_[ref.v]->holders; }
  void release(PayloadRef ref) {
    CHECK_OP(slots_[ref.v]->holders, >, 0U);
    if (--slots_[ref.v]->holders == 0) free_.push_back(ref);
  }
  std::span<std::uint8_t> bytes(PayloadRef ref) { return slots_[ref.v]->bytes; }
  std::size_t in_use() const { return slots_.size() - free_.size(); }

 private:
  struct Slot {
    std::uint32_t holders = 0;
    std::array<std::uint8_t, kSlotBytes> bytes{};
  };
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<PayloadRef> free_;
};

}  // namespace weft::sim
