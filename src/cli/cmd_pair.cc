// weft pair: two hosts, one link that loses, delays and reorders; every way of recovering losses beside the
// others. One simulation for each cell of the table, all under the observers' eyes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include "cli/commands.h"
#include "core/transport/loss/scheme.h"
#include "lab/figure.h"
#include "record/record.h"
#include "sim/world/simulation.h"

namespace weft::cli {
namespace {

struct Options {
  std::vector<std::string> modes{"roce", "irn-go-back-n", "irn-no-sack", "irn", "srnic-stateless", "srnic"};
  std::vector<std::string> losses{"0", "0.1%", "0.5%", "1%", "2%", "5%"};
  std::string op = "write";
  std::string size = "64KiB";
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
  bool json = false;
  std::string plot;
};

struct Cell {
  double gbps = 0;
  bool failed = false;  // a request failed, or an observer complained
};

constexpr std::size_t kBar = 10;

// A column is a mode, or a variant of one.
std::vector<std::string> transport_of(const std::string& column) {
  const auto variants = loss_schemes().subspan(wire::kModeCount);
  const LossScheme* scheme = find_loss_scheme(column);
  if (std::find(variants.begin(), variants.end(), scheme) == variants.end())
    return {"transport.mode=" + column};
  return {"transport.mode=" + std::string(wire::mode_name(scheme->mode)), "transport.recovery=" + column};
}

Result<sim::Scenario> scenario_of(const Options& o, const std::string& column, const std::string& loss) {
  if (column == "tcp")
    return fail("--modes: 'tcp' is not one of roce, irn, srnic and their variants; weft sim runs it");
  std::vector<std::string> changes = transport_of(column);
  if (column != "roce") changes.push_back("transport.rto=" + o.rto);
  for (const auto& [name, value] : {std::pair<const char*, const std::string&>{"network.loss", loss},
                                    {"network.rate", o.rate},
                                    {"network.delay", o.delay},
                                    {"network.reorder", o.reorder},
                                    {"transport.mtu", o.mtu},
                                    {"transport.controller", o.controller},
                                    {"flow.op", o.op},
                                    {"flow.size", o.size},
                                    {"flow.count", o.count},
                                    {"flow.depth", o.depth},
                                    {"seed", o.seed}}) {
    changes.push_back(std::string(name) + "=" + value);
  }
  changes.insert(changes.end(), o.changes.begin(), o.changes.end());
  return sim::parse_scenario("hosts = 2\ncheck = true\n[[flow]]\nfrom = 0\nto = 1\n", "weft pair", changes);
}

Cell measure(const sim::Scenario& scenario) {
  sim::Simulation run(scenario);
  while (run.run(1U << 20U)) {
  }
  const sim::FlowResult& r = run.results()[0];
  const bool clean = run.findings() == nullptr || run.findings()->clean();
  return {r.goodput_bps() / 1e9, !run.complete() || r.failed != 0 || !clean};
}

std::string bar(double part) {
  const auto full = static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * kBar + 0.5);
  return std::string(full, '#') + std::string(kBar - full, '.');
}

int compare(const Options& o) {
  if (!o.plot.empty() && !o.plot.ends_with(".svg"))
    return refuse({"--plot: '" + o.plot + "' must end in .svg"});
  std::error_code none;
  if (const auto folder = std::filesystem::path(o.plot).parent_path();
      !folder.empty() && !std::filesystem::is_directory(folder, none))
    return refuse({"--plot: there is no folder '" + folder.string() + "'"});
  std::vector<std::vector<sim::Scenario>> grid;
  for (const std::string& loss : o.losses) {  // all of it is understood before anything runs
    auto& row = grid.emplace_back();
    for (const std::string& column : o.modes) {
      auto scenario = scenario_of(o, column, loss);
      if (!scenario) return refuse(scenario.error());
      row.push_back(std::move(*scenario));
    }
  }
  record::Record all;
  lab::Figure figure{fmt::format("{} of {}, {} outstanding", o.op, o.size, o.depth),
                     "loss",
                     o.losses,
                     {{"", "goodput, Gb/s", {}}},
                     false};
  for (const std::string& column : o.modes) figure.panels[0].series.push_back({column, {}});
  if (!o.json) {
    fmt::print(
        "goodput in Gb/s, and as a part of the mode's own without loss; {} of {}, {} outstanding\n\n{:>7}",
        o.op, o.size, o.depth, "loss");
    for (const std::string& column : o.modes) fmt::print("  {:<19}", column);
    fmt::print("\n");
  }
  std::vector<double> lossless(o.modes.size());
  bool failed = false;
  for (std::size_t y = 0; y < grid.size(); ++y) {
    if (!o.json) fmt::print("{:>7}", o.losses[y]);
    for (std::size_t x = 0; x < o.modes.size(); ++x) {
      const Cell cell = measure(grid[y][x]);
      if (y == 0) lossless[x] = cell.gbps;
      failed = failed || cell.failed;
      figure.panels[0].series[x].values.push_back({cell.gbps, cell.gbps, cell.gbps, 1});
      if (o.json) {
        record::Record r;
        r.set("mode", o.modes[x])
            .set("loss", o.losses[y])
            .set("goodput_gbps", cell.gbps)
            .set("failed", cell.failed);
        all.append("cells", std::move(r));
      } else {
        fmt::print("  {:>6.2f} {}{}", cell.gbps, bar(cell.gbps / lossless[x]), cell.failed ? "!!" : "  ");
      }
      std::fflush(stdout);
    }
    if (!o.json) fmt::print("\n");
  }
  if (o.json) {
    std::cout << all.json();
  } else if (failed) {
    fmt::print("\n!! a request failed, or the observers found a rule broken: `weft sim` shows more\n");
  }
  if (!o.plot.empty()) {
    if (const auto drawn = lab::write_figure(figure, o.plot); !drawn) {
      refuse(drawn.error());
      return 1;
    }
  }
  return failed ? 1 : 0;
}

}  // namespace

void add_pair(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("pair", "Compare how modes bear a bad link between two hosts");
  command
      ->add_option("--modes", options->modes,
                   "roce, irn, srnic, or a variant: irn-no-sack, irn-go-back-n, srnic-stateless")
      ->delimiter(',');
  command->add_option("--loss", options->losses, "probabilities; the first is what bars are measured against")
      ->delimiter(',');
  command->add_option("--op", options->op, "write, write_imm, send, send_imm, read, compare_swap, fetch_add");
  command->add_option("--size", options->size, "of one message");
  command->add_option("--count", options->count, "messages");
  command->add_option("--depth", options->depth, "of them outstanding");
  command->add_option("--rate", options->rate, "of the link");
  command->add_option("--delay", options->delay, "of each of the two links on the way");
  command->add_option("--reorder", options->reorder, "probability that a packet is late by 10us");
  command->add_option("--mtu", options->mtu, "path MTU");
  command->add_option("--controller", options->controller, "congestion control; weft sim --list names them");
  command->add_option("--rto", options->rto,
                      "retransmission time-outs of all modes but roce: static, dynamic");
  command->add_option("--set", options->changes, "change any setting, as in weft sim; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--seed", options->seed, "of the losses");
  command->add_flag("--json", options->json, "print the cells as JSON");
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
      "  weft pair --plot loss.svg");
  command->callback([options, &exit_code] { exit_code = compare(*options); });
}

}  // namespace weft::cli
