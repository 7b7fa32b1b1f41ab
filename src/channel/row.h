// Deadlines of one length: acknowledgements that are owed, NOPs. What comes last is due last, so these are a
// ring, and coming, going and looking are a handful of instructions each, however many there are. (A heap,
// Deadlines, serves what comes in any order; time-outs of seconds stand in it, and these would all go in
// front of them.)
//
//   entries_   head ... tail: in the order in which they are due; one that was taken out is nobody's until
//   the
//              head comes by
//   place_     where in it each channel stands, by index: four bytes of a channel that is idle
//
// Those that are due together lie behind each other in memory. A list through the channels would be shorter,
// and to walk it would be to wait for one line after the other.
//
// The length may change in use. What is due before the last one then walks forward to its place.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "channel/clock.h"
#include "core/base/units.h"

namespace weft::channel {

class Row {
 public:
  // Indexes are below `capacity`.
  explicit Row(std::uint32_t capacity)
      : place_(capacity + 1), entries_(2 * std::size_t{std::bit_ceil(capacity)}), end_(capacity) {}

  // kNever: nothing is due.
  Time next() const { return head_ == tail_ ? kNever : at(head_).at; }
  bool contains(std::uint32_t index) const { return place_[index] != 0; }
  std::uint32_t first() const { return head_ == tail_ ? end_ : at(head_).index; }
  std::uint32_t after(std::uint32_t index) const {
    for (std::uint32_t p = place_[index]; p != tail_; ++p) {  // a place is one behind its entry
      if (at(p).index != end_) return at(p).index;
    }
    return end_;
  }
  // Is this entry due? The end of the row never is.
  bool due(std::uint32_t index, Time now) const {
    return place_[index] != 0 && at(place_[index] - 1).at <= now;
  }
  // What put and remove look at first.
  void prefetch(std::uint32_t index) const { __builtin_prefetch(&place_[index], 1); }

  // In the place of an earlier entry of this index.
  void put(std::uint32_t index, Time when) {
    remove(index);
    if (when == kNever) return;
    if (tail_ - head_ == entries_.size()) close_ranks();
    std::uint32_t p = tail_++;
    for (; p != head_ && at(p - 1).at > when; --p) move(p - 1, p);
    at(p) = {when, index};
    place_[index] = p + 1;
    if (tail_ == UINT32_MAX) close_ranks();
  }
  void remove(std::uint32_t index) {
    const std::uint32_t place = place_[index];
    if (place == 0) return;
    place_[index] = 0;
    at(place - 1).index = end_;
    while (head_ != tail_ && at(head_).index == end_) ++head_;
  }
  // The clock goes back by so much.
  void rebase(Duration by) {
    for (std::uint32_t p = head_; p != tail_; ++p) at(p).at = rebased(at(p).at, by);
  }

 private:
  struct Entry {
    Time at{};
    std::uint32_t index = 0;  // end_: nobody's
  };
  Entry& at(std::uint32_t p) { return entries_[p & (entries_.size() - 1)]; }
  const Entry& at(std::uint32_t p) const { return entries_[p & (entries_.size() - 1)]; }
  void move(std::uint32_t from, std::uint32_t to) {
    at(to) = at(from);
    if (at(to).index != end_) place_[at(to).index] = to + 1;
  }
  // There is room for twice as many as there are channels, so at least half of a full ring is nobody's: that
  // is worth as many steps as it took to get there.
  void close_ranks() {
    const std::uint32_t size = static_cast<std::uint32_t>(entries_.size());
    std::uint32_t to = head_;
    for (std::uint32_t p = head_; p != tail_; ++p) {
      if (at(p).index != end_) move(p, to++);
    }
    tail_ = to;
    // Numbers of entries begin again, and none of them is the last that there is.
    const std::uint32_t back = head_ - (head_ & (size - 1));
    for (std::uint32_t p = head_; p != tail_; ++p) place_[at(p).index] -= back;
    head_ -= back;
    tail_ -= back;
  }

  std::vector<std::uint32_t> place_;  // 0: not in it
  std::vector<Entry> entries_;
  std::uint32_t end_;
  std::uint32_t head_ = 0;  // an entry of somebody's, if there is any
  std::uint32_t tail_ = 0;
};

}  // namespace weft::channel
