// A Time lasts 106 days, and programs run longer. Now and then a program's clock therefore goes back, and
// every time that a context knows goes back with it (Context::rebase). No time is before zero: what is longer
// ago than the clock shows was then.
#pragma once
#include <algorithm>

#include "core/base/units.h"

namespace weft::channel {

inline constexpr Duration kMostRebase = seconds(50LL * 24 * 3600);

constexpr Time rebased(Time t, Duration by) { return t == kNever ? t : std::max(t - by, Time{}); }

}  // namespace weft::channel
