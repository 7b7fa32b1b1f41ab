#include "lab/figure.h"

#include <fmt/format.h>

#include <filesystem>

#include "record/output.h"

namespace weft::lab {
namespace {

// A field of a CSV file.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string all = "\"";
  for (const char c : text) all += c == '"' ? std::string("\"\"") : std::string(1, c);
  return all + '"';
}

std::string csv_of(const Figure& f) {
  std::string text = "panel,series,number,x,tick,mean,low,high\n";
  for (const Panel& panel : f.panels) {
    std::size_t number = 0;
    for (const Series& s : panel.series) {
      for (std::size_t i = 0; i < s.values.size(); ++i) {
        const Estimate& e = s.values[i];
        if (e.values == 0) continue;
        text += fmt::format("{},{},{},{},{},{},{}\n", field(panel.title), field(s.name), number, i,
                            field(i < f.ticks.size() ? f.ticks[i] : ""), e.mean,
                            e.has_interval() ? fmt::format("{},{}", e.low, e.high) : ",");
      }
      for (const PaperMark& m : s.paper)
        text += fmt::format("{},{},{},{},{},{},,\n", field(panel.title), field("the paper: " + s.name),
                            number, m.tick, field(m.tick < f.ticks.size() ? f.ticks[m.tick] : ""), m.value);
      ++number;
    }
  }
  return text;
}

}  // namespace

Result<void> write_figure(const Figure& figure, const std::string& svg) {
  const std::string csv = std::filesystem::path(svg).replace_extension(".csv");
  if (auto ok = record::write_file(csv, csv_of(figure)); !ok) return ok;
  return record::write_file(svg, draw_figure(figure, Svg::kFile));
}

}  // namespace weft::lab
