// weft pair: two hosts, one link that loses, delays and reorders; every way of recovering losses beside the
// others. One simulation for each cell of the table, all under the observers' eyes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include "cli/bar.h"
#include "cli/commands.h"
#include "cli/stopwatch.h"
#include "core/base/parse.h"
#include "core/transport/loss/scheme.h"
#include "lab/figure.h"
#include "lab/statistics.h"
#include "record/output.h"
#include "record/record.h"
#include "sim/world/simulation.h"

namespace weft::cli {
namespace {

constexpr std::size_t kBar = 10;

// What a mode, or a variant of one, is called.
std::string column_of(const LossScheme& scheme) {
  return &loss_scheme(scheme.mode) == &scheme ? std::string(wire::mode_name(scheme.mode)) : scheme.name;
}

// Every row of the registry: before each mode its variants, the latest first.
std::vector<std::string> columns() {
  std::vector<std::string> names;
  const auto all = loss_schemes();
  for (const LossScheme* mode : all.first(wire::kModeCount)) {
    for (std::size_t i = all.size(); i-- > wire::kModeCount;) {
      if (all[i]->mode == mode->mode) names.push_back(column_of(*all[i]));
    }
    names.push_back(column_of(*mode));
  }
  return names;
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& n : names) text += (text.empty() ? "" : ", ") + n;
  return text;
}

struct Options {
  std::vector<std::string> modes = columns();
  std::vector<std::string> losses{"0", "0.1%", "0.5%", "1%", "2%", "5%"};
  std::string op = "write";
  std::string size;
  std::string count = "1000";
  std::string depth = "16";
  std::string rate = "100Gbps";
  std::string delay = "1us";
  std::string reorder = "0";
  std::string mtu = "4096";
  std::string controller = "none";
  std::string rto = "static";
  std::vector<std::string> changes;
  std::string seed = "1";
  std::string seeds = "1";
  bool json = false;
  std::string plot;

  std::string message() const {  // its size
    const bool atomic = op == "compare_swap" || op == "fetch_add";
    return !size.empty() ? size : atomic ? "8" : "64KiB";
  }
};

struct Run {
  double gbps = 0;
  bool failed = false;  // a request failed, or an observer complained
  std::uint64_t resent = 0;
  std::uint64_t timeouts = 0;
};

struct Cell {
  lab::Estimate gbps;  // over the seeds
  bool failed = false;
  std::uint64_t resent = 0;
  std::uint64_t timeouts = 0;
};

// The settings of a column, or why there is no such column.
Result<std::vector<std::string>> transport_of(const std::string& column) {
  const auto all = loss_schemes();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const LossScheme* s) { return column_of(*s) == column; });
  if (found == all.end()) {
    return fail(fmt::format("--modes: '{}' is not one of {}{}", column, join(columns()),
                            column == "tcp" ? "; weft sim runs it" : ""));
  }
  std::vector<std::string> changes{"transport.mode=" + std::string(wire::mode_name((*found)->mode))};
  if (*found != &loss_scheme((*found)->mode)) changes.push_back("transport.recovery=" + column);
  return changes;
}

struct Setting {
  std::string name;
  std::string option;
  std::string value;
};

Result<sim::Scenario> scenario_of(const Options& o, const std::string& column, const std::string& loss,
                                  std::uint64_t seed) {
  auto changes = transport_of(column);
  if (!changes) return tl::unexpected(changes.error());
  std::vector<Setting> settings{{"network.loss", "--loss", loss},
                                {"network.rate", "--rate", o.rate},
                                {"network.delay", "--delay", o.delay},
                                {"network.reorder", "--reorder", o.reorder},
                                {"transport.mtu", "--mtu", o.mtu},
                                {"transport.controller", "--controller", o.controller},
                                {"flow.op", "--op", o.op},
                                {"flow.size", "--size", o.message()},
                                {"flow.count", "--count", o.count},
                                {"flow.depth", "--depth", o.depth},
                                {"seed", "--seed", std::to_string(seed)}};
  if (column != "roce") settings.push_back({"transport.rto", "--rto", o.rto});
  const auto named = [&](const std::string& change) {
    return std::find_if(settings.begin(), settings.end(),
                        [&](const Setting& s) { return change.starts_with(s.name + "="); });
  };
  for (const std::string& c : o.changes) {
    if (const auto s = named(c); s != settings.end())
      return fail("--set: '" + c + "' is what " + s->option + " says");
    if (c.starts_with("transport.mode=") || c.starts_with("transport.recovery="))
      return fail("--set: '" + c + "' is what --modes says");
  }
  for (const Setting& s : settings) changes->push_back(s.name + "=" + s.value);
  changes->insert(changes->end(), o.changes.begin(), o.changes.end());
  auto scenario =
      sim::parse_scenario("hosts = 2\ncheck = true\n[[flow]]\nfrom = 0\nto = 1\n", "weft pair", *changes);
  if (scenario) return scenario;
  // The message names the option that the user wrote, not the setting behind it.
  const std::string& said = scenario.error().message;
  for (const Setting& s : settings) {
    const std::string place = "weft pair: " + s.name + ": ";
    if (said.starts_with(place)) return fail(s.option + ": " + said.substr(place.size()));
  }
  return scenario;
}

Run measure(const sim::Scenario& scenario) {
  sim::Simulation run(scenario);
  while (run.run(1U << 20U)) {
  }
  const sim::FlowResult& r = run.results()[0];
  const bool clean = run.findings() == nullptr || run.findings()->clean();
  const sim::Totals n = run.totals();
  return {r.goodput_bps() / 1e9, !run.complete() || r.failed != 0 || !clean, n.retransmitted, n.timeouts};
}

Cell summary(const std::vector<Run>& runs) {
  Cell cell;
  std::vector<double> gbps;
  for (const Run& r : runs) {
    gbps.push_back(r.gbps);
    cell.failed = cell.failed || r.failed;
    cell.resent += r.resent;
    cell.timeouts += r.timeouts;
  }
  cell.gbps = lab::estimate(gbps);
  return cell;
}

std::string bar(double of, double whole) {
  const double part = whole > 0 ? std::clamp(of / whole, 0.0, 1.0) : 0;
  const auto full = static_cast<std::size_t>(part * kBar + 0.5);
  return std::string(full, '#') + std::string(kBar - full, '.');
}

// With one seed the cell is a number and a bar; with more, their mean and how sure it is.
std::string cell_text(const Cell& c, double lossless) {
  const std::string mark = c.failed ? "!!" : "  ";
  if (c.gbps.values == 1)
    return fmt::format("  {:>6.2f} {}{}", c.gbps.mean, bar(c.gbps.mean, lossless), mark);
  const std::string interval = fmt::format("[{:.1f}, {:.1f}]", c.gbps.low, c.gbps.high);
  return fmt::format("  {:>6.2f} {:<14}{}", c.gbps.mean, interval, mark);
}

record::Record settings_record(const Options& o, std::uint64_t first, std::uint64_t seeds) {
  record::Record r;
  r.set("op", o.op).set("size", o.message()).set("count", o.count).set("depth", o.depth).set("rate", o.rate);
  r.set("delay", o.delay).set("reorder", o.reorder).set("mtu", o.mtu).set("controller", o.controller);
  r.set("rto", o.rto).set("seed", first).set("seeds", seeds);
  if (!o.changes.empty()) r.set("set", join(o.changes));
  return r;
}

record::Record cell_record(const std::string& mode, const std::string& loss, const Cell& c) {
  record::Record r;
  r.set("mode", mode).set("loss", loss).set("goodput_gbps", c.gbps.mean);
  if (c.gbps.values > 1) r.set("goodput_gbps_low", c.gbps.low).set("goodput_gbps_high", c.gbps.high);
  r.set("resent", c.resent).set("timeouts", c.timeouts).set("failed", c.failed);
  return r;
}

Result<void> check_plot(const std::string& plot) {
  if (plot.empty()) return {};
  if (!plot.ends_with(".svg")) return fail("--plot: '" + plot + "' must end in .svg");
  std::error_code none;
  const auto folder = std::filesystem::path(plot).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, none))
    return fail("--plot: there is no folder '" + folder.string() + "'");
  // Opened and given up again: nothing is changed, and what cannot be written is said before the runs.
  const auto trial = record::OutputFile::open("--plot", plot);
  if (!trial) return tl::unexpected(trial.error());
  return {};
}

using Grid = std::vector<std::vector<std::vector<sim::Scenario>>>;  // by loss, column and seed

Result<Grid> grid_of(const Options& o, std::uint64_t first, std::uint64_t seeds) {
  if (o.rto != "static" && std::all_of(o.modes.begin(), o.modes.end(), [](auto& m) { return m == "roce"; })) {
    return fail("--rto: '" + o.rto + "' means nothing to roce, whose time-outs are the verbs program's");
  }
  Grid grid;
  for (const std::string& loss : o.losses) {
    auto& row = grid.emplace_back();
    for (const std::string& column : o.modes) {
      auto& cell = row.emplace_back();
      for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
        auto scenario = scenario_of(o, column, loss, seed);
        if (!scenario) return tl::unexpected(scenario.error());
        cell.push_back(std::move(*scenario));
      }
    }
  }
  return grid;
}

std::string heading(const Options& o, std::uint64_t seeds) {
  const std::string what = fmt::format("{} of {}, {} outstanding", o.op, o.message(), o.depth);
  if (seeds > 1)
    return fmt::format("goodput in Gb/s, mean of {} seeds and its 95 % interval; {}", seeds, what);
  const bool from_none = o.losses[0] == "0" || o.losses[0] == "0%";
  return fmt::format("goodput in Gb/s, and as a part of the mode's own {}; {}",
                     from_none ? std::string("without loss") : "at loss " + o.losses[0], what);
}

int compare(const Options& o) {
  if (const auto ok = check_plot(o.plot); !ok) return refuse(ok.error());
  const auto first = parse_integer("--seed", o.seed, 0, UINT64_MAX / 2);
  if (!first) return refuse(first.error());
  const auto seeds = parse_integer("--seeds", o.seeds, 1, 1000);
  if (!seeds) return refuse(seeds.error());
  const auto grid = grid_of(o, *first, *seeds);  // all of it is understood before anything runs
  if (!grid) return refuse(grid.error());

  record::Record all;
  all.set("settings", settings_record(o, *first, *seeds));
  lab::Figure figure{
      fmt::format("{} of {}, {} outstanding, {}, {}", o.op, o.message(), o.depth, o.rate, o.delay),
      "loss",
      o.losses,
      {{"goodput", "Gb/s", {}, {}}},
      false};
  for (const std::string& column : o.modes) figure.panels[0].series.push_back({column, {}});
  const std::size_t width = *seeds > 1 ? 23 : 19;
  if (!o.json) {
    std::cout << fmt::format("{}\n\n{:>7}", heading(o, *seeds), "loss");
    for (const std::string& column : o.modes) std::cout << fmt::format("  {:<{}}", column, width);
    std::cout << "\n";
  }
  const Stopwatch watch;
  Bar progress;
  std::vector<double> lossless(o.modes.size());
  bool failed = false;
  for (std::size_t y = 0; y < grid->size(); ++y) {
    if (!o.json) std::cout << fmt::format("{:>7}", o.losses[y]);
    for (std::size_t x = 0; x < o.modes.size(); ++x) {
      std::vector<Run> runs;
      for (const sim::Scenario& s : (*grid)[y][x]) runs.push_back(measure(s));
      const Cell cell = summary(runs);
      if (y == 0) lossless[x] = cell.gbps.mean;
      failed = failed || cell.failed;
      figure.panels[0].series[x].values.push_back(cell.gbps);
      if (o.json) {
        all.append("cells", cell_record(o.modes[x], o.losses[y], cell));
        if (watch.seconds() > 1)
          progress.show((y * o.modes.size() + x + 1) * *seeds, grid->size() * o.modes.size() * *seeds,
                        watch.seconds());
      } else {
        std::cout << cell_text(cell, lossless[x]);
      }
      std::cout.flush();
    }
    if (!o.json) std::cout << "\n";
  }
  if (o.json) {
    progress.clear();
    std::cout << all.json();
  } else if (failed) {
    std::cout << "\n!! a request failed, or the observers found a rule broken: `weft sim` shows more\n";
  }
  if (!o.plot.empty()) {
    if (const auto drawn = lab::write_figure(figure, o.plot); !drawn) return fault(drawn.error());
    if (!o.json) std::cout << "\n" << o.plot << " is drawn; its numbers are beside it\n";
  }
  return failed ? 1 : 0;
}

}  // namespace

void add_pair(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("pair", "Compare how modes bear a bad link between two hosts");
  command
      ->add_option("--modes", options->modes,
                   "roce, irn, srnic, or a variant of one; weft sim --list says what each is")
      ->delimiter(',');
  command
      ->add_option("--loss", options->losses,
                   "probabilities, each a row; bars are parts of what the first one reached")
      ->delimiter(',');
  command->add_option("--op", options->op, "write, write_imm, send, send_imm, read, compare_swap, fetch_add");
  command->add_option("--size", options->size, "of one message; left out, 64KiB, and 8 for atomics");
  command->add_option("--count", options->count, "messages");
  command->add_option("--depth", options->depth, "of them outstanding");
  command->add_option("--rate", options->rate, "of the links; 0: unlimited");
  command->add_option("--delay", options->delay, "of each of the two links on the way");
  command->add_option("--reorder", options->reorder, "probability that a packet is late by 10us");
  command->add_option("--mtu", options->mtu, "path MTU");
  command->add_option("--controller", options->controller, "congestion control; weft sim --list names them");
  command->add_option("--rto", options->rto,
                      "retransmission time-outs of all modes but roce: static, dynamic, adaptive");
  command->add_option("--set", options->changes, "change any other setting, as in weft sim; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--seed", options->seed, "of the losses");
  command->add_option("--seeds", options->seeds,
                      "so many runs for each cell, with seeds from --seed on: means and 95 % intervals");
  command->add_flag("--json", options->json, "print settings and cells as JSON");
  command
      ->add_option("--plot", options->plot,
                   "draw goodput against loss; a .csv with the numbers goes beside it")
      ->type_name("FILE.svg");
  command->footer(
      "Examples:\n"
      "  weft pair\n"
      "  weft pair --modes roce,irn --loss 0,1%,10% --delay 50us --depth 64\n"
      "  weft pair --op read --controller dcqcn --json\n"
      "  weft pair --rto dynamic --set transport.rto_low=5us --size 1KiB --depth 1\n"
      "  weft pair --modes roce,irn,srnic --seeds 10 --plot loss.svg");
  command->callback([options, &exit_code] { exit_code = compare(*options); });
}

}  // namespace weft::cli
