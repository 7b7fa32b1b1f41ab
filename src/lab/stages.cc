#include "lab/stages.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/svg.h"

namespace weft::lab {
namespace {

constexpr double kBoxWidth = 190;
constexpr double kBoxHeight = 40;
constexpr double kGap = 14;
constexpr double kTop = 56;

std::string box(const StageBox& s, double x, double y) {
  const std::string stroke = s.binds ? "#c0392b" : "#5b6b7a";
  std::string t = fmt::format("<rect x='{}' y='{}' width='{}' height='{}' rx='4' fill='none' stroke='{}'/>\n",
                              x, y, kBoxWidth, kBoxHeight, stroke);
  if (s.binds)
    t += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' rx='6' fill='none' stroke='{}'/>\n", x - 3,
                     y - 3, kBoxWidth + 6, kBoxHeight + 6, stroke);
  t += fmt::format("<text x='{}' y='{}' font-weight='bold'>{}</text>\n", x + 8, y + 17,
                   escape_xml(s.name + (s.binds ? " (binds)" : "")));
  std::string numbers = s.latency_ns > 0 ? fmt::format("{:.0f} ns", s.latency_ns) : "";
  if (s.mrps > 0) numbers += fmt::format("{}{:.2f} Mrps at most", numbers.empty() ? "" : ", ", s.mrps);
  return t + fmt::format("<text x='{}' y='{}'>{}</text>\n", x + 8, y + 33, escape_xml(numbers));
}

}  // namespace

std::string draw_stages(const std::string& title, const std::vector<StageGroup>& groups) {
  std::size_t most = 0;
  for (const StageGroup& g : groups) most = std::max(most, g.stages.size());
  const double width = static_cast<double>(groups.size()) * (kBoxWidth + 40) + 20;
  const double height = kTop + static_cast<double>(most) * (kBoxHeight + kGap) + 10;
  std::string t = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {} {}' font-family='sans-serif' font-size='12' "
      "fill='currentColor'>\n<text x='20' y='20' font-size='14'>{}</text>\n",
      width, height, escape_xml(title));
  double x = 20;
  for (const StageGroup& g : groups) {
    t += fmt::format("<text x='{}' y='44'>{}</text>\n", x, escape_xml(g.name));
    double y = kTop;
    for (const StageBox& s : g.stages) {
      t += box(s, x, y);
      y += kBoxHeight + kGap;
    }
    x += kBoxWidth + 40;
  }
  return t + "</svg>\n";
}

}  // namespace weft::lab
