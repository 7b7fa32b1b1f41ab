#include "sim/traffic/sizes.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace weft::sim {
namespace {

__extension__ using Wide = unsigned __int128;

// A decimal number in 2^-bits, rounded down; false when it is none, or too large for any use here.
bool fixed_point(std::string_view text, unsigned bits, std::uint64_t& out) {
  Wide value = 0;
  Wide scale = 1;
  bool point = false;
  std::size_t digits = 0;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9' && digits < 24) {
      value = value * 10U + static_cast<unsigned>(c - '0');
      if (point) scale *= 10U;
      if (value != 0 || point) ++digits;
    } else {
      return false;
    }
  }
  if (text.empty() || text == "." || value / scale > (1ULL << (bits == 0 ? 40U : 8U))) return false;
  // Keep the product within 128 bits: 24 digits are 80 bits.
  out = static_cast<std::uint64_t>((value << bits) / scale);
  return true;
}

std::string_view word(std::string_view& line) {
  const auto begin = std::min(line.find_first_not_of(" \t\r,"), line.size());
  const auto end = std::min(line.find_first_of(" \t\r,", begin), line.size());
  const std::string_view w = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return w;
}

}  // namespace

std::string size_text(const SizeRow& row) {
  std::string_view first(row.points);
  first = first.substr(0, first.find('\n'));
  for (const std::string_view lead : {"# workload: ", "# source: "}) {
    if (first.starts_with(lead)) first.remove_prefix(lead.size());
  }
  return std::string(first);
}

SizeDistribution SizeDistribution::fixed(Bytes size) {
  SizeDistribution d;
  d.points_ = {{size.n, 0}, {size.n, 1ULL << kPartBits}};
  d.finish();
  return d;
}

Result<SizeDistribution> SizeDistribution::parse(const std::string& name, const std::string& text) {
  SizeDistribution d;
  std::string_view rest = text;
  for (std::uint32_t number = 1; !rest.empty(); ++number) {
    const auto end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    line = line.substr(0, line.find('#'));
    const std::string_view size = word(line);
    if (size.empty()) continue;
    const std::string_view part = word(line);
    if (part.empty()) continue;  // a single number is a mean that some files begin with
    Point p;
    if (!fixed_point(size, 0, p.bytes) || !fixed_point(part, kPartBits, p.part) || !word(line).empty())
      return fail(name + ", line " + std::to_string(number) + ": not a size in bytes and a cumulative part");
    if (!d.points_.empty() && (p.bytes < d.points_.back().bytes || p.part < d.points_.back().part))
      return fail(name + ", line " + std::to_string(number) + ": sizes and parts may not fall");
    d.points_.push_back(p);
  }
  if (d.points_.empty()) return fail(name + ": there are no points in it");
  const std::uint64_t whole = 1ULL << kPartBits;
  const std::uint64_t last = d.points_.back().part;
  // Written-out fractions end a little beside one.
  const auto near = [](std::uint64_t a, std::uint64_t b) { return a + b / 1000 >= b && a <= b + b / 1000; };
  if (!near(last, whole) && !near(last, 100 * whole))
    return fail(name + ": the last part is neither 1 nor 100");
  for (Point& p : d.points_) p.part = static_cast<std::uint64_t>((Wide{p.part} << kPartBits) / last);
  if (d.points_.back().bytes == 0 || d.points_.back().bytes > 1ULL << 31U)
    return fail(name + ": the largest size is not between 1 byte and a message's 2 GiB");
  d.finish();
  return d;
}

void SizeDistribution::finish() {
  if (points_.front().part != 0) points_.insert(points_.begin(), {points_.front().bytes, 0});
  Wide sum = 0;
  for (std::size_t i = 1; i < points_.size(); ++i)
    sum += Wide{points_[i].part - points_[i - 1].part} * (points_[i].bytes + points_[i - 1].bytes);
  mean_ = std::max<std::uint64_t>(static_cast<std::uint64_t>(sum >> (kPartBits + 1U)), 1);
}

std::uint64_t SizeDistribution::draw(Prng& random) const {
  const std::uint64_t u = random.next() >> (64U - kPartBits);
  const auto above = std::upper_bound(points_.begin() + 1, points_.end() - 1, u,
                                      [](std::uint64_t v, const Point& p) { return v < p.part; });
  const Point& hi = *above;
  const Point& lo = *std::prev(above);
  if (hi.part == lo.part) return std::max<std::uint64_t>(hi.bytes, 1);
  const auto into =
      static_cast<std::uint64_t>(Wide{hi.bytes - lo.bytes} * (u - lo.part) / (hi.part - lo.part));
  return std::max<std::uint64_t>(lo.bytes + into, 1);
}

std::uint32_t SizeDistribution::part_up_to(std::uint64_t bytes) const {
  if (bytes >= points_.back().bytes) return 1'000'000;
  const auto above = std::upper_bound(points_.begin(), points_.end(), bytes,
                                      [](std::uint64_t v, const Point& p) { return v < p.bytes; });
  if (above == points_.begin()) return 0;
  const Point& lo = *std::prev(above);
  const Wide part = lo.part + Wide{above->part - lo.part} * (bytes - lo.bytes) / (above->bytes - lo.bytes);
  return static_cast<std::uint32_t>((part * 1'000'000U) >> kPartBits);
}

}  // namespace weft::sim
