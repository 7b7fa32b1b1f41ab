// The frames that a box keeps: by half-connection and sequence number, in a table of fixed size. Its bound is
// in bytes; a half may hold at most as many as are free (Choudhury and Hahne 1998), so a single one gets half
// of the store and many share it evenly, without anybody counting who is active.
//
// Two tables. Frames lie in places, and the place that became free last is filled next, so that a store with
// little in it stays in the cache however large it is. An index of 16 bytes a row finds them: open addressing
// with linear probing, where what is taken out closes its gap, so that nothing is left behind. Eight numbers
// of a half that follow each other have homes that do, two lines of memory.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/base/seq.h"
#include "core/base/units.h"
#include "wan/logic/frame.h"

namespace weft::wan {

struct Kept {
  std::uint32_t half = 0;
  std::uint32_t msn = 0;  // messages that have ended with this packet, this one included
  Seq seq{};
  Frame frame;
};

inline constexpr std::uint32_t kFrameCost = 128;  // what a frame is charged beside its payload
inline constexpr std::uint32_t kMostPayload = 4096;
inline constexpr std::uint32_t kLargest = kMostPayload + kFrameCost;
inline constexpr std::uint32_t kLeastStore = 4 * kLargest;  // of a box: two frames in each direction

class Store {
 public:
  Store(Bytes bound, std::uint32_t most_frames)
      : bound_(bound.n),
        most_(most_frames),
        rows_(std::bit_ceil(std::size_t{most_frames} * 2)),
        places_(most_frames) {
    free_.reserve(most_frames);
    for (std::uint32_t i = most_frames; i > 0; --i) free_.push_back(i - 1);
  }

  static std::uint64_t cost(const Frame& f) { return f.payload + kFrameCost; }
  // `held`: what the half holds already. Its first frame may take what is left.
  bool has_room(const Frame& f, std::uint64_t held) const {
    if (frames_ >= most_ || bytes_ + cost(f) > bound_) return false;
    return held == 0 || held + cost(f) <= bound_ - bytes_;
  }
  // For a frame that waits for another one: that one must find room, too.
  bool has_room_to_spare(const Frame& f, std::uint64_t held) const {
    return frames_ + 1 < most_ && bytes_ + cost(f) + kLargest <= bound_ && held + cost(f) <= bound_ - bytes_;
  }
  void put(std::uint32_t half, Seq seq, std::uint32_t msn, const Frame& f) {
    CHECK(!free_.empty());
    std::size_t i = home(half, seq);
    while (rows_[i].half != kEmpty) i = next(i);
    const std::uint32_t place = free_.back();
    free_.pop_back();
    rows_[i] = {half, place, seq};
    places_[place] = {half, msn, seq, f};
    bytes_ += cost(f);
    if (bytes_ > highest_) highest_ = bytes_;
    ++frames_;
  }
  Kept* find(std::uint32_t half, Seq seq) {
    const std::size_t i = row_of(half, seq);
    return rows_[i].half == kEmpty ? nullptr : &places_[rows_[i].place];
  }
  void take_out(Kept* kept) {
    bytes_ -= cost(kept->frame);
    --frames_;
    std::size_t gap = row_of(kept->half, kept->seq);
    free_.push_back(rows_[gap].place);
    // Close the gap: a row behind it moves up unless its home lies behind the gap.
    for (std::size_t i = next(gap); rows_[i].half != kEmpty; i = next(i)) {
      const std::size_t wanted = home(rows_[i].half, rows_[i].seq);
      if (((i - wanted) & (rows_.size() - 1)) < ((i - gap) & (rows_.size() - 1))) continue;
      rows_[gap] = rows_[i];
      gap = i;
    }
    rows_[gap] = {};
  }

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t highest() const { return highest_; }
  std::uint64_t bound() const { return bound_; }
  std::uint32_t frames() const { return frames_; }

 private:
  static constexpr std::uint32_t kEmpty = UINT32_MAX;
  static constexpr unsigned kTogether = 3;  // bits of a number that stay together
  struct Row {
    std::uint32_t half = kEmpty;
    std::uint32_t place = 0;
    Seq seq{};
  };

  std::size_t home(std::uint32_t half, Seq seq) const {
    const std::uint64_t group = (seq.v >> kTogether) + (std::uint64_t{half} << 40U);
    const std::uint64_t mixed = (group * 0x9E37'79B9'7F4A'7C15ULL) >> 32U;
    return static_cast<std::size_t>(mixed << kTogether | (seq.v & ((1U << kTogether) - 1))) &
           (rows_.size() - 1);
  }
  // Where it is, or the empty row that says that it is nowhere.
  std::size_t row_of(std::uint32_t half, Seq seq) const {
    std::size_t i = home(half, seq);
    while (rows_[i].half != kEmpty && (rows_[i].half != half || rows_[i].seq != seq)) i = next(i);
    return i;
  }
  std::size_t next(std::size_t i) const { return (i + 1) & (rows_.size() - 1); }

  std::uint64_t bound_;
  std::uint64_t bytes_ = 0;
  std::uint64_t highest_ = 0;
  std::uint32_t most_;
  std::uint32_t frames_ = 0;
  std::vector<Row> rows_;
  std::vector<Kept> places_;
  std::vector<std::uint32_t> free_;
};

}  // namespace weft::wan
