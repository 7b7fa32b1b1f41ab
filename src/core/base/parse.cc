#include "core/base/parse.h"

#include <cstddef>
#include <span>
#include <string>

namespace weft {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;  // how many of the smallest unit one of these is
};

// What one kind of quantity accepts.
struct Kind {
  std::span<const Unit> units;
  std::uint64_t highest;      // in the smallest unit
  std::string_view expected;  // ends the sentence: "expected ..."
};

constexpr Unit kProbabilityUnits[] = {{"%", 10'000}, {"", 1'000'000}};
constexpr Unit kDurationUnits[] = {
    {"ps", 1}, {"ns", 1'000}, {"us", 1'000'000}, {"ms", 1'000'000'000}, {"s", 1'000'000'000'000}};
constexpr Unit kRateUnits[] = {{"bps", 1}, {"kbps", 1'000}, {"Mbps", 1'000'000}, {"Gbps", 1'000'000'000}};
constexpr Unit kSizeUnits[] = {{"", 1},
                               {"B", 1},
                               {"kB", 1'000},
                               {"MB", 1'000'000},
                               {"GB", 1'000'000'000},
                               {"KiB", 1ULL << 10U},
                               {"MiB", 1ULL << 20U},
                               {"GiB", 1ULL << 30U}};
constexpr Unit kDistanceUnits[] = {{"m", 1}, {"km", 1'000}};
constexpr Unit kPlain[] = {{"", 1}};

constexpr Kind kProbability{kProbabilityUnits, 1'000'000,
                            "a probability from 0% to 100% in steps of 0.0001%, such as 1% or 0.01"};
constexpr Kind kDuration{kDurationUnits, 86'400'000'000'000'000,
                         "a time from 0 to 86400s with its unit (ps, ns, us, ms or s), such as 50us"};
constexpr Kind kRate{
    kRateUnits, 10'000'000'000'000,
    "a rate from 0 (unlimited) to 10000Gbps with its unit (bps, kbps, Mbps or Gbps), such as 100Gbps"};
constexpr Kind kSize{
    kSizeUnits, 1ULL << 50U,
    "a size from 0 to 1048576GiB (B, kB, MB, GB, KiB, MiB, GiB or plain bytes), such as 64KiB"};
constexpr Kind kDistance{kDistanceUnits, 100'000'000,
                         "a distance from 0 to 100000km with its unit (m or km), such as 1000km"};

std::string sentence(std::string_view field, std::string_view text, std::string_view expected) {
  std::string s(field);
  s += ": '";
  s += text;
  s += "' is not ";
  s += expected;
  return s;
}

bool digit(char c) { return c >= '0' && c <= '9'; }

// The value in the smallest unit, or false when it does not parse, does not fit or is too fine.
bool parse(std::string_view text, const Kind& kind, std::uint64_t& value) {
  __extension__ using Wide = unsigned __int128;
  constexpr Wide kMantissaLimit = static_cast<Wide>(1) << 62U;
  Wide mantissa = 0;
  std::uint64_t scale = 1;  // 10^fraction digits
  std::size_t i = 0;
  bool any = false;
  for (; i < text.size() && digit(text[i]); ++i, any = true) {
    mantissa = mantissa * 10U + static_cast<unsigned>(text[i] - '0');
    if (mantissa > kMantissaLimit) return false;
  }
  if (!any) return false;
  if (i < text.size() && text[i] == '.') {
    any = false;
    for (++i; i < text.size() && digit(text[i]); ++i, any = true) {
      mantissa = mantissa * 10U + static_cast<unsigned>(text[i] - '0');
      scale *= 10U;
      if (mantissa > kMantissaLimit || scale > 1'000'000'000'000'000'000ULL) return false;
    }
    if (!any) return false;
  }
  const std::string_view suffix = text.substr(i);
  if (mantissa == 0 && suffix.empty()) {  // zero needs no unit
    value = 0;
    return true;
  }
  for (const Unit& unit : kind.units) {
    if (unit.name != suffix) continue;
    const Wide scaled = mantissa * unit.factor;  // below 2^62 * 2^40
    if (scaled % scale != 0 || scaled / scale > kind.highest) return false;
    value = static_cast<std::uint64_t>(scaled / scale);
    return true;
  }
  return false;
}

}  // namespace

Result<std::uint32_t> parse_probability(std::string_view field, std::string_view text) {
  std::uint64_t v = 0;
  if (!parse(text, kProbability, v)) return fail(sentence(field, text, kProbability.expected));
  return static_cast<std::uint32_t>(v);
}

Result<Duration> parse_duration(std::string_view field, std::string_view text) {
  std::uint64_t v = 0;
  if (!parse(text, kDuration, v)) return fail(sentence(field, text, kDuration.expected));
  return picoseconds(static_cast<std::int64_t>(v));
}

Result<Rate> parse_rate(std::string_view field, std::string_view text) {
  std::uint64_t v = 0;
  if (!parse(text, kRate, v)) return fail(sentence(field, text, kRate.expected));
  return Rate{v};
}

Result<Bytes> parse_size(std::string_view field, std::string_view text) {
  std::uint64_t v = 0;
  if (!parse(text, kSize, v)) return fail(sentence(field, text, kSize.expected));
  return Bytes{v};
}

Result<Distance> parse_distance(std::string_view field, std::string_view text) {
  std::uint64_t v = 0;
  if (!parse(text, kDistance, v)) return fail(sentence(field, text, kDistance.expected));
  return Distance{v};
}

Result<std::uint64_t> parse_integer(std::string_view field, std::string_view text, std::uint64_t lowest,
                                    std::uint64_t highest) {
  std::uint64_t v = 0;
  const bool whole = text.find('.') == std::string_view::npos;
  if (!whole || !parse(text, Kind{kPlain, UINT64_MAX, {}}, v) || v < lowest || v > highest) {
    std::string expected = "a whole number from ";
    expected += std::to_string(lowest);
    expected += " to ";
    expected += std::to_string(highest);
    return fail(sentence(field, text, expected));
  }
  return v;
}

}  // namespace weft
