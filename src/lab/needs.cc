#include "lab/needs.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::lab {
namespace {

// The findings as `seeds` seeds would make them. Nothing is known of the deviation of a single value.
std::vector<Finding> with_seeds(std::vector<Finding> all, std::size_t seeds) {
  for (Finding& f : all) {
    for (Cell& c : f.cells) {
      if (c.estimate.exact) continue;
      c.values = projected(c.values, seeds);
      estimate_cell(c, f.scale, f.order);
      c.grade = grade_of(f.band, f.trend, f.scale, c.estimate);
    }
  }
  grade_findings(all);
  return all;
}

// Of what would stay open with many seeds, the finding that is named.
std::string edge_text(const Judgement& j) {
  const auto all = with_seeds(j.findings, kManySeeds);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Finding& f = all[i];
    if (f.aside || f.grade != Grade::kOpen) continue;
    const auto cell =
        std::find_if(f.cells.begin(), f.cells.end(), [](const Cell& c) { return c.grade == Grade::kOpen; });
    const Cell& now =
        j.findings[i].cells[static_cast<std::size_t>(cell == f.cells.end() ? 0 : cell - f.cells.begin())];
    const std::string where = f.cells.size() == 1 ? "" : fmt::format(" ({})", now.where);
    if (now.estimate.at_least)
      return fmt::format(
          "No number of seeds decides it: {}{} is a lower bound, because runs were cut off; longer runs "
          "would.",
          f.what, where);
    const Band& rule = f.trend ? *f.trend : *f.band;
    return fmt::format("{} seeds would not decide it: {}{} lies at the edge of {}.", kManySeeds, f.what,
                       where, rule.text);
  }
  return fmt::format("{} seeds would not decide it.", kManySeeds);
}

std::size_t seeds_of(const Judgement& j) {
  std::size_t fewest = kManySeeds;
  for (const Finding& f : j.findings) {
    if (!f.aside && !f.ours.exact) fewest = std::min(fewest, f.ours.values);
  }
  return fewest;
}

}  // namespace

std::size_t seeds_that_decide(const Judgement& j) {
  for (std::size_t n = std::max(Estimate::kFewest, seeds_of(j) + 1); n <= kManySeeds; ++n) {
    if (worst_of(with_seeds(j.findings, n)) != Grade::kOpen) return n;
  }
  return 0;
}

std::string needs_text(const Judgement& j) {
  const std::size_t present = seeds_of(j);
  if (present < 2)
    return fmt::format("{} seeds are the fewest that can decide it, and it has one.", Estimate::kFewest);
  const std::size_t seeds = seeds_that_decide(j);
  if (seeds == 0) return edge_text(j);
  return fmt::format("{} seeds would decide it, if more of them differ as these {} do.", seeds, present);
}

}  // namespace weft::lab
