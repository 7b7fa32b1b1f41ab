#include "lab/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lab/live.h"
#include "lab/number.h"

namespace weft::lab {
namespace {

constexpr std::size_t kTextPoints = 400;  // rows of values that anybody reads

std::size_t width_of(const std::string& text) {  // of UTF-8
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

Rows value_rows(const Judged& j) {
  const Experiment& e = *j.chosen->experiment;
  Rows rows;
  auto& head = rows.emplace_back();
  head.emplace_back("variant");
  if (e.points() > 1) head.emplace_back("at");
  for (const std::size_t m : e.shown)
    head.push_back(e.metrics[m].unit.empty() ? e.metrics[m].text
                                             : fmt::format("{} ({})", e.metrics[m].text, e.metrics[m].unit));
  for (std::size_t p = 0; p < std::min(e.points(), kTextPoints); ++p) {
    for (std::size_t v = 0; v < e.variants.size(); ++v) {
      auto& row = rows.emplace_back();
      row.push_back(e.variants[v].name);
      if (e.points() > 1) row.push_back(point_text(e, p));
      for (const std::size_t m : e.shown) {
        const Finding f = summary(e, j.samples, m, v, p);
        row.push_back(f.missing.empty() ? interval_text(f.ours, "") : "-");
      }
    }
  }
  return rows;
}

std::string rule_text(const Finding& f) {
  if (!f.band) return f.trend ? f.trend->text : "";
  return f.trend ? fmt::format("{}; trend {}", f.band->text, f.trend->text) : f.band->text;
}

std::string ours_text(const Finding& f) {
  if (!f.missing.empty()) return "-";
  return interval_text(f.ours, f.unit) + (f.note.empty() ? "" : fmt::format(" ({})", f.note));
}

const char* mark(const Finding& f) { return f.aside ? "beside" : grade_text(f.grade); }

Rows claim_rows(const Judged& j) {
  Rows rows{{"claim", "paper", "measure", "ours", "rule", "met", "verdict"}};
  for (const Judgement& g : j.judgements) {
    bool first = true;
    for (const Finding& f : g.findings) {
      rows.push_back({first ? g.claim->id : "", first ? g.claim->paper : "", f.what, ours_text(f),
                      rule_text(f), mark(f), first ? verdict_text(g) : ""});
      first = false;
    }
  }
  return rows;
}

std::string maker_text(const Judged& j) {
  return (is_live(*j.chosen->experiment) ? "measured by " : "simulator ") + j.simulator;
}

std::string seeds_text(const Chosen& c) {
  if (c.seeds == 0) return "computed, not simulated";
  if (c.seeds < Estimate::kFewest)
    return fmt::format("{}: fewer than {} decide nothing", c.seeds == 1 ? "one seed" : "two seeds",
                       Estimate::kFewest);
  return fmt::format("seeds 1 to {}, 95 % intervals", c.seeds);
}

// Why the verdict is what it is: the rule's reason, what would decide it, then the author's.
std::vector<std::string> reasons(const Judgement& g) {
  std::vector<std::string> all;
  if (!g.because.empty()) all.push_back(g.because);
  if (!g.needs.empty()) all.push_back(g.needs);
  if (!g.claim->why.empty()) all.push_back(g.claim->why);
  if (!g.claim->caveats.empty()) all.push_back(fmt::format("Caveat: {}", g.claim->caveats));
  return all;
}

std::string text_table(const Rows& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - width_of(row[i]) + 2, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string markdown_table(const Rows& rows) {
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    text += "|";
    for (std::string cell : rows[r]) {
      for (std::size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2)
        cell.insert(at, 1, '\\');
      text += fmt::format(" {} |", cell);
    }
    text += "\n";
    if (r != 0) continue;
    text += "|";
    for (std::size_t i = 0; i < rows[0].size(); ++i) text += " --- |";
    text += "\n";
  }
  return text;
}

std::string to_text(const Judged& j) {
  const Experiment& e = *j.chosen->experiment;
  std::string t = fmt::format("{}: {}\nsize {}, {}, {}\n", e.name, e.title, j.chosen->size.name,
                              seeds_text(*j.chosen), maker_text(j));
  if (!e.variants.empty() && j.chosen->size.name == "quick")
    t += "This size decides little: its windows are short and its network has only begun to fill. Without "
         "--quick it would.\n";
  t += "\n";
  if (!e.variants.empty()) t += text_table(value_rows(j)) + "\n";
  t += text_table(claim_rows(j));
  for (const Judgement& g : j.judgements) {
    for (const std::string& reason : reasons(g)) t += fmt::format("  {}: {}\n", g.claim->id, reason);
  }
  if (!e.caveats.empty()) t += fmt::format("  {}\n", e.caveats);
  return t;
}

record::Record to_record(const Judged& j) {
  const Experiment& e = *j.chosen->experiment;
  record::Record r;
  r.set("experiment", e.name).set("title", e.title).set("size", j.chosen->size.name);
  r.set("seeds", std::uint64_t{j.chosen->seeds}).set("simulator", j.simulator);
  const auto add = [](record::Record& to, const Finding& f) {
    to.set("unit", f.unit);
    if (!f.missing.empty()) {
      to.set("missing", f.missing);
    } else {
      to.set("mean", f.ours.mean);
      if (f.ours.has_interval()) to.set("low", f.ours.low).set("high", f.ours.high);
      if (f.ours.at_least) to.set("at_least", true);
    }
  };
  for (std::size_t p = 0; p < e.points() && !e.variants.empty(); ++p) {
    for (std::size_t v = 0; v < e.variants.size(); ++v) {
      for (const std::size_t m : e.shown) {
        record::Record one;
        one.set("variant", e.variants[v].name)
            .set("point", point_text(e, p))
            .set("metric", e.metrics[m].name);
        add(one, summary(e, j.samples, m, v, p));
        r.append("values", std::move(one));
      }
    }
  }
  for (const Judgement& g : j.judgements) {
    record::Record claim;
    claim.set("id", g.claim->id).set("statement", g.claim->statement).set("paper", g.claim->paper);
    claim.set("verdict", verdict_text(g)).set("computed", g.computed).set("because", g.because);
    if (!g.needs.empty()) claim.set("needs", g.needs);
    claim.set("why", g.claim->why).set("caveats", g.claim->caveats);
    for (const Finding& f : g.findings) {
      record::Record one;
      one.set("what", f.what).set("reproduced", f.band ? f.band->text : "");
      one.set("trend", f.trend ? f.trend->text : "");
      add(one, f);
      one.set("met", mark(f)).set("note", f.note);
      for (const Cell& c : f.cells) {
        if (f.cells.size() == 1) break;
        record::Record cell;
        cell.set("where", c.where).set("mean", c.estimate.mean).set("met", grade_text(c.grade));
        if (c.estimate.has_interval()) cell.set("low", c.estimate.low).set("high", c.estimate.high);
        one.append("cells", std::move(cell));
      }
      claim.append("measures", std::move(one));
    }
    r.append("claims", std::move(claim));
  }
  return r;
}

std::string count_text(const std::vector<Judged>& all) {
  std::array<std::size_t, 6> counts{};
  std::size_t consistent = 0;
  std::size_t computed = 0;
  for (const Judged& j : all) {
    for (const Judgement& g : j.judgements) {
      if (!g.computed) ++counts[static_cast<std::size_t>(g.verdict)];
      if (g.computed) ++computed;
      if (g.computed && g.verdict == Verdict::kReproduced) ++consistent;
    }
  }
  std::string text;
  for (const Verdict v : {Verdict::kReproduced, Verdict::kCompatible, Verdict::kTrend, Verdict::kOpen,
                          Verdict::kNot, Verdict::kIncomplete})
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[static_cast<std::size_t>(v)],
                        verdict_text(v));
  if (computed != 0)
    text += fmt::format("; of {} that are only computed {} consistent", computed, consistent);
  return text;
}

}  // namespace weft::lab
