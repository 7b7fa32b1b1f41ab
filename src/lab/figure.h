// Figures: gnuplot, run as a program, draws an SVG from a CSV file that stays beside it, as does the script,
// so that whoever wants another look edits that and runs gnuplot again.
#pragma once
#include <string>
#include <vector>

#include "core/base/result.h"
#include "lab/statistics.h"

namespace weft::lab {

struct Series {
  std::string name;
  std::vector<Estimate> values;  // one for each tick; none where `values` is 0
};

struct Panel {
  std::string title;
  std::string y_label;
  std::vector<Series> series;
};

struct Figure {
  std::string title;
  std::string x_label;
  std::vector<std::string> ticks;  // places along x, the same in every panel; with one, values are bars
  std::vector<Panel> panels;
  bool logarithmic = false;
};

// Writes `svg`, and the same name with .csv and .gp. An error leaves the CSV where it is: gnuplot is absent,
// or says no.
Result<void> write_figure(const Figure& figure, const std::string& svg);

}  // namespace weft::lab
