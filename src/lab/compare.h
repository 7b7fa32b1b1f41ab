// Two records beside each other: which verdicts differ, and which measures and metrics do beyond their
// intervals. Runs are found by the names that experiments gave them, so records of different simulators
// compare.
#pragma once
#include <string>
#include <vector>

#include "lab/session.h"
#include "lab/verdict.h"

namespace weft::lab {

struct Difference {
  std::string experiment;
  std::string size;
  std::string what;  // "claim irn-fig1", "average FCT, IRN at load=30%"
  std::string before;
  std::string after;
};

struct Comparison {
  std::size_t compared = 0;              // metrics, measures and verdicts that both records have
  std::vector<std::string> experiments;  // "irn-fig1 quick: simulators X and Y, seeds 1 to 3"
  std::vector<Difference> differences;
};

// Compares `all` experiments at `size`: in each record the newest simulator, and as many seeds as both
// records have. Adds to `out`.
Result<void> compare(const std::vector<Experiment>& all, const std::string& size, const record::Store& before,
                     const record::Store& after, Account account, Comparison& out);

}  // namespace weft::lab
