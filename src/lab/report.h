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
};

// Rows of cells, columns as wide as they must be.
std::string text_table(const std::vector<std::vector<std::string>>& rows);
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

std::string to_text(const Judged& j, const std::string& simulator);
// Everything on one page: how to repeat it, all claims in one table, then each experiment.
std::string to_markdown(const std::vector<Judged>& all, const std::string& names, const std::string& size,
                        const std::string& version);
record::Record to_record(const Judged& j, const std::string& simulator);

// "12 reproduced, 3 trend reproduced, 1 not reproduced, 0 incomplete".
std::string count_text(const std::vector<Judged>& all);

}  // namespace weft::lab
