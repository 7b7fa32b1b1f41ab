// Means over seeds and how sure they are: 95 % confidence intervals by Student's t.
#pragma once
#include <cstddef>
#include <span>

namespace weft::lab {

struct Estimate {
  double mean = 0;
  double low = 0;  // of the interval; with one value both ends are that value
  double high = 0;
  std::size_t values = 0;
  bool at_least = false;  // a lower bound
};

Estimate estimate(std::span<const double> values);

// The t that a share of 0.975 lies below, for 1 degree of freedom and more.
double student_975(std::size_t degrees);

// How well `values` rise with their positions: Kendall's tau, 1 if each is above all before it, -1 if each is
// below. Equal values count for neither.
double rising(std::span<const double> values);

}  // namespace weft::lab
