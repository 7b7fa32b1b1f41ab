// weft nic explain: what one message costs every stage of a design, which stage binds, and what an idle NIC
// takes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/cmd_nic.h"
#include "cli/commands.h"
#include "core/base/parse.h"
#include "lab/stages.h"
#include "record/output.h"
#include "record/record.h"
#include "sim/nic/explain.h"
#include "sim/world/nic_design.h"

namespace weft::cli {
namespace {

struct Options {
  std::string design;
  std::string changes;
  std::string op = "send";
  std::string size = "64";
  std::string mtu = "1024";
  std::string rate = "100Gbps";
  std::string queue_pairs = "1";
  std::string batch = "1";
  std::string depth = "128";
  std::string miss = "0";
  std::string svg;
  bool json = false;
};

struct Side {
  const char* name;
  const std::vector<sim::StageBound>& stages;
};

Result<sim::MessageLoad> load_of(const Options& o) {
  sim::MessageLoad l;
  if (o.op == "send") {
    l.op = WrOpcode::kSend;
  } else if (o.op == "write") {
    l.op = WrOpcode::kWrite;
  } else if (o.op == "read") {
    l.op = WrOpcode::kRead;
  } else {
    return fail("--op: '" + o.op + "' is not one of send, write, read");
  }
  const auto size = parse_size("--size", o.size);
  if (!size) return tl::unexpected(size.error());
  if (size->n > (1U << 30U)) return fail("--size: at most 1GiB");
  l.bytes = static_cast<std::uint32_t>(size->n);
  const auto rate = parse_rate("--rate", o.rate);
  if (!rate) return tl::unexpected(rate.error());
  l.link = *rate;
  const struct {
    const char* name;
    const std::string& text;
    std::uint32_t& out;
    std::uint64_t lowest;
    std::uint64_t highest;
  } numbers[] = {{"--mtu", o.mtu, l.mtu, 256, 4096},
                 {"--qps", o.queue_pairs, l.queue_pairs, 1, 1U << 24U},
                 {"--batch", o.batch, l.batch, 1, 8192},
                 {"--depth", o.depth, l.depth, 1, 8192}};
  for (const auto& n : numbers) {
    const auto v = parse_integer(n.name, n.text, n.lowest, n.highest);
    if (!v) return tl::unexpected(v.error());
    n.out = static_cast<std::uint32_t>(*v);
  }
  const auto miss = parse_probability("--miss", o.miss);
  if (!miss) return tl::unexpected(miss.error());
  l.miss = static_cast<double>(*miss) / 1e6;
  return l;
}

double ns(Duration d) { return static_cast<double>(d.ps) / 1e3; }

int explain_design(const Options& o) {
  const auto design = sim::design_named(o.design, "", o.changes);
  if (!design) return refuse(design.error());
  const auto load = load_of(o);
  if (!load) return refuse(load.error());
  const sim::Explanation e = sim::explain(*design, *load);
  const Side sides[] = {{"sender", e.sender}, {"link", e.link}, {"receiver", e.receiver}};
  if (!o.svg.empty()) {
    std::vector<lab::StageGroup> groups;
    for (const Side& side : sides) {
      lab::StageGroup& g = groups.emplace_back(lab::StageGroup{side.name, {}});
      for (const sim::StageBound& s : side.stages)
        g.stages.push_back({s.name, ns(s.latency), s.per_second() / 1e6, &s == e.binding});
    }
    const auto written =
        record::write_file(o.svg, lab::draw_stages(design->name + ": " + design->text, groups));
    if (!written) return fault(written.error());
  }
  const double bound = e.binding->per_second() / 1e6;
  if (o.json) {
    record::Record r;
    r.set("design", design->name).set("latency_ns", ns(e.latency)).set("completion_ns", ns(e.completion));
    r.set("binding", e.binding->name).set("bound_mrps", bound);
    for (const Side& side : sides) {
      for (const sim::StageBound& s : side.stages) {
        record::Record one;
        one.set("side", side.name).set("stage", s.name).set("latency_ns", ns(s.latency));
        one.set("bound_mrps", s.per_second() / 1e6).set("binds", &s == e.binding);
        r.append("stages", std::move(one));
      }
    }
    std::cout << r.json();
    return 0;
  }
  std::cout << fmt::format("{}: {}\n\n{:<10}{:<20}{:>14}{:>14}\n", design->name, design->text, "", "stage",
                           "latency", "at most");
  for (const Side& side : sides) {
    const char* name = side.name;
    for (const sim::StageBound& s : side.stages) {
      std::cout << fmt::format("{:<10}{:<20}{:>11.1f} ns{:>9} Mrps {} {}\n", name, s.name, ns(s.latency),
                               s.busy.ps == 0 ? "-" : fmt::format("{:.2f}", s.per_second() / 1e6),
                               &s == e.binding ? "<- binds;" : " ", s.text);
      name = "";
    }
  }
  std::cout << fmt::format(
      "\nidle: {:.3f} us from a post to the receiver's completion, {:.3f} us to the sender's, without the "
      "link's length\n"
      "full: {:.2f} million messages a second, {:.1f} Gb/s of payload, bound by {}\n",
      ns(e.latency) / 1e3, ns(e.completion) / 1e3, bound, bound * 8e-3 * load->bytes, e.binding->name);
  return 0;
}

}  // namespace

void add_nic_explain(CLI::App& nic, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* c =
      nic.add_subcommand("explain", "what a message costs every stage of a design, and which stage binds");
  c->add_option("NAME", o->design, "a built-in design or a TOML file")->required();
  c->add_option("--set", o->changes, "changes of the design: scheduler.wqes=4, pcie.rate=64Gbps")
      ->type_name("CHANGES");
  c->add_option("--op", o->op, "send, write or read");
  c->add_option("--size", o->size, "bytes of a message")->type_name("SIZE");
  c->add_option("--mtu", o->mtu, "path MTU")->type_name("N");
  c->add_option("--rate", o->rate, "of the link")->type_name("RATE");
  c->add_option("--qps", o->queue_pairs, "queue pairs that send")->type_name("N");
  c->add_option("--batch", o->batch, "requests of one doorbell")->type_name("N");
  c->add_option("--depth", o->depth, "requests outstanding on a queue pair")->type_name("N");
  c->add_option("--miss", o->miss, "part of the messages whose context is not on the chip")
      ->type_name("SHARE");
  c->add_option("--svg", o->svg, "draws the stages")->type_name("FILE");
  c->add_flag("-j,--json", o->json, "print JSON instead of a table");
  c->footer(
      "Nothing is simulated: bounds follow from the parts of the design.\n"
      "Examples:\n  weft nic explain srnic --size 512 --qps 128\n  weft nic explain cx6-like --miss 90% "
      "--svg cx6.svg");
  c->callback([o, &exit_code] { exit_code = explain_design(*o); });
}

}  // namespace weft::cli
