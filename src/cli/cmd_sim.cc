// weft sim FILE.toml: runs a scenario in the simulator and says what came of it, as a table for people or as
// JSON. Exit code 1 when the run shows a fault: a flow that failed or did not finish, an observer's finding.
#include <fmt/format.h>
#include <sys/time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "cli/commands.h"
#include "cli/sim_bench.h"
#include "cli/sim_list.h"
#include "sim/world/simulation.h"

namespace weft::cli {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> changes;
  std::string seed;
  std::string out;
  std::string trace;
  bool json = false;
  bool list = false;
  bool bench = false;
};

constexpr std::uint64_t kEventsPerTurn = 1U << 16U;
constexpr int kTellEvery = 2;  // seconds: anything longer says how far it is

std::string time_text(Duration d) {
  if (d.ps >= seconds(1).ps) return fmt::format("{:.3f} s", static_cast<double>(d.ps) / 1e12);
  if (d.ps >= milliseconds(1).ps) return fmt::format("{:.3f} ms", static_cast<double>(d.ps) / 1e9);
  return fmt::format("{:.2f} us", static_cast<double>(d.ps) / 1e6);
}

// Every two seconds the system knocks; nothing here reads a clock.
volatile std::sig_atomic_t knocks = 0;

void progress(sim::Simulation& run) {
  std::signal(SIGALRM, [](int) { knocks = knocks + 1; });
  const itimerval every{{kTellEvery, 0}, {kTellEvery, 0}};
  setitimer(ITIMER_REAL, &every, nullptr);
  int told = 0;
  while (run.run(kEventsPerTurn)) {
    if (knocks == told) continue;
    told = knocks;
    fmt::print(stderr, "weft: {} s: {} of {} messages, virtual time {}\n", told * kTellEvery,
               run.messages_done(), run.messages_asked(), time_text(run.now() - Time{}));
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
}

std::string table(const sim::Scenario& s, const sim::Simulation& run) {
  std::string t = fmt::format("{:>4} {:>9} {:>12} {:>10} {:>8} {:>12} {:>10} {:>10} {:>10}\n", "flow",
                              "hosts", "op", "messages", "failed", "goodput", "of line", "p50", "p99");
  for (std::size_t i = 0; i < s.flows.size(); ++i) {
    const sim::FlowSpec& f = s.flows[i];
    const sim::FlowResult& r = run.results()[i];
    std::vector<Duration> sorted = r.latencies;
    std::sort(sorted.begin(), sorted.end());
    const auto at = [&](std::size_t percent) {
      return sorted.empty() ? std::string("-") : time_text(sorted[(sorted.size() - 1) * percent / 100]);
    };
    const std::string of_line =
        s.topology.rate.bps == 0
            ? "-"
            : fmt::format("{:.1f} %", 100 * r.goodput_bps() / static_cast<double>(s.topology.rate.bps));
    t += fmt::format("{:>4} {:>9} {:>12} {:>10} {:>8} {:>7.2f} Gb/s {:>10} {:>10} {:>10}\n", i,
                     fmt::format("{} > {}", f.from, f.to), sim::op_name(f.op), r.messages, r.failed,
                     r.goodput_bps() / 1e9, of_line, at(50), at(99));
  }
  const sim::Totals n = run.totals();
  t += fmt::format("\nvirtual time {}, {} events, {} packets sent, {} of them again\n",
                   time_text(run.now() - Time{}), n.events, n.packets_sent, n.retransmitted);
  t += fmt::format(
      "lost {}, dropped by full queues {}, corrupted {}; time-outs {}, recoveries {}; longest queue {} B\n",
      n.lost, n.queue_drops, n.corrupted, n.timeouts, n.recoveries, n.longest_queue);
  if (!run.complete()) t += "the limit of virtual time came before every flow was done\n";
  if (const check::Report* found = run.findings(); found != nullptr) {
    t += found->clean() ? "observers: nothing to complain about\n"
                        : fmt::format("observers: {} findings\n{}", found->total(), found->text());
  }
  return t;
}

int simulate(const Options& o) {
  if (o.list) {
    std::cout << sim_list_text();
    return 0;
  }
  if (o.bench) return sim_bench(o.json);
  if (o.file.empty()) return refuse({"sim needs a scenario FILE, --list or --bench; see weft sim --help"});
  std::ifstream file(o.file);
  if (!file) return refuse({"scenario '" + o.file + "' cannot be read"});
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::string> changes = o.changes;
  if (!o.seed.empty()) changes.push_back("seed=" + o.seed);
  const auto scenario = sim::parse_scenario(text, o.file, changes);
  if (!scenario) return refuse(scenario.error());

  std::ofstream capture;
  std::unique_ptr<trace::PcapngWriter> trace;
  if (!o.trace.empty()) {
    capture.open(o.trace, std::ios::binary | std::ios::trunc);
    if (!capture) return refuse({"--trace: '" + o.trace + "' cannot be written"});
    trace = std::make_unique<trace::PcapngWriter>(capture);
  }
  std::ofstream out;
  if (!o.out.empty()) {
    out.open(o.out, std::ios::trunc);
    if (!out) return refuse({"--out: '" + o.out + "' cannot be written"});
  }
  sim::Simulation run(*scenario, trace.get());
  progress(run);
  const std::string json = run.to_record().json();
  if (!o.out.empty() && !(out << json).flush())
    return refuse({"--out: '" + o.out + "' could not be written to its end"});
  if (trace != nullptr && !capture.flush())
    return refuse({"--trace: '" + o.trace + "' could not be written to its end"});
  std::cout << (o.json ? json : table(*scenario, run));
  std::uint64_t failed = 0;
  for (const sim::FlowResult& r : run.results()) failed += r.failed;
  const bool found = run.findings() != nullptr && !run.findings()->clean();
  return run.complete() && failed == 0 && !found ? 0 : 1;
}

}  // namespace

void add_sim(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("sim", "Run a scenario in the simulator");
  command->add_option("FILE", options->file, "the scenario, a TOML file");
  command->add_option("--set", options->changes, "change a setting, such as network.loss=1%; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--seed", options->seed, "the same as --set seed=N")->type_name("N");
  command->add_flag("--json", options->json, "print the run's record instead of a table");
  command->add_option("--out", options->out, "also write the record to this file")->type_name("FILE");
  command->add_option("--trace", options->trace, "write every packet to this pcapng file")->type_name("FILE");
  command->add_flag("--list", options->list,
                    "every topology, switch, mode and workload there is, a line each");
  command->add_flag("--bench", options->bench, "measure the simulator's own speed on this machine");
  command->footer(
      "Examples:\n"
      "  weft sim examples/two-hosts.toml\n"
      "  weft sim examples/two-hosts.toml --set transport.mode=roce --set network.loss=0.1% --json");
  command->callback([options, &exit_code] { exit_code = simulate(*options); });
}

}  // namespace weft::cli
