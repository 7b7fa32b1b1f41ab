#include "lab/finding.h"

#include <algorithm>

namespace weft::lab {

void estimate_cell(Cell& c, const Scale& scale, bool order) {
  Estimate y = estimate(c.values);
  y.mean = scale.from(y.mean);
  y.low = scale.from(y.low);
  y.high = scale.from(y.high);
  if (order) {
    y.low = std::max(y.low, -1.0);
    y.high = std::min(y.high, 1.0);
  }
  y.at_least = c.estimate.at_least;
  c.estimate = y;
}

// What lies outside by its own interval is refuted only if
// Holm's correction over all cells of the claim agrees; else it is open.
void grade_findings(std::vector<Finding>& all) {
  std::vector<double> doubts;
  std::vector<Cell*> cells;
  for (Finding& f : all) {
    if (f.aside || f.up_to) continue;
    for (Cell& c : f.cells) {
      doubts.push_back(doubt(f.band, f.trend, f.scale, c));
      cells.push_back(&c);
    }
  }
  const auto rejected = holm_rejects(doubts, kAlpha);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i]->grade == Grade::kRefuted && !rejected[i]) cells[i]->grade = Grade::kOpen;
  }
  for (Finding& f : all) {
    if (!f.missing.empty()) continue;
    f.grade = f.up_to ? grade_up_to(f.band, f.trend, f.scale, f.cells)
                      : std::min_element(f.cells.begin(), f.cells.end(), [](const Cell& a, const Cell& b) {
                          return a.grade < b.grade;
                        })->grade;
  }
}

Grade worst_of(const std::vector<Finding>& all) {
  Grade worst = Grade::kReproduced;
  for (const Finding& f : all) {
    if (!f.aside) worst = std::min(worst, f.grade);
  }
  return worst;
}

}  // namespace weft::lab
