#include "lab/figure.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "record/input.h"
#include "record/output.h"

namespace weft::lab {
namespace {

namespace fs = std::filesystem;

constexpr int kPanelWidth = 460;
constexpr int kPanelHeight = 360;

// A field of a CSV file.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string all = "\"";
  for (const char c : text) all += c == '"' ? std::string("\"\"") : std::string(1, c);
  return all + '"';
}

// A text in gnuplot's single quotes: nothing in it is special but they.
std::string in_quotes(const std::string& text) {
  std::string all = "'";
  for (const char c : text) all += c == '\'' ? std::string("''") : std::string(1, c == '\n' ? ' ' : c);
  return all + '\'';
}

std::string csv_of(const Figure& f) {
  std::string text = "panel,series,number,x,tick,mean,low,high\n";
  for (const Panel& panel : f.panels) {
    std::size_t number = 0;
    for (const Series& s : panel.series) {
      for (std::size_t i = 0; i < s.values.size(); ++i) {
        const Estimate& e = s.values[i];
        if (e.values == 0) continue;
        text += fmt::format("{},{},{},{},{},{},{},{}\n", field(panel.title), field(s.name), number, i,
                            field(i < f.ticks.size() ? f.ticks[i] : ""), e.mean, e.low, e.high);
      }
      ++number;
    }
  }
  return text;
}

// `column` of this series, and nothing of the others.
std::string pick(const Panel& panel, std::size_t series, const std::string& column) {
  return fmt::format("(strcol(1) eq {} && column(3) == {} ? {} : NaN)", in_quotes(panel.title), series,
                     column);
}

// A tick's text is a format to gnuplot: a percent sign stands twice.
std::string ticks_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string name;
    for (const char c : names[i]) name += c == '%' ? std::string("%%") : std::string(1, c);
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", in_quotes(name), i);
  }
  return text;
}

std::string plot_of(const Figure& f, const Panel& panel, const std::string& csv) {
  const bool bars = f.ticks.size() <= 1;
  std::string text =
      fmt::format("set title {}\nset ylabel {}\n", in_quotes(panel.title), in_quotes(panel.y_label));
  std::vector<std::string> names;
  for (const Series& s : panel.series) names.push_back(s.name);
  const std::size_t places = bars ? names.size() : f.ticks.size();
  text += fmt::format("set xtics ({}) rotate by -30\nset xrange [-0.6:{}]\n",
                      ticks_of(bars ? names : f.ticks), static_cast<double>(places) - 0.4);
  text += "plot ";
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    const auto column = [&](const char* c) { return pick(panel, i, c); };
    if (i != 0) text += ", \\\n     ";
    if (bars) {
      text += fmt::format(
          "{0} using {1}:{2}:(0.6) with boxes lt {5} fs solid 0.5 notitle, \\\n     {0} using "
          "{1}:{2}:{3}:{4} with yerrorbars lt -1 ps 0 notitle",
          csv, column("column(3)"), column("column(6)"), column("column(7)"), column("column(8)"), i + 1);
    } else {
      text += fmt::format(
          "{0} using {1}:{2} with linespoints lt {5} pt {6} title {7}, \\\n     {0} using "
          "{1}:{2}:{3}:{4} with yerrorbars lt {5} ps 0 notitle",
          csv, column("column(4)"), column("column(6)"), column("column(7)"), column("column(8)"), i + 1,
          i + 4, in_quotes(panel.series[i].name));
    }
  }
  return text + "\n";
}

std::string script_of(const Figure& f, const std::string& csv, const std::string& svg) {
  std::string text = fmt::format(
      "set terminal svg size {},{} dynamic noenhanced background 'white' font 'Helvetica,12'\n"
      "if (!exists('place')) place = {}\nset output place\n"
      "set datafile separator ','\nset key outside right top noenhanced\nset grid ytics\nset xlabel {}\n{}"
      "set multiplot layout 1,{} title {}\n",
      kPanelWidth * std::max<std::size_t>(f.panels.size(), 1), kPanelHeight, in_quotes(svg),
      in_quotes(f.x_label), f.logarithmic ? "set logscale y\n" : "set yrange [0:*]\n", f.panels.size(),
      in_quotes(f.title));
  for (const Panel& p : f.panels) text += plot_of(f, p, in_quotes(csv));
  return text + "unset multiplot\n";
}

// In the figure's folder, so that the script names files only. gnuplot says nothing of a full disk: a figure
// is whole if its last tag is there.
Result<void> run_gnuplot(const fs::path& folder, const std::string& script, const std::string& csv,
                         const std::string& svg) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  const std::string part = svg + ".part";
  std::string name = "gnuplot";
  std::string option = "-e";
  std::string place = "place = " + in_quotes(part);
  std::string file = script;
  char* arguments[] = {name.data(), option.data(), place.data(), file.data(), nullptr};
  pid_t id = 0;
  const int error = posix_spawnp(&id, name.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return fail(
        fmt::format("figures are drawn by gnuplot, which is not here (Debian's package is gnuplot-nox); "
                    "the data are in '{}'",
                    csv));
  int status = 0;
  while (waitpid(id, &status, 0) < 0 && errno == EINTR) {
  }
  const auto drawn = record::read_file(folder / part);
  std::error_code wrong;
  if (status == 0 && drawn && drawn->find("</svg>") != std::string::npos) {
    fs::rename(folder / part, folder / svg, wrong);
    if (!wrong) return {};
  }
  fs::remove(folder / part, wrong);
  return fail(
      fmt::format("gnuplot did not draw '{}'; the data are in '{}'", (folder / script).string(), csv));
}

}  // namespace

Result<void> write_figure(const Figure& figure, const std::string& svg) {
  const fs::path path(svg);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string stem = path.stem();
  const std::string csv = stem + ".csv";
  if (const auto ok = record::write_file(folder / csv, csv_of(figure)); !ok) return ok;
  const std::string script = stem + ".gp";
  if (const auto ok = record::write_file(folder / script, script_of(figure, csv, path.filename())); !ok)
    return ok;
  return run_gnuplot(folder, script, (folder / csv).string(), path.filename());
}

}  // namespace weft::lab
