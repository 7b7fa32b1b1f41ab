// The memory of a host, for runs whose packets carry real bytes. Most runs only count bytes, and have none.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "core/base/check.h"
#include "core/base/ids.h"
#include "core/base/prng.h"

namespace weft::sim {

class HostMemory {
 public:
  bool empty() const { return regions_.empty(); }
  // Random bytes from now on, or zeros, which cost nothing until they are touched; the span lives as long as
  // the host.
  std::span<std::uint8_t> add(RegionId region, std::uint64_t length, std::optional<Prng> random) {
    Memory& m = regions_[region];
    m = {Bytes(static_cast<std::uint8_t*>(std::calloc(std::max<std::uint64_t>(length, 1), 1)), std::free),
         length};
    CHECK(m.bytes != nullptr);
    for (std::uint64_t i = 0; random && i < length; ++i)
      m.bytes.get()[i] = static_cast<std::uint8_t>(random->next() >> 56U);
    return {m.bytes.get(), length};
  }
  // The program's own, which outlives its registration.
  void adopt(RegionId region, std::span<std::uint8_t> bytes) {
    regions_[region] = {Bytes(bytes.data(), [](void*) {}), bytes.size()};
  }
  std::span<std::uint8_t> at(RegionId region, std::uint64_t offset, std::uint32_t length) {
    const auto it = regions_.find(region);
    CHECK(it != regions_.end());
    CHECK_OP(offset + length, <=, it->second.length);
    return {it->second.bytes.get() + offset, length};
  }
  // Whether this region is one of those that hold bytes.
  bool has(RegionId region) const { return regions_.contains(region); }
  void remove(RegionId region) { regions_.erase(region); }
  bool holds(RegionId region, std::uint64_t offset, std::uint32_t length) const {
    const auto it = regions_.find(region);
    return it != regions_.end() && offset <= it->second.length && length <= it->second.length - offset;
  }

 private:
  using Bytes = std::unique_ptr<std::uint8_t, void (*)(void*)>;
  struct Memory {
    Bytes bytes{nullptr, std::free};
    std::uint64_t length = 0;
  };
  std::map<RegionId, Memory> regions_;
};

}  // namespace weft::sim
