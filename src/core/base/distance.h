// How far two sites are apart, along the fibre. Light in glass takes 5 us for a kilometre.
#pragma once
#include <compare>
#include <cstdint>

#include "core/base/units.h"

namespace weft {

struct Distance {
  std::uint64_t metres = 0;
  constexpr auto operator<=>(const Distance&) const = default;
};

constexpr Distance kilometres(std::uint64_t n) { return {n * 1000}; }

// One way.
constexpr Duration propagation(Distance d) { return nanoseconds(5) * static_cast<std::int64_t>(d.metres); }

}  // namespace weft
