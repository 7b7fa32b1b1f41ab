#include "lab/axis.h"

#include <algorithm>
#include <cmath>

namespace weft::lab {

AxisScale::AxisScale(double low, double high, bool logarithmic, double from, double to)
    : low_(low), high_(high), logarithmic_(logarithmic && low > 0 && high > 0), from_(from), to_(to) {
  if (!(low_ <= high_)) std::swap(low_, high_);
  if (logarithmic_) {
    const double by = std::max(std::pow(high_ / low_, 0.06), 1.02);
    low_ /= by;
    high_ *= by;
  } else {
    const double by = std::max((high_ - low_) * 0.06, std::max(std::fabs(high_), 1e-9) * 0.005);
    low_ = low_ == 0 ? 0 : low_ - by;
    high_ += by;
  }
}

double AxisScale::at(double v) const {
  double share = 0;
  if (logarithmic_) {
    share = v <= 0 ? 0 : std::log(v / low_) / std::log(high_ / low_);
  } else {
    share = (v - low_) / (high_ - low_);
  }
  return from_ + std::clamp(share, 0.0, 1.0) * (to_ - from_);
}

std::vector<double> AxisScale::ticks(std::size_t most) const {
  std::vector<double> all;
  if (logarithmic_ && high_ / low_ > 3) {
    static constexpr double kFine[] = {1, 1.5, 2, 3, 4, 5, 7};
    static constexpr double kCoarse[] = {1, 2, 5};
    for (const int pass : {0, 1, 2}) {
      all.clear();
      for (double decade = std::pow(10, std::floor(std::log10(low_))); decade <= high_; decade *= 10) {
        const auto add = [&](double m) {
          if (m * decade >= low_ && m * decade <= high_) all.push_back(m * decade);
        };
        if (pass == 0) std::for_each(std::begin(kFine), std::end(kFine), add);
        if (pass == 1) std::for_each(std::begin(kCoarse), std::end(kCoarse), add);
        if (pass == 2) add(1);
      }
      if (all.size() <= most) return all;
    }
    return all;
  }
  for (double step = std::pow(10, std::floor(std::log10((high_ - low_) / 20)));; step *= 10) {
    for (const double m : {1.0, 2.0, 5.0}) {
      const double first = std::ceil(low_ / (step * m));
      const double last = std::floor(high_ / (step * m));
      if (last - first + 1 > static_cast<double>(most)) continue;
      for (double k = first; k <= last; k += 1) all.push_back(k == 0 ? 0 : k * step * m);
      return all;
    }
  }
}

}  // namespace weft::lab
