#include "sim/engine/window_queue.h"

#include <algorithm>
#include <bit>

#include "core/base/check.h"

namespace weft::sim {

WindowQueue::WindowQueue() : nodes_(1) { heads_.fill(kNone); }

std::uint32_t WindowQueue::add_actor(std::uint32_t node) {
  CHECK_OP(node_of_.size(), <, 1U << WakeUp::kActorBits);
  if (node >= nodes_.size()) nodes_.resize(node + 1U);
  node_of_.push_back(node);
  return static_cast<std::uint32_t>(node_of_.size() - 1U);
}

void WindowQueue::set_width(Duration width) {
  CHECK(empty() && window_ == -1);
  windows_ = Windows(width);
}

// What is running may ask for a world event in the open window only if everything later waits for it. That is
// so where there is one node; where there are several, others may have gone past its time.
void WindowQueue::push_world(WakeUp e) {
  CHECK(nodes_.size() <= 2 || e.at_ps >= cut_);
  world_.push(e);
  cut_ = std::min(cut_, e.at_ps);
}

void WindowQueue::push_later(WakeUp e, std::uint32_t slot) {
  std::uint32_t n = heads_[slot];
  if (n == kNone || chunks_[n].count == Chunk::kEvents) {
    std::uint32_t fresh = free_;
    if (fresh != kNone) {
      free_ = chunks_[fresh].next;
    } else {
      fresh = static_cast<std::uint32_t>(chunks_.size());
      chunks_.emplace_back();
    }
    chunks_[fresh].count = 0;
    chunks_[fresh].next = n;
    heads_[slot] = n = fresh;
    bits_[slot >> 6U] |= 1ULL << (slot & 63U);
  }
  Chunk& c = chunks_[n];
  c.events[c.count++] = e;
}

// Everything before cut_ has run, and no world event is due. Moves the cut on; false when nothing is left.
bool WindowQueue::go_on(std::int64_t limit) {
  const std::int64_t world = world_.empty() ? kEnd : world_.top().at_ps;
  if (cut_ == window_end_) {
    const std::int64_t next = std::min(next_window(), world == kEnd ? kEnd : windows_.of(Time{world}));
    if (next == kEnd) return false;
    if (windows_.start(next).ps > limit) return false;
    open(next);
  }
  cut_ = std::min({window_end_, world, limit == kEnd ? kEnd : limit + 1});
  return true;
}

// The first window after the open one that holds events; kEnd when none does.
std::int64_t WindowQueue::next_window() const {
  const std::int64_t far = far_.empty() ? kEnd : windows_.of(Time{far_.top().at_ps});
  const auto from = static_cast<std::uint32_t>(window_ + 1) & (kWindows - 1U);
  constexpr std::uint32_t kWords = kWindows / 64U;
  for (std::uint32_t i = 0; i <= kWords; ++i) {
    const std::uint32_t word = ((from >> 6U) + i) % kWords;
    std::uint64_t bits = bits_[word];
    if (i == 0) bits &= ~0ULL << (from & 63U);
    if (i == kWords) bits &= ~(~0ULL << (from & 63U));
    if (bits == 0) continue;
    const std::uint32_t slot = (word << 6U) + static_cast<std::uint32_t>(std::countr_zero(bits));
    return std::min(far, window_ + 1 + ((slot - from) & (kWindows - 1U)));
  }
  return far;
}

void WindowQueue::open(std::int64_t window) {
  window_ = window;
  window_end_ = windows_.start(window + 1).ps;
  active_.clear();
  turn_ = 0;
  const auto slot = static_cast<std::uint32_t>(window) & (kWindows - 1U);
  for (std::uint32_t n = heads_[slot]; n != kNone;) {
    Chunk& c = chunks_[n];
    for (std::uint32_t i = 0; i < c.count; ++i) push_now(c.events[i], node_of_[c.events[i].actor()]);
    const std::uint32_t next = c.next;
    c.next = free_;
    free_ = n;
    n = next;
  }
  heads_[slot] = kNone;
  bits_[slot >> 6U] &= ~(1ULL << (slot & 63U));
  while (!far_.empty() && far_.top().at_ps < window_end_) {
    const WakeUp e = far_.pop();
    push_now(e, node_of_[e.actor()]);
  }
}

void WindowQueue::check_invariants() const {
  std::size_t counted = world_.size() + far_.size();
  for (const NodeEvents& events : nodes_) {
    events.check_invariants();
    counted += events.size();
    if (!events.empty()) CHECK(events.top().at_ps < window_end_);
  }
  for (const std::uint32_t node : active_) CHECK_OP(node, <, nodes_.size());
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].empty()) CHECK(std::find(active_.begin(), active_.end(), node) != active_.end());
  }
  for (std::uint32_t slot = 0; slot < kWindows; ++slot) {
    CHECK_OP((bits_[slot >> 6U] >> (slot & 63U) & 1U) != 0, ==, heads_[slot] != kNone);
    for (std::uint32_t n = heads_[slot]; n != kNone; n = chunks_[n].next) {
      counted += chunks_[n].count;
      for (std::uint32_t i = 0; i < chunks_[n].count; ++i) {
        const std::int64_t window = windows_.of(Time{chunks_[n].events[i].at_ps});
        CHECK_OP(static_cast<std::uint32_t>(window) & (kWindows - 1U), ==, slot);
        CHECK(window > window_ && window < window_ + std::int64_t{kWindows});
      }
    }
  }
  CHECK_OP(counted, ==, size_);
  CHECK(cut_ <= window_end_);
}

}  // namespace weft::sim
