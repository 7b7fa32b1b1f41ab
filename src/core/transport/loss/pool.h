// Bitmaps that only loss needs, shared by all queue pairs (SRNIC §4.4.2's bitmap onloading as a
// data-structure rule): taken at the first out-of-order packet, given back on leaving recovery. An
// empty pool is not an error; the queue pair then behaves as go-back-N, counted.
//
// A block is two rings of `window` bits, indexed by sequence number modulo window:
//
//   sender     A = selectively acknowledged      (B unused)
//   receiver   A = arrived                       B = last packet of a message (IRN §5.3.3)
//
// Bits outside [base, base + window) are zero: whoever advances the base clears what it passes.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/base/seq.h"
#include "core/transport/loss/fast_exit.h"
#include "core/transport/stream.h"

namespace weft {

class LossPool {
 public:
  LossPool(std::uint32_t blocks, std::uint32_t window)
      : window_(window),
        words_(window / 64),
        bits_(static_cast<std::size_t>(blocks) * words_ * 2),
        top_(blocks),
        runs_(blocks) {
    CHECK(std::has_single_bit(window) && window >= 64);
    CHECK(blocks < kNoBlock);
    free_.reserve(blocks);
    for (std::uint32_t i = blocks; i > 0; --i) free_.push_back(static_cast<std::uint16_t>(i - 1));
  }

  std::uint32_t window() const { return window_; }
  std::uint32_t in_use() const { return static_cast<std::uint32_t>(top_.size() - free_.size()); }

  std::uint16_t take() {
    if (free_.empty()) return kNoBlock;
    const std::uint16_t b = free_.back();
    free_.pop_back();
    top_[b] = {};
    runs_[b] = {};
    return b;
  }
  void give_back(std::uint16_t b) {
    std::uint64_t* w = words(b);
    for (std::size_t i = 0; i < words_ * 2U; ++i) w[i] = 0;
    free_.push_back(b);
  }

  bool arrived(std::uint16_t b, Seq s) const { return bit(words(b), s); }
  bool message_end(std::uint16_t b, Seq s) const { return bit(words(b) + words_, s); }
  void set(std::uint16_t b, Seq s, bool end) {
    words(b)[index(s)] |= mask(s);
    if (end) words(b)[words_ + index(s)] |= mask(s);
    if (s > top_[b]) top_[b] = s;
  }
  void clear(std::uint16_t b, Seq s) {
    words(b)[index(s)] &= ~mask(s);
    words(b)[words_ + index(s)] &= ~mask(s);
  }
  // Clears [from, to); at most one window.
  void clear_range(std::uint16_t b, Seq from, Seq to) {
    if (to - from > window_) from = to - window_;
    for (Seq s = from; s < to; ++s) clear(b, s);
  }
  // The highest sequence number ever set in this block.
  Seq top(std::uint16_t b) const { return top_[b]; }
  FastExit& run(std::uint16_t b) { return runs_[b]; }
  // First clear bit A in [from, to), or `to`.
  Seq first_clear(std::uint16_t b, Seq from, Seq to) const {
    const std::uint64_t* w = words(b);
    while (from < to) {
      const unsigned shift = static_cast<unsigned>(from.v & 63U);
      const std::uint64_t inverted = ~w[index(from)] >> shift;
      if (inverted != 0) {
        const Seq found = from + static_cast<std::uint64_t>(std::countr_zero(inverted));
        if (static_cast<unsigned>(std::countr_zero(inverted)) + shift < 64U) return found < to ? found : to;
      }
      from += 64U - shift;
    }
    return to;
  }

 private:
  std::size_t index(Seq s) const { return static_cast<std::size_t>((s.v & (window_ - 1U)) >> 6U); }
  static std::uint64_t mask(Seq s) { return 1ULL << (s.v & 63U); }
  bool bit(const std::uint64_t* w, Seq s) const { return (w[index(s)] & mask(s)) != 0; }
  std::uint64_t* words(std::uint16_t b) { return &bits_[static_cast<std::size_t>(b) * words_ * 2U]; }
  const std::uint64_t* words(std::uint16_t b) const {
    return &bits_[static_cast<std::size_t>(b) * words_ * 2U];
  }

  std::uint32_t window_;
  std::uint32_t words_;
  std::vector<std::uint64_t> bits_;
  std::vector<Seq> top_;
  std::vector<FastExit> runs_;
  std::vector<std::uint16_t> free_;
};

}  // namespace weft
