// Means over seeds and how sure they are: 95 % confidence intervals by Student's t, and what several tests at
// once may conclude.
//
// What compares two variants is positive and acts by factors, so its interval is computed on logarithms: it
// is never negative, and "twice" is as far from 1 as "half". Runs are paired by seed: both variants meet the
// same flows.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace weft::lab {

struct Estimate {
  double mean = 0;
  double low = 0;  // of the interval; with one value it is unbounded on both sides
  double high = 0;
  std::size_t values = 0;
  bool at_least = false;  // a lower bound
  bool exact = false;     // computed from parameters, not measured: low and high are the value

  // Two values give an interval of thirteen standard errors. Three are the fewest that a verdict is built on.
  static constexpr std::size_t kFewest = 3;
  bool decides() const { return exact || values >= kFewest; }
  bool has_interval() const { return !exact && values >= 2; }
};

// The arithmetic mean and its interval.
Estimate estimate(std::span<const double> values);
// The geometric mean and its interval, for values above zero.
Estimate estimate_factor(std::span<const double> values);
// A quantity's mean over seeds: by factors where every value is above zero.
Estimate estimate_quantity(std::span<const double> values);

// The t that a share of 0.975 lies below, for 1 degree of freedom and more.
double student_975(std::size_t degrees);
// The share that lies below t.
double student_share(double t, std::size_t degrees);

// How probable a mean at least as far above (below) `limit` is, if the truth is `limit`. Fewer than two
// values: 1. Values that are all the same leave no doubt: 0 or 1.
double doubt_above(std::span<const double> values, double limit);
double doubt_below(std::span<const double> values, double limit);

// Holm's step-down correction: which of several hypotheses are rejected, so that with probability 1 - alpha
// none of the true ones is. The smallest probability must be below alpha / n, the next below alpha / (n - 1),
// until one is not.
std::vector<bool> holm_rejects(std::span<const double> probabilities, double alpha);

// As many values as `count` with the mean and the deviation of `values`: what more seeds would say if they
// differ as these do. Fewer than two values have no deviation and stay as they are.
std::vector<double> projected(std::span<const double> values, std::size_t count);

// How well `values` rise with their positions: Kendall's tau, 1 if each is above all before it, -1 if each is
// below. Equal values count for neither.
double rising(std::span<const double> values);

}  // namespace weft::lab
