// What a run of experiments leaves in its folder: values and verdicts as files, and the figures.
#pragma once
#include <string>
#include <vector>

#include "lab/figure.h"
#include "lab/report.h"

namespace weft::lab {

Figure figure_of(const Experiment& e, const Samples& samples, const Plot& plot);

// FOLDER/EXPERIMENT/SIZE/: values.csv (every metric of every run), verdict.json, and each plot's SVG and CSV.
Result<void> write_output(const std::vector<Judged>& all, const std::string& folder);

}  // namespace weft::lab
