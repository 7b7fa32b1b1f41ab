// What the runs say of one measure, and the grades of all of a claim's.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lab/grade.h"
#include "lab/statistics.h"

namespace weft::lab {

// What a measure came to. A measure that is not reduced to one number has one for each point.
struct Finding {
  std::string what;  // "average FCT, RoCE+PFC over IRN, at load=30%"
  std::string unit;  // "x", "%", "us"
  std::optional<Band> band;
  std::optional<Band> trend;
  Estimate ours;        // of several cells, the one that decides
  std::string missing;  // why there is no number; then the rest means nothing
  std::string note;     // of several cells: which one, and how the others fare
  Scale scale;
  std::vector<Cell> cells;
  Grade grade = Grade::kMissing;
  bool up_to = false;
  bool aside = false;  // no part of the verdict
  bool order = false;  // Kendall's tau, from -1 to 1
};

// From its values, on the scale of bands.
void estimate_cell(Cell& c, const Scale& scale, bool order);

// Of all findings of a claim, from those of their cells.
void grade_findings(std::vector<Finding>& all);
Grade worst_of(const std::vector<Finding>& all);

}  // namespace weft::lab
