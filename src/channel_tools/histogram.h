// Times in buckets as HdrHistogram has them: 64 for each power of two, so that a percentile is at most 1.6 %
// above the truth whatever its size, in 20 KB. Recording is a few instructions; histograms add up.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace weft::tools {

class Histogram {
 public:
  void record(std::uint64_t ns) {
    ++buckets_[index(ns)];
    ++count_;
    sum_ += ns;
    least_ = std::min(least_, ns);
    most_ = std::max(most_, ns);
  }
  void add(const Histogram& o) {
    for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += o.buckets_[i];
    count_ += o.count_;
    sum_ += o.sum_;
    least_ = std::min(least_, o.least_);
    most_ = std::max(most_, o.most_);
  }
  std::uint64_t count() const { return count_; }
  std::uint64_t least() const { return count_ == 0 ? 0 : least_; }
  std::uint64_t most() const { return most_; }
  double mean() const { return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_); }
  // The value that so many millionths of all do not exceed.
  std::uint64_t percentile(std::uint32_t millionths) const {
    if (count_ == 0) return 0;
    __extension__ using Wide = unsigned __int128;
    const auto wanted = std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>((Wide{count_} * millionths + 999'999) / 1'000'000));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen >= wanted) return std::min(highest(i), most_);
    }
    return most_;
  }

 private:
  static constexpr unsigned kBits = 6;
  static constexpr unsigned kPowers = 41;  // up to 2^46 ns, a day; what is longer is counted as that
  static constexpr std::size_t kBuckets = std::size_t{kPowers + 1} << kBits;

  static std::size_t index(std::uint64_t ns) {
    const unsigned width = static_cast<unsigned>(std::bit_width(ns));
    if (width <= kBits) return ns;
    const unsigned shift = width - kBits - 1;
    if (shift >= kPowers) return kBuckets - 1;
    return (std::size_t{shift} + 1) * (1U << kBits) + ((ns >> shift) & ((1U << kBits) - 1));
  }
  static std::uint64_t highest(std::size_t i) {
    const std::size_t row = i >> kBits;
    const std::uint64_t low = i & ((1U << kBits) - 1);
    if (row == 0) return low;
    return ((low + (1U << kBits) + 1) << (row - 1)) - 1;
  }

  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t least_ = UINT64_MAX;
  std::uint64_t most_ = 0;
};

}  // namespace weft::tools
