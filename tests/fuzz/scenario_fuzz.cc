// What people write for the simulator: scenarios, topologies, traces and size distributions, from any bytes.
// The first byte says which. Nothing may crash or hang; a refusal is one sentence on one line; and what is
// accepted can be recorded, built and begun.
#include <algorithm>
#include <cstdint>
#include <string>

#include "core/base/check.h"
#include "sim/traffic/sizes.h"
#include "sim/world/simulation.h"

namespace {

using namespace weft;

// What is larger is refused: not because it is wrong, but to look at more inputs in the same time.
constexpr sim::ScenarioLimits kSmall{.hosts = 100, .switches = 100, .flows = 500};

void expect_sentence(const Error& e) {
  CHECK(!e.message.empty());
  CHECK(std::none_of(e.message.begin(), e.message.end(), [](char c) { return c == '\n'; }));
}

bool small(const sim::Scenario& s) {
  std::uint64_t under_way = 0;
  for (const sim::FlowSpec& f : s.flows) under_way += std::uint64_t{f.qps} * f.depth;
  return s.graph.hosts <= 8 && under_way <= 500 && s.derived.traffic_flows <= 100 &&
         s.transport.loss_blocks <= 256;
}

void scenario(const std::string& text) {
  const auto s = sim::parse_scenario(text, "fuzz", {}, kSmall);
  if (!s) return expect_sentence(s.error());
  CHECK(!sim::to_record(*s).json().empty());
  if (!small(*s)) return;
  sim::Scenario begun = *s;
  begun.check = begun.bytes = false;  // observers and real memory are for weft-fabric-swarm
  sim::Simulation run(begun);
  run.run(500);
}

void topology(const std::string& text) {
  const auto t = sim::parse_topology(text, gigabits(100), microseconds(1));
  if (!t) return expect_sentence(t.error());
  if (t->nodes() > 300) return;
  if (const auto valid = t->validate(); !valid) return expect_sentence(valid.error());
  CHECK_OP(sim::reach_of(*t, {}).hops, >=, 2U);
  for (std::uint32_t n = 0; n < t->nodes(); ++n) CHECK_OP(*t->node(t->name(n)), ==, n);
}

void arrivals(const sim::TrafficSpec& spec) {
  const sim::TrafficGround ground{
      .hosts = 10, .rate = gigabits(10), .mtu = 1024, .packet_overhead = 60, .seed = 1};
  const auto made = sim::make_arrivals(spec, ground);
  if (!made) return expect_sentence(made.error());
  sim::Arrival a;
  Time before{};
  for (int i = 0; i < 1000 && (*made)->next(a); ++i) {
    CHECK(a.at >= before);
    CHECK(a.from < 10 && a.to < 10 && a.from != a.to && a.bytes > 0 && a.bytes <= 1ULL << 31U);
    before = a.at;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 4096) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  sim::TrafficSpec spec;
  switch (data[0]) {
    case 'T':
      topology(text);
      break;
    case 'R':
      spec.pattern = "trace";
      spec.trace_text = text;
      arrivals(spec);
      break;
    case 'Z':
      spec.pattern = "permutation";
      spec.sizes_text = text;
      arrivals(spec);
      break;
    default:
      scenario(text);
  }
  return 0;
}
