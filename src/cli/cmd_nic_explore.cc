// weft nic explore: which designs bear the most connections at full rate in a given memory on the chip.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <set>

#include "cli/bar.h"
#include "cli/cmd_nic.h"
#include "cli/commands.h"
#include "cli/nic_run.h"
#include "cli/stopwatch.h"
#include "core/base/parse.h"
#include "lab/explore.h"
#include "lab/figure.h"
#include "record/record.h"
#include "sim/world/nic_design.h"

namespace weft::cli {
namespace {

struct Options {
  std::vector<std::string> designs;
  std::vector<std::string> chips;
  std::string queue_pairs = "500,1000,2000,5000,10000,20000,50000";
  std::string splits = "10%,25%,50%,75%,90%";
  std::string full = "90%";
  std::string runs = "40";
  std::string messages = "20000";
  NicLoad load;
  std::string svg;
  bool json = false;
};

constexpr std::uint64_t kEach = 5;  // messages of each connection

Result<sim::MessageLoad> load_of(const NicLoad& l) {
  sim::MessageLoad load;
  const struct {
    const char* name;
    WrOpcode op;
  } ops[] = {{"send", WrOpcode::kSend}, {"write", WrOpcode::kWrite}, {"read", WrOpcode::kRead}};
  const auto* op =
      std::find_if(std::begin(ops), std::end(ops), [&](const auto& o) { return l.op == o.name; });
  if (op == std::end(ops)) return fail("--op: '" + l.op + "' is not one of send, write, read");
  load.op = op->op;
  const auto size = parse_size("--size", l.size);
  if (!size) return tl::unexpected(size.error());
  if (size->n == 0 || size->n > (1U << 20U)) return fail("--size: from 1 byte to 1MiB");
  load.bytes = static_cast<std::uint32_t>(size->n);
  const auto depth = parse_integer("--depth", l.depth, 1, 1024);
  if (!depth) return tl::unexpected(depth.error());
  load.depth = load.batch = static_cast<std::uint32_t>(*depth);
  return load;
}

Result<lab::ExploreSpace> space_of(const Options& o) {
  lab::ExploreSpace s;
  s.designs = o.designs;
  for (const std::string& chip : o.chips) {
    const auto size = parse_size("--chip", chip);
    if (!size) return tl::unexpected(size.error());
    s.memories.push_back(*size);
  }
  const auto counts = queue_pair_numbers(o.queue_pairs);
  if (!counts) return tl::unexpected(counts.error());
  s.connections = *counts;
  if (!std::is_sorted(counts->begin(), counts->end())) return fail("--qps: give rising numbers");
  for (std::size_t at = 0; at <= o.splits.size();) {
    const std::size_t end = std::min(o.splits.find(',', at), o.splits.size());
    const auto share = parse_probability("--splits", o.splits.substr(at, end - at));
    if (!share) return tl::unexpected(share.error());
    s.splits.push_back(static_cast<double>(*share) / 1e6);
    at = end + 1;
  }
  const auto full = parse_probability("--full", o.full);
  if (!full) return tl::unexpected(full.error());
  s.full = static_cast<double>(*full) / 1e6;
  const auto runs = parse_integer("--runs", o.runs, 1, 10'000);
  if (!runs) return tl::unexpected(runs.error());
  s.most_runs = static_cast<std::uint32_t>(*runs);
  const auto load = load_of(o.load);
  if (!load) return tl::unexpected(load.error());
  s.load = *load;
  s.touched =
      std::uint64_t{4} * load->depth * load->bytes;  // a [[flow]] has four slots for each outstanding one
  return s;
}

double mebi(std::uint64_t bytes) { return static_cast<double>(bytes) / (1U << 20U); }

// The front, the most connections first.
std::vector<lab::Explored> front_of(const lab::Exploration& found) {
  std::vector<lab::Explored> front;
  for (const lab::Explored& p : found.points) {
    if (p.front) front.push_back(p);
  }
  std::stable_sort(front.begin(), front.end(), [](const lab::Explored& a, const lab::Explored& b) {
    return a.connections > b.connections;
  });
  return front;
}

std::string split_text(double split) { return split == 0 ? "all" : fmt::format("{:.0f} %", split * 100); }

void print_table(const lab::Exploration& found, const std::vector<lab::Explored>& front, const Options& o) {
  std::cout << fmt::format(
      "{} of {}, {} outstanding: the most connections at {} of a design's rate, and no "
      "more memory than that takes\n{:>12}{:>11}{:>12}{:>10}{:>10}  {:<18}{}\n",
      o.load.op, o.load.size, o.load.depth, o.full, "connections", "chip", "rate", "bound", "contexts",
      "design", "set");
  for (const lab::Explored& p : front)
    std::cout << fmt::format("{:>12}{:>7.2f} MiB{:>7.2f} M/s{:>6.2f} M/s{:>10}  {:<18}{}\n", p.connections,
                             mebi(p.chip), p.rate, p.bound, split_text(p.split), p.design, p.changes);
  if (front.empty()) std::cout << "  nothing bears that many connections at that rate\n";
  std::cout << fmt::format(
      "{} runs, {} points excluded by the closed form, {} families that could not have "
      "been better{}\n",
      found.points.size(), found.pruned, found.beaten, found.cut_short ? "; --runs ended the search" : "");
}

record::Record record_of(const lab::Exploration& found) {
  record::Record r;
  for (const lab::Explored& p : found.points) {
    record::Record one;
    one.set("design", p.design).set("set", p.changes).set("connections", std::uint64_t{p.connections});
    one.set("chip_bytes", p.chip).set("contexts_share", p.split);
    one.set("rate_mrps", p.rate).set("bound_mrps", p.bound).set("peak_mrps", p.peak);
    one.set("full", p.full).set("front", p.front);
    r.append("points", std::move(one));
  }
  r.set("excluded", std::uint64_t{found.pruned}).set("beaten", std::uint64_t{found.beaten});
  r.set("cut_short", found.cut_short);
  return r;
}

// Over the numbers of connections: the least memory that bears them, and their rate.
lab::Figure figure_of(const std::vector<lab::Explored>& front, const lab::ExploreSpace& space) {
  lab::Figure f;
  f.title = "the most connections at full rate";
  f.x_label = "connections";
  for (const std::uint32_t n : space.connections) f.ticks.push_back(std::to_string(n));
  f.panels.resize(2);
  f.panels[0].title = "least memory on the chip";
  f.panels[0].y_label = "MiB";
  f.panels[1].title = "messages";
  f.panels[1].y_label = "Mrps";
  for (const std::string& design : space.designs) {
    std::vector<lab::Estimate> values[2];
    for (const std::uint32_t n : space.connections) {
      const lab::Explored* least = nullptr;
      for (const lab::Explored& p : front) {
        if (p.design == design && p.connections == n && (least == nullptr || p.chip < least->chip))
          least = &p;
      }
      for (std::size_t i = 0; i < 2; ++i) {
        const double v = least == nullptr ? 0 : i == 0 ? mebi(least->chip) : least->rate;
        values[i].push_back(least == nullptr ? lab::Estimate{} : lab::Estimate{v, v, v, 1, false, true});
      }
    }
    for (std::size_t i = 0; i < 2; ++i) f.panels[i].series.push_back({design, values[i]});
  }
  return f;
}

int explore(const Options& o) {
  const auto space = space_of(o);
  if (!space) return refuse(space.error());
  const auto messages = parse_integer("--messages", o.messages, 1, 100'000'000);
  if (!messages) return refuse(messages.error());
  Bar bar;
  const Stopwatch watch;
  const auto measure = [&](const lab::Candidate& c) -> Result<double> {
    const auto r = run_nics(c.design, c.base, c.changes, c.connections, *messages, kEach, o.load);
    if (!r) return tl::unexpected(r.error());
    return r->steady_mrps;
  };
  const auto found = lab::explore(
      *space, measure, [&](std::size_t done, std::size_t all) { bar.show(done, all, watch.seconds()); });
  bar.clear();
  if (!found) return refuse(found.error());
  const std::vector<lab::Explored> front = front_of(*found);
  if (o.json) {
    std::cout << record_of(*found).json();
  } else {
    print_table(*found, front, o);
  }
  if (o.svg.empty()) return 0;
  if (const auto written = lab::write_figure(figure_of(front, *space), o.svg); !written)
    return fault(written.error());
  return 0;
}

}  // namespace

void add_nic_explore(CLI::App& nic, int& exit_code) {
  auto o = std::make_shared<Options>();
  o->designs = {"srnic", "joined"};
  o->chips = {"1MiB", "2MiB", "4506KiB"};
  CLI::App* c =
      nic.add_subcommand("explore", "which designs bear the most connections at full rate in a given memory");
  c->add_option("NAME", o->designs, "built-in designs or TOML files; left out, srnic and joined");
  c->add_option("--chip", o->chips, "memory on the chip; several are several budgets")->type_name("SIZE");
  c->add_option("--qps", o->queue_pairs, "numbers of connections, rising")->type_name("N,N,…");
  c->add_option("--splits", o->splits,
                "shares that contexts have of the memory that they and translations share")
      ->type_name("SHARE,…");
  c->add_option("--full", o->full, "of a design's rate without misses: what counts as full")
      ->type_name("SHARE");
  c->add_option("--runs", o->runs, "simulations at most")->type_name("N");
  c->add_option("--messages", o->messages, "in each run, and at least 5 a connection")->type_name("N");
  c->add_option("--op", o->load.op, "send, write or read");
  c->add_option("--size", o->load.size, "bytes of a message")->type_name("SIZE");
  c->add_option("--depth", o->load.depth, "messages outstanding on a connection")->type_name("N");
  c->add_option("--svg", o->svg, "draws the front, and writes its numbers beside it as CSV")
      ->type_name("FILE");
  c->add_flag("-j,--json", o->json, "print every run as JSON instead of the front as a table");
  c->footer(
      "Bounds in closed form exclude what cannot reach the rate; the rest is simulated between two hosts.\n"
      "Examples:\n  weft nic explore --chip 2MiB\n"
      "  weft nic explore joined csrna-nb --chip 1MiB --chip 2MiB --op write --size 64B --svg front.svg");
  c->callback([o, &exit_code] { exit_code = explore(*o); });
}

}  // namespace weft::cli
