#include "lab/number.h"

#include <fmt/format.h>

#include <cmath>

namespace weft::lab {

std::string number_text(double v) {
  const double size = std::fabs(v);
  if (size == 0) return "0";
  if (size < 0.001) return fmt::format("{:.2e}", v);
  if (size >= 1e6) return fmt::format("{:.4g}", v);
  const int before = size < 1 ? 0 : static_cast<int>(std::floor(std::log10(size)));
  return fmt::format("{:.{}f}", v, size >= 100 ? 0 : size < 1 ? 3 : 2 - before);
}

std::string interval_text(const Estimate& e, std::string_view unit) {
  std::string text = (e.at_least ? "at least " : "") + number_text(e.mean);
  if (e.has_interval()) text += fmt::format(" [{}, {}]", number_text(e.low), number_text(e.high));
  if (!unit.empty()) text += fmt::format("{}{}", unit == "%" || unit == "x" ? "" : " ", unit);
  return text;
}

}  // namespace weft::lab
