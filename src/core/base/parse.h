// Quantities as people write them -> the types of units.h: "1%", "50us", "100Gbps", "64KiB".
//
// Every value of the command line and of scenario files comes through here, so that a unit means the
// same everywhere and a mistake gets the same sentence everywhere: the field, the value, what is
// allowed. Numbers are decimal and exact; they never pass through a double ("0.1%" is 1000 millionths
// on every machine), and a value finer than the type can hold is refused instead of rounded to zero.
//
//   probability  "1%" "0.5%" "0.005" "0"                    -> millionths, at most 1 000 000
//   duration     "50us" "1.5ms" "2s" "300ns" "20ps" "0"     -> Duration; a unit is required
//   rate         "100Gbps" "2.5Gbps" "400Mbps" "8kbps" "0"  -> Rate; 0 is unlimited
//   size         "64KiB" "1MiB" "4GiB" "1500B" "1500"       -> Bytes; decimal "kB" "MB" "GB" too
//   distance     "1000km" "250m" "0"                        -> Distance; a unit is required
//   integer      "4096"                                     -> within the caller's range
//
// Every unit has one spelling, and upper and lower case matter.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/base/distance.h"
#include "core/base/result.h"
#include "core/base/units.h"

namespace weft {

Result<std::uint32_t> parse_probability(std::string_view field, std::string_view text);
Result<Duration> parse_duration(std::string_view field, std::string_view text);
Result<Rate> parse_rate(std::string_view field, std::string_view text);
Result<Bytes> parse_size(std::string_view field, std::string_view text);
Result<Distance> parse_distance(std::string_view field, std::string_view text);
Result<std::uint64_t> parse_integer(std::string_view field, std::string_view text, std::uint64_t lowest,
                                    std::uint64_t highest);

}  // namespace weft
