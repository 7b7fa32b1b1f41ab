// Keys: lkey and rkey are one number, a 24-bit table index and an 8-bit tag (docs/protocol/verbs.md#keys). A
// lookup turns (key, address, length) into (region, offset); only the world knows where a region lies.
// Bounds arithmetic cannot wrap. Indices and regions' tags are drawn at random.
//
// Two kinds of row:
//   region   registered memory; its index is the world's RegionId
//   window   rights to a part of a region, for remote use only. Type 1 is good for every queue pair of
//            its protection domain; type 2 for the one that bound it, until somebody invalidates it. Its
//            addresses are those of the region, or count from 0 (type 2 only: kZeroBased)
#pragma once
#include <cstdint>
#include <utility>
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

  // --- regions ---
  Outcome<Key> add(PdId pd, std::uint64_t address, std::uint64_t length, std::uint8_t access);
  // kBusy while windows are bound to it.
  Outcome<void> change(Key key, std::uint8_t changes, PdId pd, std::uint64_t address, std::uint64_t length,
                       std::uint8_t access);
  Outcome<void> remove(Key key);

  // --- windows ---
  Outcome<Key> add_window(PdId pd, WindowType type);
  Outcome<void> remove_window(Key key);
  // `bind.window` carries the index of the window and the tag it is to have from now on.
  bool bind(const WindowBind& bind, PdId pd, Qpn qpn);
  // What SEND with invalidate and local invalidate may do: a type 2 window of this queue pair.
  bool invalidate(Key key, Qpn qpn);
  void unbind_all(Qpn qpn);  // the queue pair is gone

  // --- lookups ---
  enum class Denied : std::uint8_t { kNo, kKey, kDomain, kRights, kBounds };
  // `rights` must all be granted; 0 asks for local reading, which every region allows.
  Denied check_local(Key key, PdId pd, std::uint8_t rights, std::uint64_t address, std::uint64_t length,
                     RegionId& region, std::uint64_t& offset) const {
    const Row* r = find(key);
    if (r == nullptr || r->kind != Kind::kRegion) return Denied::kKey;
    return check(*r, key.v >> 8U, pd, rights, address, length, region, offset);
  }
  Denied check_remote(Key key, PdId pd, Qpn qpn, std::uint8_t rights, std::uint64_t address,
                      std::uint64_t length, RegionId& region, std::uint64_t& offset) const {
    const Row* r = find(key);
    if (r == nullptr) return Denied::kKey;
    if (r->kind == Kind::kRegion) return check(*r, key.v >> 8U, pd, rights, address, length, region, offset);
    return check_window(*r, pd, qpn, rights, address, length, region, offset);
  }
  static RegionId region_of(Key key) { return {key.v >> 8U}; }
  bool uses(PdId pd) const {
    if (free_.size() == rows_.size()) return false;
    for (const Row& r : rows_) {
      if (r.live && r.pd == pd) return true;
    }
    return false;
  }

 private:
  enum class Kind : std::uint8_t { kRegion, kWindow1, kWindow2 };
  struct Row {
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint64_t base = 0;  // windows: where in the region they begin
    PdId pd{};
    std::uint8_t access = 0;
    std::uint8_t tag = 0;
    bool live = false;
    Kind kind = Kind::kRegion;
    bool bound = false;            // windows
    std::uint32_t links = 0;       // regions: windows bound to it; windows: index of the region
    std::uint32_t qpn = kNoQpn.v;  // windows of type 2
  };

  const Row* find(Key key) const {
    const std::uint32_t index = key.v >> 8U;
    if (index >= rows_.size()) return nullptr;
    const Row& r = rows_[index];
    return r.live && r.tag == (key.v & 0xFFU) ? &r : nullptr;
  }
  static Denied check(const Row& r, std::uint32_t index, PdId pd, std::uint8_t rights, std::uint64_t address,
                      std::uint64_t length, RegionId& region, std::uint64_t& offset) {
    if (r.pd != pd) return Denied::kDomain;
    if ((r.access & rights) != rights) return Denied::kRights;
    if (address < r.address || length > r.length || address - r.address > r.length - length)
      return Denied::kBounds;
    region = {index};
    offset = address - r.address;
    return Denied::kNo;
  }
  Denied check_window(const Row& r, PdId pd, Qpn qpn, std::uint8_t rights, std::uint64_t address,
                      std::uint64_t length, RegionId& region, std::uint64_t& offset) const;
  Outcome<std::uint32_t> take_row();
  void unbind(Row& window);
  void release(std::uint32_t index) {
    rows_[index].live = false;
    free_.push_back(index);
  }

  std::vector<Row> rows_;
  std::vector<std::uint32_t> free_;
  std::uint32_t bound_ = 0;  // windows of type 2
  Prng random_;
};

}  // namespace weft
