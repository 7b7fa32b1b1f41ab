#include "lab/statistics.h"

#include <array>
#include <cmath>

#include "core/base/check.h"

namespace weft::lab {
namespace {

constexpr std::array kTable{12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
                            2.2010,  2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
                            2.0796,  2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423};
constexpr double kNormal975 = 1.959964;

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

Estimate estimate(std::span<const double> values) {
  Estimate e;
  e.values = values.size();
  if (values.empty()) return e;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) e.mean += v / n;
  double squares = 0;
  for (const double v : values) squares += (v - e.mean) * (v - e.mean);
  const double half =
      values.size() < 2 ? 0 : student_975(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  e.low = e.mean - half;
  e.high = e.mean + half;
  return e;
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
