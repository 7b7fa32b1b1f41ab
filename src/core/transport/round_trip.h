// The round-trip time as a queue pair measures it, and the time-out that follows from it (RFC 6298, Jacobson
// and Karels): smoothed by an eighth, its variation by a quarter. Whoever samples keeps Karn's rule: what was
// sent twice is not timed, for nobody knows which copy was answered.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/base/units.h"

namespace weft {

struct RoundTrip {
  std::int64_t smoothed_ps = 0;   // zero: nothing was timed yet
  std::int64_t variation_ps = 0;  // below zero: no time-out is shorter than this, until the next sample

  void sample(Duration rtt) {
    const std::int64_t ps = std::max<std::int64_t>(rtt.ps, 1);
    if (smoothed_ps == 0 || held()) {
      smoothed_ps = ps;
      variation_ps = ps / 2;
    } else {
      variation_ps += (std::abs(smoothed_ps - ps) - variation_ps) / 4;
      smoothed_ps += (ps - smoothed_ps) / 8;
    }
  }
  // Nothing was timed yet: until then time-outs are this long.
  void presume(Duration timeout) { *this = {0, timeout.ps / 4}; }
  // A silence was ended by an answer that tells no time: the path may have become longer, up to this. Until
  // the next sample no time-out is shorter, and that sample begins anew (RFC 6298 §5.5 to §5.7).
  void hold(Duration timeout) { variation_ps = std::min(variation_ps, -timeout.ps); }
  bool held() const { return variation_ps < 0; }
  Duration least() const { return {held() ? -variation_ps : 0}; }
  bool measured() const { return smoothed_ps != 0; }
  Duration timeout() const { return {smoothed_ps + (held() ? 2 * smoothed_ps : 4 * variation_ps)}; }
};

}  // namespace weft
