#include "cli/sim_list.h"

#include <fmt/format.h>

#include "sim/fabric/topology.h"
#include "sim/world/bench.h"
#include "sim/world/scenario.h"

namespace weft::cli {
namespace {

void row(std::string& out, const char* name, const std::string& text) {
  out += fmt::format("  {:<21} {}\n", name, text);
}

}  // namespace

std::string sim_list_text() {
  std::string out = "topology.kind\n";
  for (const sim::TopologyRow& t : sim::topologies())
    row(out, t.name, fmt::format("{} [{}]", t.text, t.uses));
  for (const sim::Choice& c : sim::choices()) {
    out += fmt::format("{}\n", c.setting);
    for (const sim::Choice::Word& w : c.words) row(out, w.name, w.text);
  }
  out += "traffic.pattern\n";
  for (const sim::PatternRow& p : sim::pattern_rows())
    row(out, p.name, fmt::format("{} [{}]", p.text, p.uses));
  out += "traffic.sizes\n";
  for (const sim::SizeRow& s : sim::size_rows()) row(out, s.name, sim::size_text(s));
  out += "failure\n";
  row(out, "link, links",
      "a link by its ends (edge0-agg1), or so many between switches, drawn from the seed");
  row(out, "at, repair", "when it fails, and is repaired; network.reconverge later routes know of it");
  out += "--bench\n";
  for (const sim::BenchRow& b : sim::bench_rows()) row(out, b.name, b.text);
  return out;
}

}  // namespace weft::cli
