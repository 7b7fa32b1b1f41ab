// The frames that a box keeps: by half-connection and sequence number, in a table of fixed size. Its bound is
// in bytes; a half may hold at most as many as are free (Choudhury and Hahne 1998), so a single one gets half
// of the store and many share it evenly, without anybody counting who is active.
//
// Open addressing with linear probing; what is taken out closes its gap, so nothing is left behind.
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
  std::uint32_t half = UINT32_MAX;  // UINT32_MAX: an empty row
  std::uint32_t msn = 0;            // messages that have ended with this packet, this one included
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
      : bound_(bound.n), most_(most_frames), rows_(std::bit_ceil(std::size_t{most_frames} * 2)) {}

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
    CHECK(frames_ < most_);
    std::size_t i = home(half, seq);
    while (rows_[i].half != UINT32_MAX) i = next(i);
    rows_[i] = {half, msn, seq, f};
    bytes_ += cost(f);
    if (bytes_ > highest_) highest_ = bytes_;
    ++frames_;
  }
  Kept* find(std::uint32_t half, Seq seq) {
    for (std::size_t i = home(half, seq); rows_[i].half != UINT32_MAX; i = next(i)) {
      if (rows_[i].half == half && rows_[i].seq == seq) return &rows_[i];
    }
    return nullptr;
  }
  void take_out(Kept* row) {
    bytes_ -= cost(row->frame);
    --frames_;
    // Close the gap: a row behind it moves up unless its home lies behind the gap.
    auto gap = static_cast<std::size_t>(row - rows_.data());
    for (std::size_t i = next(gap); rows_[i].half != UINT32_MAX; i = next(i)) {
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
  std::size_t home(std::uint32_t half, Seq seq) const {
    const std::uint64_t mixed = (seq.v + (std::uint64_t{half} << 40U)) * 0x9E37'79B9'7F4A'7C15ULL;
    return static_cast<std::size_t>(mixed >> 32U) & (rows_.size() - 1);
  }
  std::size_t next(std::size_t i) const { return (i + 1) & (rows_.size() - 1); }

  std::uint64_t bound_;
  std::uint64_t bytes_ = 0;
  std::uint64_t highest_ = 0;
  std::uint32_t most_;
  std::uint32_t frames_ = 0;
  std::vector<Kept> rows_;
};

}  // namespace weft::wan
