// The retransmission time-out (RFC 6298): from measured round trips, doubled whenever it expires, and
// computed anew from the next measurement. The caller measures no segment that was sent twice (Karn).
//
// Virtual time has no granularity, so G of the standard is zero.
#pragma once
#include <algorithm>

#include "core/base/units.h"
#include "sim/tcp/config.h"

namespace weft::sim::tcp {

class Rto {
 public:
  explicit Rto(const Config& c) : min_(c.rto_min), max_(c.rto_max), value_(c.rto_initial) {}

  void measured(Duration rtt) {
    if (srtt_.ps == 0) {
      srtt_ = rtt;
      rttvar_ = rtt / 2;
    } else {
      const Duration off = srtt_ > rtt ? srtt_ - rtt : rtt - srtt_;
      rttvar_ = (rttvar_ * 3 + off) / 4;
      srtt_ = (srtt_ * 7 + rtt) / 8;
    }
    value_ = std::clamp(srtt_ + rttvar_ * 4, min_, max_);
  }
  void back_off() { value_ = std::min(value_ * 2, max_); }

  Duration value() const { return value_; }
  Duration srtt() const { return srtt_; }  // zero before the first measurement

 private:
  Duration min_;
  Duration max_;
  Duration value_;
  Duration srtt_{};
  Duration rttvar_{};
};

}  // namespace weft::sim::tcp
