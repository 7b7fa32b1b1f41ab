#include "channel/shared.h"

#include <utility>

#include "core/base/check.h"

namespace weft::channel {

SharedQueue::~SharedQueue() { close(); }

Result<void> SharedQueue::open(std::uint32_t entries) {
  const auto made = port_.create_srq(entries);
  if (!made)
    return fail("srq_size = " + std::to_string(entries) +
                ": the device has no shared receive queue of so many entries; try fewer, or use_srq=0");
  id_ = *made;
  slots_.resize(entries);
  free_.reserve(entries);
  for (std::uint32_t i = entries; i-- > 0;) free_.push_back(i);
  return {};
}

void SharedQueue::close() {
  if (!on()) return;
  (void)port_.destroy_srq(id_);
  id_ = kNoSrq;
  for (Message* const m : slots_) {
    if (m != nullptr) memory_.give(m);
  }
  slots_.clear();
  if (Message* const m = std::exchange(spare_, nullptr)) memory_.give(m);
}

bool SharedQueue::join(std::uint32_t here) {
  ++users_;
  here_ += here;
  counts_.most_due = std::max(counts_.most_due, due());
  if (top_up() && memory_.has_set_aside()) return true;
  leave(here);
  return false;
}

// What is posted beyond what is due stays until a frame takes it.
void SharedQueue::leave(std::uint32_t here) {
  --users_;
  here_ -= here;
  set_aside();
}

Message& SharedQueue::take(std::uint32_t slot) {
  CHECK_OP(slot, <, slots_.size());
  CHECK(slots_[slot] != nullptr);
  Message& m = *std::exchange(slots_[slot], nullptr);
  free_.push_back(slot);
  --posted_;
  if (at_hand_ != 0 && --at_hand_ == 0) ++counts_.used_up;
  m.clear(Message::kPosted);
  return m;
}

void SharedQueue::give(Message& block) {
  if (posted_ >= wanted() || !post(block)) memory_.give(&block);
  top_up();
}

// False: the device has no memory. Whatever happens next tries again.
bool SharedQueue::top_up() {
  bool whole = true;
  while (whole && posted_ < wanted()) {
    ++counts_.short_of;  // until it is posted: the turn may end here for want of memory
    if (spare_ == nullptr) spare_ = memory_.take_frame();
    whole = spare_ != nullptr && post(*spare_);
    if (whole) --counts_.short_of;
    if (Message* const m = std::exchange(spare_, nullptr); !whole && m != nullptr) memory_.give(m);
  }
  set_aside();
  return whole;
}

bool SharedQueue::post(Message& block) {
  const std::uint32_t slot = free_.back();
  const Sge sge{block.address + kFrameAt, frame_, block.lkey};
  const RecvWr wr{tag_ | slot, {&sge, 1}};
  if (port_.post_shared(id_, {&wr, 1}).taken != 1) return false;
  free_.pop_back();
  block.channel = nullptr;
  block.state = Message::kReceived | Message::kPosted;
  slots_[slot] = &block;
  ++posted_;
  return true;
}

}  // namespace weft::channel
