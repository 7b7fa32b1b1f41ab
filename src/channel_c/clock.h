// The machine's clock as the Time of a context, for as long as the program runs. It begins one day in, so
// that a moment before now is a Time, too, and goes back there before a Time is full (channel/clock.h).
#pragma once
#include <algorithm>
#include <chrono>

#include "channel/clock.h"
#include "core/base/units.h"

namespace weft::channel {

class Clock {
 public:
  using Point = std::chrono::steady_clock::time_point;
  explicit Clock(Point begin) : base_(begin - kBegin) {}

  // `back(by)` is called first, as often as the clock goes back.
  template <class Back>
  Time at(Point point, Back back) {
    while (point - base_ > kMost) {
      const auto by = std::min<Point::duration>(point - base_ - kBegin, kStep);
      base_ += by;
      back(duration(by));
    }
    return Time{} + duration(point - base_);
  }

 private:
  static constexpr std::chrono::hours kBegin{24};
  static constexpr std::chrono::hours kMost{24 * 50};
  static constexpr std::chrono::seconds kStep{kMostRebase.us() / 1'000'000};
  static Duration duration(Point::duration d) {
    return nanoseconds(std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
  }
  Point base_;
};

}  // namespace weft::channel
