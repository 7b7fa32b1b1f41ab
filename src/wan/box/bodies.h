// Frames that a box has, in slots of one size. All of them are there from the start; pages that were never
// used cost nothing, and what was given back last is used next, so few of them stay warm.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/check.h"
#include "wan/logic/frame.h"

namespace weft::wan {

class Bodies {
 public:
  Bodies(std::uint32_t slots, std::uint32_t slot_bytes)
      : slot_bytes_(slot_bytes),
        bytes_(std::make_unique_for_overwrite<std::uint8_t[]>(std::size_t{slots} * slot_bytes)),
        lengths_(slots) {
    free_.reserve(slots);
    for (std::uint32_t i = slots; i > 0; --i) free_.push_back(i - 1);
  }
  std::uint32_t slot_bytes() const { return slot_bytes_; }
  std::size_t in_use() const { return lengths_.size() - free_.size(); }
  // kNoBody: all are in use.
  BodyId take() {
    if (free_.empty()) return kNoBody;
    const BodyId b{free_.back()};
    free_.pop_back();
    return b;
  }
  void give_back(BodyId b) {
    DCHECK(free_.size() < lengths_.size());
    free_.push_back(b.v);
  }
  std::uint8_t* at(BodyId b) const { return bytes_.get() + std::size_t{b.v} * slot_bytes_; }
  std::uint32_t& length(BodyId b) { return lengths_[b.v]; }

 private:
  std::uint32_t slot_bytes_;
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::vector<std::uint32_t> lengths_;
  std::vector<std::uint32_t> free_;
};

}  // namespace weft::wan
