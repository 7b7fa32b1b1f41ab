// Frames that wait for their time: copies in slots of a fixed number. They leave in the order of their due
// times, ties in the order in which they came.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "core/base/units.h"

namespace weft::live {

// `What`: what is known of a frame beside its bytes.
template <class What>
class HeldFrames {
 public:
  static constexpr std::size_t kSlots = 16384;
  static constexpr std::size_t kSlotBytes = 4096 + 128;  // the largest frame; longer ones are not ours

  struct Held {
    Time due;
    std::uint64_t order = 0;
    std::uint32_t slot = 0;
    std::uint32_t bytes = 0;
    What what;
  };

  HeldFrames() : memory_(new std::uint8_t[kSlots * kSlotBytes]) {
    free_.reserve(kSlots);
    for (std::uint32_t i = kSlots; i != 0; --i) free_.push_back(i - 1);
    heap_.reserve(kSlots);
  }

  // False: there is no room for it.
  bool hold(Time due, std::span<const std::uint8_t> bytes, const What& what) {
    if (free_.empty() || bytes.size() > kSlotBytes) return false;
    heap_.push_back({due, order_++, free_.back(), static_cast<std::uint32_t>(bytes.size()), what});
    free_.pop_back();
    std::memcpy(bytes_of(heap_.back()), bytes.data(), bytes.size());
    std::push_heap(heap_.begin(), heap_.end(), later);
    return true;
  }

  bool empty() const { return heap_.empty(); }
  Time next_due() const { return heap_.empty() ? kNever : heap_.front().due; }
  // The one that is due first.
  const Held& first() const { return heap_.front(); }
  // Takes it out. Its bytes stay until its slot is given back.
  Held take() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Held h = heap_.back();
    heap_.pop_back();
    return h;
  }
  std::uint8_t* bytes_of(const Held& h) { return memory_.get() + h.slot * kSlotBytes; }
  void give_back(std::uint32_t slot) { free_.push_back(slot); }
  void forget_all() {
    for (const Held& h : heap_) free_.push_back(h.slot);
    heap_.clear();
  }

 private:
  static bool later(const Held& x, const Held& y) {
    return x.due != y.due ? x.due > y.due : x.order > y.order;
  }

  std::unique_ptr<std::uint8_t[]> memory_;  // kSlots slots; pages are touched on use
  std::vector<std::uint32_t> free_;
  std::vector<Held> heap_;
  std::uint64_t order_ = 0;
};

}  // namespace weft::live
