#include "cli/sim_list.h"

#include <fmt/format.h>

#include "core/transport/cc/controller.h"
#include "sim/fabric/topology.h"
#include "sim/world/bench.h"
#include "sim/world/scenario.h"

namespace weft::cli {
namespace {

void row(std::string& out, const char* name, const std::string& text) {
  out += fmt::format("  {:<20} {}\n", name, text);
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
  out += "congestion control (core)\n";
  for (const Controller* c : controllers()) row(out, c->name, c->text);
  out += "--bench\n";
  for (const sim::BenchRow& b : sim::bench_rows()) row(out, b.name, b.text);
  return out;
}

}  // namespace weft::cli
