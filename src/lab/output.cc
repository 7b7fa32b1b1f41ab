#include "lab/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "record/output.h"

namespace weft::lab {
namespace {

namespace fs = std::filesystem;

// The points that a plot shows, along its axis.
std::vector<std::size_t> points_of(const Experiment& e, const Plot& plot) {
  std::vector<std::size_t> all;
  for (std::size_t p = 0; p < e.points(); ++p) {
    const auto at = point_of(e, p);
    bool wanted = true;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const auto& list = plot.points[i];
      wanted = wanted && std::find(list.begin(), list.end(), at[i]) != list.end();
    }
    if (wanted) all.push_back(p);
  }
  return all;
}

std::string in_quotes(const std::string& text) {
  std::string all = "\"";
  for (const char c : text) all += c == '"' ? std::string("\"\"") : std::string(1, c);
  return all + '"';
}

std::string values_csv(const Judged& j) {
  const Experiment& e = *j.chosen->experiment;
  std::string text = "variant,point,seed,metric,value\n";
  for (std::size_t p = 0; p < e.points(); ++p) {
    for (std::size_t v = 0; v < e.variants.size(); ++v) {
      for (std::uint64_t seed = 1; seed <= j.samples.seeds(); ++seed) {
        for (std::size_t m = 0; m < e.metrics.size(); ++m) {
          const Samples::Value& value = j.samples.at(m, v, p, seed);
          if (!value.missing.empty()) continue;
          text += fmt::format("{},{},{},{},{}\n", in_quotes(e.variants[v].name), in_quotes(point_text(e, p)),
                              seed, e.metrics[m].name, value.number);
        }
      }
    }
  }
  return text;
}

}  // namespace

Figure figure_of(const Experiment& e, const Samples& samples, const Plot& plot) {
  Figure f{plot.title, "", {""}, {}, plot.logarithmic};
  Measure factor;
  factor.as = As::kRatio;
  factor.over = plot.over.value_or(0);
  const auto points = points_of(e, plot);
  if (plot.kind == PlotKind::kLines) {
    f.x_label = e.axes[plot.along].name;
    f.ticks.clear();
    for (const std::size_t p : points)
      f.ticks.push_back(e.axes[plot.along].points[point_of(e, p)[plot.along]].label);
  }
  for (const std::size_t m : plot.metrics) {
    Panel& panel =
        f.panels.emplace_back(Panel{e.metrics[m].text, plot.over ? "x" : e.metrics[m].unit, {}, plot.band});
    factor.metric = m;
    for (const std::size_t v : plot.variants) {
      Series& s = panel.series.emplace_back(Series{e.variants[v].name, {}});
      factor.of = v;
      if (plot.over) s.name += " over " + e.variants[*plot.over].name;
      for (const std::size_t p : points)
        s.values.push_back(plot.over ? at_point(e, factor, samples, p).ours
                                     : summary(e, samples, m, v, p).ours);
      for (const PaperPoint& said : plot.paper) {
        if (said.metric == m && said.variant == v) s.paper.push_back({said.point, said.value});
      }
    }
  }
  return f;
}

Result<void> write_output(const std::vector<Judged>& all, const std::string& folder) {
  for (const Judged& j : all) {
    const Experiment& e = *j.chosen->experiment;
    const fs::path place = fs::path(folder) / e.name / j.chosen->size.name;
    std::error_code wrong;
    fs::create_directories(place, wrong);
    if (wrong) return fail(fmt::format("'{}' cannot be written: {}", place.string(), wrong.message()));
    // The verdict is written last: an old verdict beside newer values would be believed.
    fs::remove(place / "verdict.json", wrong);
    if (!e.variants.empty()) {
      const auto values = record::write_file(place / "values.csv", values_csv(j));
      if (!values) return tl::unexpected(values.error());
    }
    const auto verdict = record::write_file(place / "verdict.json", to_record(j).json());
    if (!verdict) return tl::unexpected(verdict.error());
    for (const Plot& plot : e.plots) {
      if (const auto ok = write_figure(figure_of(e, j.samples, plot), place / (plot.name + ".svg")); !ok)
        return ok;
    }
  }
  return {};
}

}  // namespace weft::lab
