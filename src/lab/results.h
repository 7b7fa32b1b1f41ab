// docs/RESULTS.md and what lies beside it: one table of claims, the figures, and for each experiment a file
// with every number.
#pragma once
#include <string>
#include <vector>

#include "core/base/result.h"
#include "lab/page.h"

namespace weft::lab {

// What people wrote beside the experiments: where we differ and why (experiments/notes/results.md), and what
// was changed after its first run, and to what effect (experiments/notes/changes.toml). Both may be missing.
struct Notes {
  std::string differences;  // Markdown
  Rows changes;             // what, effect
};
Result<Notes> read_notes(const std::string& folder);

std::string results_document(const std::vector<Judged>& all, const std::string& version, const Notes& notes,
                             const std::string& names);
// One experiment's every value, measure and setting.
std::string experiment_document(const Judged& j, const std::string& version);

// Into FOLDER: RESULTS, a folder `results` with a document for each experiment, and its figures.
Result<void> write_results(const std::vector<Judged>& all, const std::string& version, const Notes& notes,
                           const std::string& names, const std::string& folder);

}  // namespace weft::lab
