// A scale of a drawing: from numbers to places, and the numbers worth writing beside it.
#pragma once
#include <vector>

namespace weft::lab {

class AxisScale {
 public:
  // The scale reaches a little beyond `low` and `high`. It is logarithmic only if both are above zero.
  AxisScale(double low, double high, bool logarithmic, double from, double to);
  double at(double v) const;  // within [from, to], whatever v
  bool beyond_low(double v) const { return v < low_; }
  bool beyond_high(double v) const { return v > high_; }
  std::vector<double> ticks(std::size_t most) const;

 private:
  double low_, high_;
  bool logarithmic_;
  double from_, to_;
};

}  // namespace weft::lab
