// weft nic sweep: two hosts with NICs of a design, and more and more connections between them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/cmd_nic.h"
#include "cli/commands.h"
#include "cli/nic_run.h"
#include "core/base/parse.h"
#include "lab/figure.h"
#include "record/record.h"
#include "sim/world/nic_design.h"
#include "sim/world/nic_record.h"

namespace weft::cli {
namespace {

struct Options {
  std::vector<std::string> designs;
  std::string queue_pairs = "1,16,128,256,512,1024,4096,10000";
  NicLoad load;
  std::string messages = "40000";
  std::string svg;
  bool json = false;
};

lab::Estimate exactly(double v) { return {v, v, v, 1, false, true}; }

int sweep(const Options& o) {
  const auto counts = queue_pair_numbers(o.queue_pairs);
  if (!counts) return refuse(counts.error());
  const auto messages = parse_integer("--messages", o.messages, 1, 100'000'000);
  if (!messages) return refuse(messages.error());
  lab::Figure figure;
  figure.title = fmt::format("{} of {} between two hosts", o.load.op, o.load.size);
  figure.x_label = "queue pairs";
  for (const std::uint32_t n : *counts) figure.ticks.push_back(std::to_string(n));
  figure.panels.resize(4);
  const char* titles[] = {"throughput with headers", "messages", "extra PCIe traffic of the sender",
                          "contexts found on the chip"};
  const char* labels[] = {"Gb/s", "Mrps", "Gb/s", "%"};
  for (std::size_t i = 0; i < 4; ++i) {
    figure.panels[i].title = titles[i];
    figure.panels[i].y_label = labels[i];
  }
  record::Record all;
  for (const std::string& name : o.designs) {
    const auto design = sim::design_named(name, "", "");
    if (!design) return refuse(design.error());
    if (!o.json)
      std::cout << fmt::format("{}: {}\n{:>8}{:>12}{:>12}{:>10}{:>12}{:>14}{:>10}{:>10}{:>16}\n",
                               design->name, design->text, "qps", "payload", "wire", "rate", "p50",
                               "extra PCIe", "hits", "fairness", "simulated");
    for (lab::Panel& p : figure.panels) p.series.push_back({design->name, {}});
    for (const std::uint32_t n : *counts) {
      const std::uint32_t most = design->context.most;
      if (most != 0 && n > most) {
        if (!o.json) std::cout << fmt::format("{:>8}  no contexts for more than {}\n", n, most);
        for (lab::Panel& p : figure.panels) p.series.back().values.emplace_back();
        continue;
      }
      const auto r = run_nics(*design, name, "", n, *messages, 12, o.load);
      if (!r) return refuse(r.error());
      const double values[] = {r->wire_gbps, r->mrps, r->extra_gbps, r->hit_rate * 100};
      for (std::size_t i = 0; i < 4; ++i) figure.panels[i].series.back().values.push_back(exactly(values[i]));
      if (o.json) {
        record::Record one;
        one.set("design", design->name).set("queue_pairs", std::uint64_t{n});
        one.set("goodput_gbps", r->flow.goodput_bps() / 1e9)
            .set("wire_gbps", r->wire_gbps)
            .set("mrps", r->mrps);
        one.set("latency_us_p50", r->latency_us).set("extra_pcie_gbps", r->extra_gbps);
        one.set("context_hit_rate", r->hit_rate).set("fairness", r->flow.fairness());
        one.set("packets_per_second", r->packets_per_second);
        for (const sim::NicCounters& c : r->nics) one.append("nics", sim::to_record(c, r->run));
        all.append("runs", std::move(one));
        continue;
      }
      std::cout << fmt::format(
          "{:>8}{:>7.1f} Gb/s{:>7.1f} Gb/s{:>6.2f} M/s{:>9.2f} us{:>9.1f} Gb/s{:>8.1f} %{:>10.3f}{:>8.2f} M "
          "pkt/s\n",
          n, r->flow.goodput_bps() / 1e9, r->wire_gbps, r->mrps, r->latency_us, r->extra_gbps,
          r->hit_rate * 100, r->flow.fairness(), r->packets_per_second / 1e6);
    }
  }
  if (o.json) std::cout << all.json();
  if (o.svg.empty()) return 0;
  if (const auto written = lab::write_figure(figure, o.svg); !written) return fault(written.error());
  return 0;
}

}  // namespace

void add_nic_sweep(CLI::App& nic, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c = nic.add_subcommand("sweep", "how a design bears more and more connections, simulated");
  c->add_option("NAME", o->designs, "built-in designs or TOML files")->required();
  c->add_option("--qps", o->queue_pairs, "numbers of queue pairs")->type_name("N,N,…");
  c->add_option("--op", o->load.op, "as op of a [[flow]]: send, write, read, …");
  c->add_option("--size", o->load.size, "bytes of a message")->type_name("SIZE");
  c->add_option("--depth", o->load.depth, "messages outstanding on a queue pair")->type_name("N");
  c->add_option("--messages", o->messages, "in each run, and at least 12 a queue pair")->type_name("N");
  c->add_option("--mtu", o->load.mtu, "path MTU")->type_name("N");
  c->add_option("--set", o->load.changes, "changes of the scenario, as of weft sim")->type_name("NAME=VALUE");
  c->add_option("--svg", o->svg, "draws the curves, and writes their numbers beside them as CSV")
      ->type_name("FILE");
  c->add_flag("-j,--json", o->json, "print JSON instead of tables");
  c->footer(
      "Two hosts behind one switch, links of 100 Gb/s and 10 ns; each design in its own mode, roce with "
      "PFC.\n"
      "Examples:\n  weft nic sweep srnic cx6-like --svg fig9.svg\n"
      "  weft nic sweep csrna-fcfs csrna-nb --op write --size 64B --qps 100,300,1000,3000\n"
      "  weft nic sweep srnic --set nic.set=scheduler.wqes=2 --qps 1");
  c->callback([o, &exit_code] { exit_code = sweep(*o); });
}

}  // namespace weft::cli
