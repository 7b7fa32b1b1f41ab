#include "sim/world/bench.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "core/base/check.h"

namespace weft::sim {
namespace {

constexpr std::array kRows{
    BenchRow{"incast-127", "127 hosts to one, MTU 1000", BenchKind::kIncast, 8, 1000, 3},
    BenchRow{"permutation-128", "every host to another and from another, MTU 1000", BenchKind::kPermutation,
             8, 1000, 3},
    BenchRow{"permutation-1024", "the same with 1024 hosts, MTU 1500", BenchKind::kPermutation, 16, 1500, 3},
    BenchRow{"srnic-16", "SRNIC's Figure 12 with 16 hosts, 100 us of arrivals", BenchKind::kSrnic, 16, 1024,
             3},
    BenchRow{"srnic-256", "the same with 256 hosts", BenchKind::kSrnic, 256, 1024, 3},
    BenchRow{"srnic-1024", "the same with 1024 hosts", BenchKind::kSrnic, 1024, 1024, 3},
    BenchRow{"srnic-4096", "the same with 4096 hosts", BenchKind::kSrnic, 4096, 1024, 1},
};

// experiments/scenarios/srnic-fig12.toml, shorter.
constexpr const char* kSrnicText = R"(
hosts = {}
limit = "1s"
[topology]
kind = "srnic"
core_rate = "400Gbps"
[network]
rate = "100Gbps"
delay = "1us"
[switch]
kind = "output-queued"
buffer = "32MB"
ecn = "step"
ecn_low = "300kB"
[transport]
mode = "srnic"
controller = "dctcp"
mtu = {}
loss_blocks = 256
[[traffic]]
pattern = "poisson"
sizes = "cache-follower-approx"
load = "70%"
duration = "100us"
)";

}  // namespace

std::span<const BenchRow> bench_rows() { return kRows; }

Scenario bench_scenario(const BenchRow& row) {
  if (row.kind == BenchKind::kSrnic) {
    auto drawn = parse_scenario(fmt::format(fmt::runtime(kSrnicText), row.size, row.mtu), row.name, {});
    CHECK(drawn.has_value());
    return std::move(*drawn);
  }
  Scenario s;
  s.topology.kind = "fat-tree";
  s.topology.k = row.size;
  s.network.switches.pfc = true;
  s.network.switches.xoff = {64'000};
  s.network.switches.xon = {48'000};
  s.transport.mode = wire::Mode::kRoce;
  s.transport.mtu = row.mtu;
  s.transport.timeout = 0;  // nothing is lost, and queues may be long
  const std::uint32_t hosts = row.size * row.size * row.size / 4;
  FlowSpec f;
  f.size = {kBenchFlowBytes};
  f.count = 1;
  f.depth = 1;
  if (row.kind == BenchKind::kIncast) {
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

std::optional<std::uint64_t> bench_data_packets(const Scenario& s) {
  if (!s.traffic.empty()) return std::nullopt;
  std::uint64_t n = 0;
  for (const FlowSpec& f : s.flows) n += (f.size.n + s.transport.mtu - 1) / s.transport.mtu * f.count * f.qps;
  return n;
}

}  // namespace weft::sim
