// weft nic sweep: two hosts with NICs of a design, and more and more connections between them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/cmd_nic.h"
#include "cli/commands.h"
#include "cli/stopwatch.h"
#include "core/base/parse.h"
#include "lab/figure.h"
#include "record/record.h"
#include "sim/world/nic_design.h"
#include "sim/world/nic_record.h"
#include "sim/world/simulation.h"

namespace weft::cli {
namespace {

struct Options {
  std::vector<std::string> designs;
  std::string queue_pairs = "1,16,128,256,512,1024,4096,10000";
  std::string op = "send";
  std::string size = "512B";
  std::string depth = "16";
  std::string messages = "40000";
  std::string mtu = "1024";
  std::vector<std::string> changes;
  std::string svg;
  bool json = false;
};

struct Row {
  std::uint32_t queue_pairs = 0;
  sim::FlowResult flow;
  sim::NicCounters nics[2];
  Duration run{};
  double packets_per_second = 0;  // of the simulation
  double wire_gbps = 0;           // with headers, without preamble and gap
  double mrps = 0;
  double latency_us = 0;
  double extra_gbps = 0;
  double hit_rate = 1;
};

constexpr std::uint32_t kUnframed = 20;  // preamble and gap of a packet

double per(double a, double b) { return b == 0 ? 0 : a / b; }

Result<std::vector<std::uint32_t>> numbers_of(const std::string& list) {
  std::vector<std::uint32_t> all;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const auto n = parse_integer("--qps", list.substr(at, end - at), 1, 60'000);
    if (!n) return tl::unexpected(n.error());
    all.push_back(static_cast<std::uint32_t>(*n));
    at = end + 1;
  }
  return all;
}

std::string scenario_text(const std::string& design, wire::Mode mode, std::uint32_t qps,
                          std::uint64_t messages, const Options& o) {
  const std::uint64_t each = std::max<std::uint64_t>(messages / qps, 12);
  return fmt::format(
      "hosts = 2\n[network]\nrate = \"100Gbps\"\ndelay = \"10ns\"\n[transport]\nmode = \"{}\"\nmtu = \"{}\"\n"
      "[nic]\ndesign = \"{}\"\n[[flow]]\nop = \"{}\"\nsize = \"{}\"\ndepth = \"{}\"\nqps = {}\ncount = {}\n",
      wire::mode_name(mode), o.mtu, design, o.op, o.size, o.depth, qps, each);
}

Result<Row> run_one(const std::string& design, wire::Mode mode, std::uint32_t qps, std::uint64_t messages,
                    const Options& o) {
  const auto scenario = sim::parse_scenario(scenario_text(design, mode, qps, messages, o), design, o.changes);
  if (!scenario) return tl::unexpected(scenario.error());
  if (!scenario->nic.detailed) return fail("NAME: the ideal NIC has nothing to sweep");
  const Stopwatch watch;
  sim::Simulation run(*scenario);
  while (run.run(1U << 20U)) {
  }
  if (!run.complete()) return fail(fmt::format("{}: {} queue pairs were not done in time", design, qps));
  Row r;
  r.queue_pairs = qps;
  r.flow = run.results()[0];
  r.run = run.now() - Time{};
  r.packets_per_second = per(static_cast<double>(run.totals().packets_sent), watch.seconds());
  for (std::uint32_t h = 0; h < 2; ++h) r.nics[h] = static_cast<sim::DetailedNic&>(run.nic(h)).counters();
  const auto seconds = static_cast<double>(r.flow.elapsed().ps) / 1e12;
  const sim::NicCounters& a = r.nics[0].payload_sent > r.nics[1].payload_sent ? r.nics[0] : r.nics[1];
  r.wire_gbps = per(static_cast<double>(a.frame_bytes - a.packets_out * kUnframed) * 8e-9, seconds);
  r.mrps = per(static_cast<double>(r.flow.messages) * 1e-6, seconds);
  std::vector<Duration> sorted = r.flow.latencies;
  std::sort(sorted.begin(), sorted.end());
  r.latency_us = sorted.empty() ? 0 : static_cast<double>(sorted[sorted.size() / 2].ps) / 1e6;
  r.extra_gbps = per(static_cast<double>(a.dma.extra()) * 8e-9, seconds);
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  for (const sim::NicCounters& n : r.nics) {
    hits += n.context_hits;
    misses += n.context_misses;
  }
  r.hit_rate = misses == 0 ? 1 : per(static_cast<double>(hits), static_cast<double>(hits + misses));
  return r;
}

lab::Estimate exactly(double v) { return {v, v, v, 1, false, true}; }

int sweep(const Options& o) {
  const auto counts = numbers_of(o.queue_pairs);
  if (!counts) return refuse(counts.error());
  const auto messages = parse_integer("--messages", o.messages, 1, 100'000'000);
  if (!messages) return refuse(messages.error());
  lab::Figure figure;
  figure.title = fmt::format("{} of {} between two hosts", o.op, o.size);
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
      const auto r = run_one(name, design->mode, n, *messages, o);
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
  c->add_option("--op", o->op, "as op of a [[flow]]: send, write, read, …");
  c->add_option("--size", o->size, "bytes of a message")->type_name("SIZE");
  c->add_option("--depth", o->depth, "messages outstanding on a queue pair")->type_name("N");
  c->add_option("--messages", o->messages, "in each run, and at least 12 a queue pair")->type_name("N");
  c->add_option("--mtu", o->mtu, "path MTU")->type_name("N");
  c->add_option("--set", o->changes, "changes of the scenario, as of weft sim")->type_name("NAME=VALUE");
  c->add_option("--svg", o->svg, "draws the curves, and writes their numbers beside them as CSV")
      ->type_name("FILE");
  c->add_flag("-j,--json", o->json, "print JSON instead of tables");
  c->footer(
      "Two hosts behind one switch, links of 100 Gb/s and 10 ns; each design in its own mode.\n"
      "Examples:\n  weft nic sweep srnic cx6-like --svg fig9.svg\n"
      "  weft nic sweep csrna-fcfs csrna-nb --op write --size 64B --qps 100,300,1000,3000\n"
      "  weft nic sweep srnic --set nic.set=scheduler.wqes=2 --qps 1");
  c->callback([o, &exit_code] { exit_code = sweep(*o); });
}

}  // namespace weft::cli
