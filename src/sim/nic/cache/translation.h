// Translation and protection of memory on the NIC: a page of virtual memory becomes a physical one by the
// MTT, and a key is looked up in the MPT (csRNA §4.1, SRNIC §4.5). Both tables are whole on the chip, or a
// cache of them is, or a design leaves them out.
//
// One entry of the MTT translates one page; a miss reads `fetch_bytes`, which bring the neighbours of an
// entry that stand in the same piece of the table. The caller pays for misses; this says how many there are.
#pragma once
#include <cstdint>
#include <optional>

#include "core/base/ids.h"
#include "sim/nic/cache/tags.h"
#include "sim/nic/design.h"

namespace weft::sim {

class Translation {
 public:
  explicit Translation(const TranslationDesign& design)
      : page_(design.page.n), piece_(entries_of_a_read(design)) {
    if (!design.on_chip && design.cache != 0)
      pages_.emplace(std::max<std::uint32_t>(1, design.cache / piece_), design.replacement, kSeed);
    if (!design.on_chip && design.mpt_entries != 0)
      keys_.emplace(design.mpt_entries, design.replacement, kSeed);
  }

  // How many reads of the tables must end before these bytes of a region can be moved.
  std::uint32_t misses(RegionId region, std::uint64_t address, std::uint64_t length) {
    std::uint32_t n = keys_ && !keys_->look_up(region.v) ? 1U : 0U;
    if (!pages_ || length == 0) return n;
    const std::uint64_t last = (address + length - 1) / page_ / piece_;
    for (std::uint64_t p = address / page_ / piece_; p <= last; ++p)
      n += pages_->look_up((std::uint64_t{region.v} << 40U) ^ p) ? 0U : 1U;
    return n;
  }
  // Null where every entry is on the chip, or none is modelled.
  const CacheCounters* pages() const { return pages_ ? &pages_->counters() : nullptr; }
  const CacheCounters* keys() const { return keys_ ? &keys_->counters() : nullptr; }
  std::uint32_t entries_per_read() const { return piece_; }

 private:
  static constexpr std::uint64_t kSeed = 0x7A75'1A7E;
  static std::uint32_t entries_of_a_read(const TranslationDesign& d) {
    return std::max<std::uint32_t>(1, d.fetch_bytes / std::max<std::uint32_t>(1, d.entry_bytes));
  }
  std::uint64_t page_;
  std::uint32_t piece_;  // entries that come with one read, and leave together
  std::optional<Cache> pages_;
  std::optional<Cache> keys_;
};

}  // namespace weft::sim
