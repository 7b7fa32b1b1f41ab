// Keys: lkey and rkey are one number, a 24-bit table index and an 8-bit tag drawn at random
// (wire-reference §2.7). A lookup turns (key, address, length) into (region, offset); only the world
// knows where a region lies. Bounds arithmetic cannot wrap.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/ids.h"
#include "core/base/prng.h"
#include "core/base/result.h"
#include "core/verbs/types.h"

namespace weft {

class KeyTable {
 public:
  KeyTable(std::uint32_t capacity, Prng random) : rows_(capacity), random_(random) {
    // A shuffled free list: indices are as hard to guess as tags.
    free_.resize(capacity);
    for (std::uint32_t i = 0; i < capacity; ++i) free_[i] = i;
    for (std::uint32_t i = capacity; i > 1; --i) {
      const auto j = static_cast<std::uint32_t>(random_.below(i));
      std::swap(free_[i - 1], free_[j]);
    }
  }

  Outcome<Key> add(PdId pd, std::uint64_t address, std::uint64_t length, std::uint8_t access) {
    if ((access & (kRemoteWrite | kRemoteAtomic)) != 0 && (access & kLocalWrite) == 0)
      return fail(Errc::kInvalid);
    if (length > 0 && address + (length - 1) < address) return fail(Errc::kInvalid);
    if (free_.empty()) return fail(Errc::kNoMemory);
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Row& r = rows_[index];
    r = {address, length, pd, access, static_cast<std::uint8_t>(random_.next()), true};
    return Key{(index << 8U) | r.tag};
  }
  Outcome<void> remove(Key key) {
    if (find(key) == nullptr) return fail(Errc::kNotFound);
    rows_[key.v >> 8U].live = false;
    free_.push_back(key.v >> 8U);
    return {};
  }

  enum class Denied : std::uint8_t { kNo, kKey, kDomain, kRights, kBounds };
  // `rights` must all be granted; 0 asks for local reading, which every region allows.
  Denied check(Key key, PdId pd, std::uint8_t rights, std::uint64_t address, std::uint64_t length,
               RegionId& region, std::uint64_t& offset) const {
    const Row* r = find(key);
    if (r == nullptr) return Denied::kKey;
    if (r->pd != pd) return Denied::kDomain;
    if ((r->access & rights) != rights) return Denied::kRights;
    if (address < r->address || length > r->length || address - r->address > r->length - length)
      return Denied::kBounds;
    region = {key.v >> 8U};
    offset = address - r->address;
    return Denied::kNo;
  }
  static RegionId region_of(Key key) { return {key.v >> 8U}; }
  bool uses(PdId pd) const {
    for (const Row& r : rows_) {
      if (r.live && r.pd == pd) return true;
    }
    return false;
  }

 private:
  struct Row {
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    PdId pd{};
    std::uint8_t access = 0;
    std::uint8_t tag = 0;
    bool live = false;
  };
  const Row* find(Key key) const {
    const std::uint32_t index = key.v >> 8U;
    if (index >= rows_.size()) return nullptr;
    const Row& r = rows_[index];
    return r.live && r.tag == (key.v & 0xFFU) ? &r : nullptr;
  }

  std::vector<Row> rows_;
  std::vector<std::uint32_t> free_;
  Prng random_;
};

}  // namespace weft
