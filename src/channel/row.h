// Deadlines of one length: acknowledgements that are owed, NOPs. What comes last is due last, so these are a
// list, and coming, going and looking are a handful of instructions each, however many there are. (A heap,
// Deadlines, serves what comes in any order; time-outs of seconds stand in it, and these would all go in
// front of them.)
//
// The length may change in use. What is due before the last one then walks forward to its place.
//
//   entries_   one for each channel, by index, and one more that is both ends of the list
#pragma once
#include <cstdint>
#include <vector>

#include "channel/clock.h"
#include "core/base/units.h"

namespace weft::channel {

class Row {
 public:
  explicit Row(std::uint32_t capacity) : entries_(capacity + 1), end_(capacity) {
    entries_[end_].before = entries_[end_].after = end_;
  }

  Time next() const { return entries_[entries_[end_].after].at; }  // kNever: nothing is due
  bool contains(std::uint32_t index) const { return entries_[index].at != kNever; }
  std::uint32_t first() const { return entries_[end_].after; }
  std::uint32_t after(std::uint32_t index) const { return entries_[index].after; }
  // Is this entry due? The end of the list never is.
  bool due(std::uint32_t index, Time now) const { return entries_[index].at <= now; }

  // In the place of an earlier entry of this index.
  void put(std::uint32_t index, Time at) {
    remove(index);
    if (at == kNever) return;
    std::uint32_t before = entries_[end_].before;
    while (before != end_ && entries_[before].at > at) before = entries_[before].before;
    const std::uint32_t after = entries_[before].after;
    entries_[index] = {at, before, after};
    entries_[before].after = entries_[after].before = index;
  }
  void remove(std::uint32_t index) {
    Entry& e = entries_[index];
    if (e.at == kNever) return;
    e.at = kNever;
    entries_[e.before].after = e.after;
    entries_[e.after].before = e.before;
  }
  // The clock goes back by so much.
  void rebase(Duration by) {
    for (std::uint32_t i = first(); i != end_; i = after(i)) entries_[i].at = rebased(entries_[i].at, by);
  }

 private:
  struct Entry {
    Time at = kNever;
    std::uint32_t before = 0;
    std::uint32_t after = 0;
  };
  std::vector<Entry> entries_;
  std::uint32_t end_;
};

}  // namespace weft::channel
