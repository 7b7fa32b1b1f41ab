// The memory of a program of the live target, and the judge of every byte of it.
//
// A block is registered as one region, and lies alone between zones that the address sanitizer forbids to
// touch. What a block holds is known (`kept_`); a byte may change only while it is open:
//
//   to the network  the region gives the right, and a queue pair does
//   to a request    a posted receive, READ or atomic has its place there and is not complete
//
// A byte that changed and was not open is a finding, whoever asked for it. A region that was deregistered is
// forbidden altogether.
#pragma once
#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "live/engine/context.h"

namespace weft::fuzz {

struct Range {
  std::size_t block = 0;
  std::size_t offset = 0;
  std::size_t length = 0;
};

class Block {
 public:
  static constexpr std::size_t kZone = 512;  // on either side

  Block(std::size_t length, std::uint8_t rights, std::size_t shift)
      : access(rights), length_(length), memory_(new std::uint8_t[kZone + shift + length + kZone]) {
    at_ = memory_.get() + kZone + shift;
    std::memset(at_, static_cast<int>(0x40 + length % 64), length);
    kept_.assign(at_, at_ + length);
    open_.assign(length, 0);
    ASAN_POISON_MEMORY_REGION(memory_.get(), kZone + shift);
    ASAN_POISON_MEMORY_REGION(at_ + length, kZone);
  }
  ~Block() {
    const auto whole = static_cast<std::size_t>(at_ - memory_.get()) + length_ + kZone;
    ASAN_UNPOISON_MEMORY_REGION(memory_.get(), whole);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::uint8_t* data() const { return at_; }
  std::size_t length() const { return length_; }
  // What work requests and remote keys call this byte.
  std::uint64_t address(std::uint64_t offset) const { return iova + offset; }

  void open(std::size_t offset, std::size_t length, int by) {
    for (std::size_t i = offset; i < offset + length; ++i)
      open_[i] = static_cast<std::uint8_t>(open_[i] + by);  // of some 100 requests
  }
  void check(bool frozen) {
    if (!registered || std::memcmp(at_, kept_.data(), length_) == 0) return;
    for (std::size_t i = 0; i < length_; ++i) {
      if (at_[i] == kept_[i]) continue;
      const bool open = !frozen && (to_network || open_[i] > 0);
      if (!open)
        std::fprintf(stderr, "byte %zu of a block of %zu is %02x, not %02x\n", i, length_, at_[i], kept_[i]);
      CHECK(open);
      kept_[i] = at_[i];
    }
  }
  void forbid() {
    registered = false;
    ASAN_POISON_MEMORY_REGION(at_, length_);
  }

  const std::uint8_t access;
  bool to_network = false;
  bool foreign = false;  // of another domain than the queue pairs
  bool registered = true;
  std::uint64_t iova = 0;
  live::Mr mr;

 private:
  std::size_t length_;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::uint8_t* at_ = nullptr;
  std::vector<std::uint8_t> kept_;
  std::vector<std::uint8_t> open_;  // how many requests may change it
};

class Memory {
 public:
  std::vector<std::unique_ptr<Block>> blocks;
  bool frozen = false;  // whatever is open, nothing may change now

  void check() {
    for (const auto& b : blocks) b->check(frozen);
  }
  // Opens what a request may write through these pieces, and says what that was.
  std::vector<Range> open_for(std::span<const Sge> pieces) {
    std::vector<Range> opened;
    for (const Sge& s : pieces) {
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        Block& b = *blocks[i];
        const bool gives = b.registered && !b.foreign && (b.access & kLocalWrite) != 0;
        const std::uint64_t offset = s.address - b.iova;
        if (!gives || s.lkey != b.mr.lkey || offset >= b.length()) continue;
        // Of a piece that ends beyond the region the part inside may be written before the request fails.
        opened.push_back({i, offset, std::min<std::size_t>(s.length, b.length() - offset)});
        b.open(offset, opened.back().length, 1);
      }
    }
    return opened;
  }
  // The request is complete, and whatever it wrote has been written.
  void close(std::vector<Range>& opened) {
    for (const Range& r : opened) {
      blocks[r.block]->check(frozen);
      blocks[r.block]->open(r.offset, r.length, -1);
    }
    opened.clear();
  }
};

}  // namespace weft::fuzz
