#include "lab/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/check.h"

namespace weft::lab {
namespace {

constexpr std::array kTable{12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
                            2.2010,  2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
                            2.0796,  2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423};
constexpr double kNormal975 = 1.959964;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The continued fraction of the incomplete beta function, by Lentz's method.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto away_from_zero = [](double v) { return std::fabs(v) < kTiny ? kTiny : v; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double f = d;
  for (int m = 1; m <= 300; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    f *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    f *= d * c;
    if (std::fabs(d * c - 1) < 1e-14) break;
  }
  return f;
}

// I_x(a, b), the regularised incomplete beta function.
double beta_share(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// The mean's distance from `limit` in standard errors: infinite where the values do not differ.
double student_t(std::span<const double> values, double limit) {
  const Estimate e = estimate(values);
  const double error = (e.high - e.mean) / student_975(values.size() - 1);
  if (error > 0) return (e.mean - limit) / error;
  return e.mean > limit ? kInfinity : e.mean < limit ? -kInfinity : 0;
}

}  // namespace

// Past the table by Cornish and Fisher's expansion around the normal quantile, right to 0.0001 there.
double student_975(std::size_t degrees) {
  CHECK(degrees > 0);
  if (degrees <= kTable.size()) return kTable[degrees - 1];
  const auto n = static_cast<double>(degrees);
  const double z = kNormal975;
  const double z3 = z * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * n * n);
}

double student_share(double t, std::size_t degrees) {
  CHECK(degrees > 0);
  if (std::isinf(t)) return t > 0 ? 1 : 0;
  const auto n = static_cast<double>(degrees);
  const double tail = beta_share(n / 2, 0.5, n / (n + t * t)) / 2;
  return t > 0 ? 1 - tail : tail;
}

Estimate estimate(std::span<const double> values) {
  Estimate e;
  e.values = values.size();
  if (values.empty()) return e;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) e.mean += v / n;
  double squares = 0;
  for (const double v : values) squares += (v - e.mean) * (v - e.mean);
  const double half =
      values.size() < 2 ? kInfinity : student_975(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  e.low = e.mean - half;
  e.high = e.mean + half;
  return e;
}

Estimate estimate_factor(std::span<const double> values) {
  std::vector<double> logs;
  for (const double v : values) {
    CHECK(v > 0);
    logs.push_back(std::log(v));
  }
  Estimate e = estimate(logs);
  if (values.empty()) return e;
  e.mean = std::exp(e.mean);
  e.low = std::exp(e.low);
  e.high = std::exp(e.high);
  return e;
}

Estimate estimate_quantity(std::span<const double> values) {
  const bool positive = std::all_of(values.begin(), values.end(), [](double v) { return v > 0; });
  return positive ? estimate_factor(values) : estimate(values);
}

double doubt_above(std::span<const double> values, double limit) {
  return values.size() < 2 ? 1 : 1 - student_share(student_t(values, limit), values.size() - 1);
}
double doubt_below(std::span<const double> values, double limit) {
  return values.size() < 2 ? 1 : student_share(student_t(values, limit), values.size() - 1);
}

std::vector<bool> holm_rejects(std::span<const double> probabilities, double alpha) {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return probabilities[a] < probabilities[b]; });
  std::vector<bool> rejected(probabilities.size(), false);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (probabilities[order[i]] > alpha / static_cast<double>(order.size() - i)) break;
    rejected[order[i]] = true;
  }
  return rejected;
}

// Pairs above and below the mean, equally far; an odd one is the mean itself.
std::vector<double> projected(std::span<const double> values, std::size_t count) {
  if (values.size() < 2) return {values.begin(), values.end()};
  CHECK(count >= 2);
  const double mean = estimate(values).mean;
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double variance = squares / static_cast<double>(values.size() - 1);
  const std::size_t pairs = count / 2;
  const double away = std::sqrt(variance * static_cast<double>(count - 1) / static_cast<double>(2 * pairs));
  std::vector<double> all(count, mean);
  for (std::size_t i = 0; i < pairs; ++i) {
    all[2 * i] += away;
    all[2 * i + 1] -= away;
  }
  return all;
}

double rising(std::span<const double> values) {
  double sum = 0;
  double pairs = 0;
  for (std::size_t j = 1; j < values.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      pairs += 1;
      if (values[j] > values[i]) sum += 1;
      if (values[j] < values[i]) sum -= 1;
    }
  }
  return pairs == 0 ? 0 : sum / pairs;
}

}  // namespace weft::lab
