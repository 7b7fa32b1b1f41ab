// How large flows are: points of a cumulative distribution, uniform between them (data/cdf).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/prng.h"
#include "core/base/result.h"
#include "core/base/units.h"

namespace weft::sim {

class SizeDistribution {
 public:
  // Every flow of the same size.
  static SizeDistribution fixed(Bytes size);
  // Lines "bytes part", parts from 0 to 1 or to 100, both never falling; # begins a comment.
  static Result<SizeDistribution> parse(const std::string& name, const std::string& text);

  std::uint64_t draw(Prng& random) const;
  std::uint64_t mean() const { return mean_; }
  std::uint64_t largest() const { return points_.back().bytes; }
  // The part of flows up to this size, in millionths.
  std::uint32_t part_up_to(std::uint64_t bytes) const;

 private:
  struct Point {
    std::uint64_t bytes = 0;
    std::uint64_t part = 0;  // in 2^-40
  };
  static constexpr unsigned kPartBits = 40;
  void finish();

  std::vector<Point> points_;
  std::uint64_t mean_ = 0;
};

struct SizeRow {
  const char* name;
  const char* points;  // the file's content
};
std::span<const SizeRow> size_rows();
// The first line of the file, without its #.
std::string size_text(const SizeRow& row);

}  // namespace weft::sim
