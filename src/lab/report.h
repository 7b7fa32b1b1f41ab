// What is shown of an experiment: a table of values, a table of claims, as text, Markdown or JSON.
#pragma once
#include <string>
#include <vector>

#include "lab/session.h"
#include "lab/verdict.h"
#include "record/record.h"

namespace weft::lab {

struct Judged {
  const Chosen* chosen = nullptr;
  Samples samples;
  std::vector<Judgement> judgements;
  std::string simulator;  // whose runs they are: the digest of the sources that runs depend on; of
                          // measurements the machine, too
};

// Rows of cells, columns as wide as they must be.
using Rows = std::vector<std::vector<std::string>>;
std::string text_table(const Rows& rows);
std::string markdown_table(const Rows& rows);

// Of one experiment: every metric of every variant at every point, and every measure of every claim.
Rows value_rows(const Judged& j);
Rows claim_rows(const Judged& j);
std::string to_text(const Judged& j);
record::Record to_record(const Judged& j);

std::string ours_text(const Finding& f);  // "2.21 [2.08, 2.33]x"
std::string rule_text(const Finding& f);  // "2.8 to 3.7; trend > 1"
const char* mark(const Finding& f);       // "yes", "overlaps"
std::string seeds_text(const Chosen& c);
std::string maker_text(const Judged& j);  // "simulator X", "measured by X"
// Why the verdict is what it is: the rule's reason, then the author's.
std::vector<std::string> reasons(const Judgement& g);

// "3 reproduced, 1 compatible, …"
std::string count_text(const std::vector<Judged>& all);

}  // namespace weft::lab
