#include "cli/nic_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/stopwatch.h"
#include "core/base/parse.h"
#include "sim/world/simulation.h"

namespace weft::cli {
namespace {

constexpr std::uint32_t kUnframed = 20;  // preamble and gap of a packet

double per(double a, double b) { return b == 0 ? 0 : a / b; }

}  // namespace

Result<std::vector<std::uint32_t>> queue_pair_numbers(const std::string& list) {
  std::vector<std::uint32_t> all;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const auto n = parse_integer("--qps", list.substr(at, end - at), 1, 2'000'000);
    if (!n) return tl::unexpected(n.error());
    all.push_back(static_cast<std::uint32_t>(*n));
    at = end + 1;
  }
  return all;
}

Result<NicRun> run_nics(const sim::Design& design, const std::string& name, const std::string& changes,
                        std::uint32_t qps, std::uint64_t messages, std::uint64_t each, const NicLoad& load) {
  const std::string text = fmt::format(
      "hosts = 2\n[network]\nrate = \"100Gbps\"\ndelay = \"10ns\"\n[switch]\npfc = {}\n[transport]\nmode = "
      "\"{}\"\n"
      "mtu = \"{}\"\n[nic]\ndesign = \"{}\"\nset = \"{}\"\n[[flow]]\nop = \"{}\"\nsize = \"{}\"\ndepth = "
      "\"{}\"\n"
      "qps = {}\ncount = {}\n",
      design.mode == wire::Mode::kRoce, wire::mode_name(design.mode), load.mtu, name, changes, load.op,
      load.size, load.depth, qps, std::max(messages / qps, each));
  const auto scenario = sim::parse_scenario(text, name, load.changes);
  if (!scenario) return tl::unexpected(scenario.error());
  if (!scenario->nic.detailed) return fail("NAME: the ideal NIC has nothing to sweep");
  const Stopwatch watch;
  sim::Simulation run(*scenario);
  while (run.run(1U << 20U)) {
  }
  if (!run.complete()) return fail(fmt::format("{}: {} queue pairs were not done in time", name, qps));
  NicRun r;
  r.queue_pairs = qps;
  r.flow = run.results()[0];
  r.run = run.now() - Time{};
  r.packets_per_second = per(static_cast<double>(run.totals().packets_sent), watch.seconds());
  for (std::uint32_t h = 0; h < 2; ++h) r.nics[h] = static_cast<sim::DetailedNic&>(run.nic(h)).counters();
  const auto seconds = static_cast<double>(r.flow.elapsed().ps) / 1e12;
  const sim::NicCounters& a = r.nics[0].payload_sent > r.nics[1].payload_sent ? r.nics[0] : r.nics[1];
  r.wire_gbps = per(static_cast<double>(a.frame_bytes - a.packets_out * kUnframed) * 8e-9, seconds);
  r.mrps = per(static_cast<double>(r.flow.messages) * 1e-6, seconds);
  r.steady_mrps = run.together().per_second() / 1e6;
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

}  // namespace weft::cli
