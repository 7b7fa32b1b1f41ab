// `weft lab report`: everything that runs say, on one page that needs nothing else: no network, no other
// file. It opens from disk, on a desk and on a phone. Without scripts it is a long page; with them its claims
// can be filtered.
#pragma once
#include <string>
#include <vector>

#include "lab/report.h"
#include "lab/svg.h"

namespace weft::lab {

// `version`: "weft 0.1.0 (commit …)", of the program that writes.
std::string report_page(const std::vector<Judged>& all, const std::string& version);
// The same as JSON.
record::Record report_record(const std::vector<Judged>& all, const std::string& version);
// "simulator X", or all of them where experiments are not of one.
std::string simulators_text(const std::vector<Judged>& all);

// Beside each other: what the paper states and what was found, a figure for each unit; then the experiment's
// own plots.
struct NamedSvg {
  std::string name;
  std::string svg;
};
std::vector<NamedSvg> figures_of(const Judged& j, Svg where);

// What was run: the scenario, and the changes of each variant, point and size.
Rows setting_rows(const Judged& j);
std::string run_command(const Judged& j);  // "weft lab run irn-fig1 --quick"

}  // namespace weft::lab
