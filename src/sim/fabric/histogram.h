// How long queues were, in quarter octaves: a percentile is right to within 19 %. Zero has a bucket of its
// own.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>

namespace weft::sim {

class Histogram {
 public:
  void add(std::uint64_t value, std::uint64_t times = 1) { counts_[bucket(value)] += times; }
  void merge(const Histogram& o) {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += o.counts_[i];
  }
  std::uint64_t total() const { return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0}); }
  // The upper end of the bucket in which the q-th part in `of` parts lies (percentile(99, 100)).
  std::uint64_t quantile(std::uint64_t q, std::uint64_t of) const {
    const std::uint64_t all = total();
    if (all == 0) return 0;
    __extension__ using Wide = unsigned __int128;
    const auto rank = static_cast<std::uint64_t>((Wide{all - 1} * q) / of);
    std::uint64_t seen = 0;
    for (std::uint32_t i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (seen > rank) return upper(i);
    }
    return upper(kBuckets - 1);
  }

 private:
  // Bucket 0: zero. Then 4 per octave from 2^5 to 2^31; what is outside goes to the ends.
  static constexpr std::uint32_t kLowest = 5;
  static constexpr std::uint32_t kBuckets = 1 + 4 * 26;
  static constexpr std::uint32_t bucket(std::uint64_t v) {
    if (v == 0) return 0;
    v = std::clamp<std::uint64_t>(v, 1U << kLowest, (1ULL << 31U) - 1U);
    const auto octave = static_cast<std::uint32_t>(std::bit_width(v)) - 1U;
    return 1U + (octave - kLowest) * 4U + (static_cast<std::uint32_t>(v >> (octave - 2U)) & 3U);
  }
  static constexpr std::uint64_t upper(std::uint32_t b) {
    if (b == 0) return 0;
    const std::uint32_t octave = kLowest + (b - 1U) / 4U;
    return ((5ULL + (b - 1U) % 4U) << (octave - 2U)) - 1U;
  }
  std::array<std::uint64_t, kBuckets> counts_{};
};

}  // namespace weft::sim
