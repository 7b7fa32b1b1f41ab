#include "channel_bench/turns.h"

#include <algorithm>

namespace weft::bench {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<double> values_of(const Turns& turns) {
  std::vector<double> values;
  for (const auto& one : turns) {
    if (one) values.push_back(*one);
  }
  return values;
}

double ratio_of(const Turns& of, const Turns& over) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(of.size(), over.size()); ++i) {
    if (of[i] && over[i]) ratios.push_back(*of[i] / *over[i]);
  }
  return median(ratios);
}

}  // namespace weft::bench
