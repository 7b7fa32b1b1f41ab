#include "lab/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lab/number.h"
#include "lab/output.h"
#include "lab/page_style.h"
#include "lab/svg.h"

namespace weft::lab {
namespace {

constexpr std::size_t kStripsOfAClaim = 6;

std::string escaped(const std::string& text) { return escape_xml(text); }

const char* badge_class(const Judgement& g) {
  if (g.computed) return g.verdict == Verdict::kReproduced ? "good" : "bad";
  switch (g.verdict) {
    case Verdict::kReproduced:
      return "good";
    case Verdict::kCompatible:
      return "near";
    case Verdict::kTrend:
      return "side";
    case Verdict::kNot:
      return "bad";
    default:
      return "open";
  }
}

// The grade of a finding in words, for readers who cannot see its shape.
const char* grade_word(const Finding& f) {
  if (f.aside) return "shown beside the paper's measures";
  switch (f.grade) {
    case Grade::kReproduced:
      return "in the paper's band";
    case Grade::kCompatible:
      return "overlaps the paper's band";
    case Grade::kTrend:
      return "only the direction holds";
    case Grade::kRefuted:
      return "contradicts";
    default:
      return "undecided";
  }
}

Strip strip_of(const Finding& f) {
  return {f.what + (f.note.empty() ? "" : ", " + f.note.substr(0, f.note.find(';'))),
          f.missing.empty() ? interval_text(f.ours, f.unit) : "-",
          f.ours,
          f.band,
          f.trend,
          f.aside ? Grade::kOpen : f.grade,
          grade_word(f)};
}

std::string html_table(const Rows& rows) {
  std::string t = "<div class='wide'><table>";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    t += "<tr>";
    for (const std::string& cell : rows[r])
      t += fmt::format("<{0}>{1}</{0}>", r == 0 ? "th" : "td", escaped(cell));
    t += "</tr>";
  }
  return t + "</table></div>";
}

std::string claim_html(const Judged& j, const Judgement& g) {
  const std::string& name = j.chosen->experiment->name;
  std::string t = fmt::format(
      "<article class='claim' data-verdict='{}'><div><h3><a href='#{}'>{}</a></h3><div>{}</div>"
      "<div class='paper dim'>paper: {}</div></div><div>",
      verdict_text(g), escaped(name), escaped(g.claim->id), escaped(g.claim->statement),
      escaped(g.claim->paper));
  // Strips of one unit share a scale, and stand in the order of the file.
  std::map<std::string, std::vector<Strip>> of_unit;
  for (const Finding& f : g.findings) {
    if (!f.aside) of_unit[f.unit].push_back(strip_of(f));
  }
  std::map<std::string, std::size_t> next;
  std::size_t shown = 0;
  std::size_t judged = 0;
  for (const Finding& f : g.findings) {
    if (f.aside || ++judged > kStripsOfAClaim) continue;
    ++shown;
    const auto& strips = of_unit[f.unit];
    const std::size_t i = next[f.unit]++;
    t += fmt::format(
        "<div class='strip'><div>{}</div>{}<div class='value'>{}</div></div>", escaped(strips[i].label),
        f.missing.empty() ? draw_strip(strips, i, f.unit == "x", 200) : "", escaped(strips[i].value));
  }
  if (judged > shown)
    t += fmt::format("<small><a href='#{}'>and {} more</a></small>", escaped(name), judged - shown);
  t += fmt::format("</div><div><span class='badge {}'>{}</span> <small>{}</small>", badge_class(g),
                   verdict_text(g), g.computed ? "computed" : "size " + j.chosen->size.name);
  for (const std::string& reason : reasons(g)) {
    constexpr std::size_t kShort = 320;
    if (reason.size() <= kShort) {
      t += fmt::format("<div class='why'>{}</div>", escaped(reason));
    } else {
      t += fmt::format("<details class='why'><summary>why</summary>{}</details>", escaped(reason));
    }
  }
  return t + "</div></article>\n";
}

std::string filters_html(const std::vector<Judged>& all) {
  std::map<std::string, std::pair<const char*, std::size_t>> counts;
  std::size_t claims = 0;
  for (const Judged& j : all) {
    for (const Judgement& g : j.judgements) {
      ++claims;
      auto& one = counts[verdict_text(g)];
      one.first = badge_class(g);
      ++one.second;
    }
  }
  std::string t = "<div class='filters'>";
  for (const char* verdict : {"reproduced", "compatible", "trend reproduced", "undecided", "not reproduced",
                              "incomplete", "consistent", "not consistent"}) {
    const auto it = counts.find(verdict);
    if (it == counts.end()) continue;
    t += fmt::format("<button class='{}' data-verdict='{}' aria-pressed='true'>{} {}</button>",
                     it->second.first, verdict, it->second.second, verdict);
  }
  return t +
         fmt::format(
             "<input id='words' type='search' placeholder='words to look for' aria-label='words to look for'>"
             "<small id='count'>{} claims</small></div>",
             claims);
}

std::string experiment_html(const Judged& j) {
  const Experiment& e = *j.chosen->experiment;
  std::string t = fmt::format(
      "<section id='{0}'><h2>{1}</h2><p class='dim'><code>{0}</code>: ", escaped(e.name), escaped(e.title));
  t += e.variants.empty() ? seeds_text(*j.chosen)
                          : fmt::format("size {}, {}, {}", j.chosen->size.name, seeds_text(*j.chosen),
                                        escaped(maker_text(j)));
  t += "</p>";
  if (!e.caveats.empty()) t += fmt::format("<p>{}</p>", escaped(e.caveats));
  if (!e.variants.empty()) {
    t += "<div class='figures'>";
    for (const NamedSvg& f : figures_of(j, Svg::kInline)) t += f.svg;
    t += "</div>";
  }
  t += "<details><summary>every measure</summary>" + html_table(claim_rows(j)) + "</details>";
  if (e.variants.empty()) return t + "</section>\n";
  t += "<details><summary>every value</summary>" + html_table(value_rows(j)) + "</details>";
  t += fmt::format("<details><summary>settings and command</summary><pre>{}</pre>{}</details>",
                   escaped(run_command(j)), html_table(setting_rows(j)));
  return t + "</section>\n";
}

std::string cell_text(const Experiment& e, const Planned& p) {
  const std::string at = point_text(e, p.point);
  return e.variants[p.variant].name + (at.empty() ? "" : " at " + at);
}

}  // namespace

std::string run_command(const Judged& j) {
  const std::string& size = j.chosen->size.name;
  std::string text = "weft lab run " + j.chosen->experiment->name;
  if (size != "decide") text += " --" + size;
  if (j.chosen->seeds != j.chosen->experiment->size(size).seeds)
    text += fmt::format(" --seeds {}", j.chosen->seeds);
  return text;
}

Rows setting_rows(const Judged& j) {
  const Experiment& e = *j.chosen->experiment;
  Rows rows{{"what", "settings"}};
  const auto add = [&](const std::string& what, const std::vector<std::string>& changes) {
    std::string text;
    for (const std::string& c : changes) text += (text.empty() ? "" : ", ") + c;
    rows.push_back({what, text.empty() ? "as the scenario has it" : text});
  };
  const auto file = [](const std::string& path) { return path.substr(path.find_last_of('/') + 1); };
  rows.push_back({"scenario", file(e.base)});
  add("size " + j.chosen->size.name, j.chosen->size.changes);
  for (const Axis& a : e.axes) {
    for (const Point& p : a.points) add(a.name + "=" + p.label, p.changes);
  }
  for (const Variant& v : e.variants) add(v.name, v.changes);
  // What differs in settings that nothing reads is one run (unread.h), and so is what is set twice alike.
  std::map<std::string, const Planned*> first;
  for (const Planned& p : j.chosen->runs) {
    if (p.seed != 1) continue;
    const auto [it, fresh] = first.try_emplace(p.key, &p);
    if (!fresh) rows.push_back({cell_text(e, p), fmt::format("one run with {}", cell_text(e, *it->second))});
  }
  return rows;
}

std::vector<NamedSvg> figures_of(const Judged& j, Svg where) {
  const Experiment& e = *j.chosen->experiment;
  std::vector<NamedSvg> all;
  for (const Judgement& g : j.judgements) {
    std::vector<std::string> units;
    for (const Finding& f : g.findings) {
      if (f.missing.empty() && std::find(units.begin(), units.end(), f.unit) == units.end())
        units.push_back(f.unit);
    }
    for (const std::string& unit : units) {
      std::vector<Strip> strips;
      for (const Finding& f : g.findings) {
        if (f.unit == unit && f.missing.empty()) strips.push_back(strip_of(f));
      }
      const std::string name = g.claim->id + (unit == units.front() ? "" : fmt::format("-{}", all.size()));
      all.push_back({name, draw_strips(fmt::format("{}: paper {}", g.claim->id, g.claim->paper), strips,
                                       unit == "x", where)});
    }
  }
  for (const Plot& plot : e.plots)
    all.push_back({e.name + "-" + plot.name, draw_figure(figure_of(e, j.samples, plot), where)});
  return all;
}

std::string simulators_text(const std::vector<Judged>& all) {
  std::vector<std::string> each;
  for (const Judged& j : all) {
    if (!j.chosen->experiment->variants.empty() &&
        std::find(each.begin(), each.end(), j.simulator) == each.end())
      each.push_back(j.simulator);
  }
  std::string text = each.size() == 1 ? "simulator " : "simulators ";
  for (std::size_t i = 0; i < each.size(); ++i) text += (i == 0 ? "" : ", ") + each[i];
  return each.empty() ? "no run" : text;
}

record::Record report_record(const std::vector<Judged>& all, const std::string& version) {
  record::Record r;
  r.set("version", version).set("verdicts", count_text(all));
  for (const Judged& j : all) {
    record::Record one = to_record(j);
    one.set("command", run_command(j));
    r.append("experiments", std::move(one));
  }
  return r;
}

std::string report_page(const std::vector<Judged>& all, const std::string& version) {
  std::string simulated;
  std::string computed;
  std::string experiments;
  std::string list;
  bool quick = false;
  for (const Judged& j : all) {
    for (const Judgement& g : j.judgements) (g.computed ? computed : simulated) += claim_html(j, g);
    experiments += experiment_html(j);
    quick = quick || (j.chosen->size.name == "quick" && !j.chosen->experiment->variants.empty());
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
      "<meta name='viewport' content='width=device-width,initial-scale=1'><title>weft lab: results</title>"
      "<style>{}{}</style></head><body>\n<header><h1>What the papers claim, and what weft finds</h1>"
      "<p class='dim'>{}; {}. {}.</p>{}"
      "<p>Shaded: what the paper states. The line is our 95 % interval over seeds, on logarithms where "
      "variants are "
      "compared; the mark is its middle, and its shape the verdict on that measure. Dashed: where the "
      "claim's "
      "direction ends.</p></header>\n"
      "<div class='top'><nav><a href='#claims'>Claims</a><a href='#numbers'>Own numbers</a>"
      "<a href='#experiments'>Experiments</a></nav></div>\n"
      "<main><h2 id='claims'>Claims that were simulated</h2>{}{}"
      "<h2 id='numbers'>Consistency of the paper's own numbers</h2><p>Arithmetic on parameters: it says that "
      "the "
      "paper agrees with itself, and nothing of a network.</p>{}"
      "<h2 id='experiments'>Experiments</h2>\n{}</main>\n<script>{}</script></body></html>\n",
      svg_style(), kPageStyle, escaped(version), escaped(simulators_text(all)), escaped(count_text(all)),
      quick ? "<p class='side'><b>Some of this is of the size quick, which decides little:</b> short windows "
              "in a "
              "network that has only begun to fill. Each claim names its size.</p>"
            : "",
      filters_html(all), simulated.empty() ? "<p>None.</p>" : simulated,
      computed.empty() ? "<p>None.</p>" : computed, experiments, kPageScript);
}

}  // namespace weft::lab
