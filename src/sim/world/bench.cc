#include "sim/world/bench.h"

#include <array>
#include <numeric>

#include "core/base/check.h"

namespace weft::sim {
namespace {

constexpr std::array kRows{
    BenchRow{"incast-127", "127 hosts to one, MTU 1000", 8, 1000, true},
    BenchRow{"permutation-128", "every host to another and from another, MTU 1000", 8, 1000, false},
    BenchRow{"permutation-1024", "the same with 1024 hosts, MTU 1500", 16, 1500, false},
};

}  // namespace

std::span<const BenchRow> bench_rows() { return kRows; }

Scenario bench_scenario(const BenchRow& row) {
  Scenario s;
  s.topology.kind = "fat-tree";
  s.topology.k = row.k;
  s.network.switches.pfc = true;
  s.network.switches.xoff = {64'000};
  s.network.switches.xon = {48'000};
  s.transport.mode = wire::Mode::kRoce;
  s.transport.mtu = row.mtu;
  s.transport.timeout = 0;  // nothing is lost, and queues may be long
  const std::uint32_t hosts = row.k * row.k * row.k / 4;
  FlowSpec f;
  f.size = {kBenchFlowBytes};
  f.count = 1;
  f.depth = 1;
  if (row.incast) {
    for (f.from = 1, f.to = 0; f.from < hosts; ++f.from) s.flows.push_back(f);
  } else {
    // A random cycle through all hosts: each host sends once and receives once, and none sends to itself.
    std::vector<std::uint32_t> order(hosts);
    std::iota(order.begin(), order.end(), 0U);
    Prng random(s.seed);
    for (std::size_t i = hosts; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (std::uint32_t i = 0; i < hosts; ++i) {
      f.from = order[i];
      f.to = order[(i + 1) % hosts];
      s.flows.push_back(f);
    }
  }
  const auto ok = resolve(s);
  CHECK(ok.has_value());
  return s;
}

std::uint64_t bench_data_packets(const Scenario& s) {
  std::uint64_t n = 0;
  for (const FlowSpec& f : s.flows) n += (f.size.n + s.transport.mtu - 1) / s.transport.mtu * f.count * f.qps;
  return n;
}

}  // namespace weft::sim
