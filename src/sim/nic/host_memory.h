// The memory of a host, for runs whose packets carry real bytes. Most runs only count bytes, and have none.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/base/ids.h"
#include "core/base/prng.h"

namespace weft::sim {

class HostMemory {
 public:
  bool empty() const { return regions_.empty(); }
  // Random bytes from now on; the span lives as long as the host.
  std::span<std::uint8_t> add(RegionId region, std::uint64_t length, Prng random) {
    std::vector<std::uint8_t>& bytes = regions_[region];
    bytes.resize(length);
    for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random.next() >> 56U);
    return bytes;
  }
  std::span<std::uint8_t> at(RegionId region, std::uint64_t offset, std::uint32_t length) {
    const auto it = regions_.find(region);
    CHECK(it != regions_.end());
    CHECK_OP(offset + length, <=, it->second.size());
    return std::span(it->second).subspan(offset, length);
  }
  // Whether this region is one of those that hold bytes.
  bool has(RegionId region) const { return regions_.contains(region); }
  void remove(RegionId region) { regions_.erase(region); }
  bool holds(RegionId region, std::uint64_t offset, std::uint32_t length) const {
    const auto it = regions_.find(region);
    return it != regions_.end() && offset <= it->second.size() && length <= it->second.size() - offset;
  }

 private:
  std::map<RegionId, std::vector<std::uint8_t>> regions_;
};

}  // namespace weft::sim
