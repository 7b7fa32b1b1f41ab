#include "sim/engine/event_queue.h"

#include <algorithm>

#include "core/base/check.h"

namespace weft::sim {

EventQueue::EventQueue() { heads_.fill(kNone); }

void EventQueue::open(std::int64_t bucket) {
  const auto slot = static_cast<std::uint32_t>(bucket) & (kBuckets - 1U);
  front_.clear();
  front_at_ = 0;
  for (std::uint32_t n = heads_[slot]; n != kNone;) {
    Node& node = nodes_[n];
    const std::uint32_t next = node.next;
    front_.push_back(node.event);
    node.next = free_;
    free_ = n;
    n = next;
  }
  heads_[slot] = kNone;
  bits_[slot >> 6U] &= ~(1ULL << (slot & 63U));
  if (bits_[slot >> 6U] == 0) summary_ &= ~(1ULL << (slot >> 6U));
  in_wheel_ -= front_.size();
  open_ = bucket;
  ++opened_;
  sorted_ += front_.size();
  if (front_.size() == 1) return;
  // The list is newest first. It has few events, mostly in order of time, so insertion sort is fastest.
  std::reverse(front_.begin(), front_.end());
  if (front_.size() <= 24) {
    for (std::size_t i = 1; i < front_.size(); ++i) {
      const WakeUp e = front_[i];
      std::size_t k = i;
      for (; k != 0 && e.before(front_[k - 1]); --k) front_[k] = front_[k - 1];
      front_[k] = e;
    }
  } else {
    std::sort(front_.begin(), front_.end(), [](const WakeUp& a, const WakeUp& b) { return a.before(b); });
  }
}

// Wider buckets when many pushes miss the horizon; narrower ones when buckets are crowded and half the
// horizon would do. The limits leave a gap between them, so the width settles.
void EventQueue::retune() {
  unsigned shift = shift_;
  if (far_ > kRetuneEvery / 8U) {
    if (shift < kHighestShift) ++shift;
  } else if (far_ + upper_ < kRetuneEvery / 16U && sorted_ > 8U * opened_) {
    if (shift > kLowestShift) --shift;
  }
  far_ = upper_ = opened_ = sorted_ = 0;
  if (shift == shift_) return;

  scratch_.assign(front_.begin() + static_cast<std::ptrdiff_t>(front_at_), front_.end());
  heap_.take_all(scratch_);
  for (std::uint32_t& head : heads_) {
    for (std::uint32_t n = head; n != kNone; n = nodes_[n].next) scratch_.push_back(nodes_[n].event);
    head = kNone;
  }
  front_.clear();
  nodes_.clear();
  bits_.fill(0);
  summary_ = 0;
  front_at_ = in_wheel_ = 0;
  free_ = kNone;
  shift_ = shift;
  open_ = last_ps_ >> shift;
  for (const WakeUp& e : scratch_) insert(e);
  far_ = upper_ = 0;
}

void EventQueue::check_invariants() const {
  CHECK_OP(front_at_, <=, front_.size());
  for (std::size_t i = front_at_ + 1; i < front_.size(); ++i) CHECK(front_[i - 1].before(front_[i]));
  std::size_t counted = 0;
  for (std::uint32_t slot = 0; slot < kBuckets; ++slot) {
    const bool marked = (bits_[slot >> 6U] >> (slot & 63U) & 1U) != 0;
    CHECK_OP(marked, ==, heads_[slot] != kNone);
    for (std::uint32_t n = heads_[slot]; n != kNone; n = nodes_[n].next) {
      const std::int64_t bucket = nodes_[n].event.at_ps >> shift_;
      CHECK_OP(static_cast<std::uint32_t>(bucket) & (kBuckets - 1U), ==, slot);
      CHECK(bucket > open_ && bucket < open_ + std::int64_t{kBuckets});
      ++counted;
    }
  }
  CHECK_OP(counted, ==, in_wheel_);
  for (std::uint32_t w = 0; w < 64U; ++w) CHECK_OP((summary_ >> w & 1U) != 0, ==, bits_[w] != 0);
}

}  // namespace weft::sim
