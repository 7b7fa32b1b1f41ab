// The one place where live code reads a clock. Everything below takes time as an argument.
//
// Time counts from the construction of the Clock: a Time in picoseconds holds 106 days, which is long for a
// process that uses verbs and short for a machine's uptime. After kLast the clock stands still, so that no
// time wraps: what has been acknowledged stays so and packets go on to be answered, but no time-out comes any
// more. The Nic says so in time (docs/decisions/times-are-to-go-back.md).
#pragma once
#include <cstdint>

#include "core/base/units.h"

namespace weft::live {

inline constexpr Duration kDay = seconds(24LL * 3600);

class Clock {
 public:
  static constexpr Time kLast = Time{} + kDay * 106;

  Clock() : Clock(0) {}
  explicit Clock(std::int64_t old_ns);  // as if it had been constructed so long ago
  // For tests in virtual time: it says what `hand` says.
  static Clock by_hand(const Time& hand) {
    Clock c;
    c.hand_ = &hand;
    return c;
  }
  Time now() const;
  // What Time 0 is on the wall's clock, in nanoseconds since 1970, as far as that clock is right now.
  std::uint64_t unix_start_ns() const;

 private:
  std::int64_t base_ns_;
  const Time* hand_ = nullptr;
};

}  // namespace weft::live
