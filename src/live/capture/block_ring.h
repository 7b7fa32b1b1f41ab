// Blocks of a capture on their way from the thread that drives a NIC to the thread that writes them to a
// file: one writes, one reads, nobody waits. Memory is bounded, so a block that finds no room is not taken;
// the writer is told, and counts.
//
//   put put put commit        a block appears for the reader whole, or not at all
//
// Blocks are those of pcapng: a multiple of four bytes, their length in bytes 4 to 7. So the length of a
// block never lies across the end of the ring, and a reader that wrote a part of what it was given can tell
// where the last whole block ended.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "core/base/check.h"
#include "core/wire/bytes.h"

namespace weft::live {

class BlockRing {
 public:
  explicit BlockRing(std::uint64_t bytes) : size_(bytes), bytes_(new std::uint8_t[bytes]) {
    CHECK(std::has_single_bit(bytes));
  }

  // --- the writer ---
  void put(std::span<const std::uint8_t> part) {
    fits_ = fits_ && at_ + part.size() - taken_.load(std::memory_order_acquire) <= size_;
    if (!fits_) return;
    const std::uint64_t from = at_ & (size_ - 1);
    const std::size_t first = std::min<std::size_t>(part.size(), size_ - from);
    std::memcpy(&bytes_[from], part.data(), first);
    std::memcpy(&bytes_[0], part.data() + first, part.size() - first);
    at_ += part.size();
  }
  // False: there was no room for what was put since the last commit(), and it is forgotten.
  bool commit() {
    const bool whole = std::exchange(fits_, true);
    if (whole) {
      given_.store(at_, std::memory_order_release);
    } else {
      at_ = given_.load(std::memory_order_relaxed);
    }
    return whole;
  }
  bool half_full() const { return at_ - taken_.load(std::memory_order_relaxed) > size_ / 2; }

  // --- the reader ---
  // What waits, or of that what lies up to the end of the ring.
  std::span<const std::uint8_t> waiting() const {
    const std::uint64_t from = taken_.load(std::memory_order_relaxed);
    const std::uint64_t n = given_.load(std::memory_order_acquire) - from;
    const std::uint64_t place = from & (size_ - 1);
    return {&bytes_[place], static_cast<std::size_t>(std::min(n, size_ - place))};
  }
  void take(std::uint64_t n) {
    taken_.store(taken_.load(std::memory_order_relaxed) + n, std::memory_order_release);
  }

 private:
  const std::uint64_t size_;
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::uint64_t at_ = 0;  // the writer's, ahead of given_ while a block is made
  bool fits_ = true;
  alignas(64) std::atomic<std::uint64_t> given_{0};
  alignas(64) std::atomic<std::uint64_t> taken_{0};
};

// Follows the blocks of a stream of bytes that comes in pieces.
class BlockCounter {
 public:
  void pass(std::span<const std::uint8_t> bytes) {
    for (std::size_t at = 0; at != bytes.size();) {
      if (left_ == 0) {
        // The head of a block: type and length.
        while (at != bytes.size() && head_ != sizeof header_) header_[head_++] = bytes[at++];
        if (head_ != sizeof header_) break;
        left_ = wire::load_le32(header_ + 4) - static_cast<std::uint32_t>(sizeof header_);
        length_ = left_ + sizeof header_;
        head_ = 0;
      }
      const auto n = std::min<std::size_t>(left_, bytes.size() - at);
      at += n;
      left_ -= static_cast<std::uint32_t>(n);
      if (left_ == 0) {
        whole_ += length_;
        packets_ += wire::load_le32(header_) == kPacket ? 1 : 0;
      }
    }
  }
  std::uint64_t whole() const { return whole_; }  // bytes of blocks that have passed whole
  std::uint64_t packets() const { return packets_; }

 private:
  static constexpr std::uint32_t kPacket = 6;  // pcapng's enhanced packet
  std::uint8_t header_[8] = {};
  std::size_t head_ = 0;
  std::uint32_t left_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t whole_ = 0;
  std::uint64_t packets_ = 0;
};

}  // namespace weft::live
