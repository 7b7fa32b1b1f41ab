// The program behind `weft ping` and `weft perf`: it is linked against libibverbs as any program is, so it
// runs over hardware, and over the soft NIC under `weft run` or with --addr, which `weft` itself sees to.
//
// Exit codes: 0 fine; 1 a host does not answer as it should, or it could not be done; 2 wrong usage; 3 a
// threshold was missed.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "channel_tools/agent.h"
#include "channel_tools/options.h"
#include "channel_tools/perf.h"
#include "channel_tools/ping.h"
#include "core/base/parse.h"
#include "record/input.h"
#include "record/output.h"

namespace weft::tools {
namespace {

int say(int code, const std::string& why) {
  std::cerr << "weft: " << why << ".\n";
  return code;
}

Result<std::unique_ptr<Session>> open(const BothOptions& c, std::vector<std::string> parameters) {
  parameters.insert(parameters.end(), c.parameters.begin(), c.parameters.end());
  return Session::open(c.device, parameters);
}

int be_served(const BothOptions& c) {
  const auto session = open(c, {"channels=2048"});
  if (!session) return say(2, session.error().message);
  const auto done = serve(**session, c.agent);
  return done ? 0 : say(1, done.error().message);
}

int run_ping(PingOptions& o) {
  if (o.common.serve) return be_served(o.common);
  std::vector<std::string> hosts = o.hosts;
  if (!o.mesh.empty()) {
    if (!hosts.empty()) return say(2, "name hosts or --mesh, not both");
    const auto text = record::read_file(o.mesh);
    if (!text) return say(2, text.error().message);
    auto read = read_hosts(o.mesh, *text);
    if (!read) return say(2, read.error().message);
    hosts = std::move(*read);
  }
  if (const auto sound = check_hosts(hosts); !sound)
    return say(2, sound.error().message + "; see weft ping --help");
  o.plan.service = o.common.agent.service;
  o.plan.interval_us = static_cast<std::uint32_t>(o.interval_ms * 1000);
  o.plan.timeout_us = static_cast<std::uint32_t>(o.timeout_ms * 1000);
  const auto session = open(o.common, {"channels=512", "connect_ms=2000"});
  if (!session) return say(2, session.error().message);
  const Matrix m = o.mesh.empty() ? ping_row(**session, hosts, o.plan) : ping_mesh(**session, hosts, o.plan);
  if (!o.svg.empty()) {
    if (const auto written = record::write_file(o.svg, svg(m)); !written)
      return say(1, written.error().message);
  }
  std::cout << (o.common.as_json ? json_text(m) + "\n"
                : o.mesh.empty() ? row_text(m)
                                 : text(m, isatty(1) != 0));
  bool missed = false;
  for (const Cell& c : m.cells) {
    missed = missed || (o.max_us > 0 && c.received != 0 && static_cast<double>(c.mean_ns) > o.max_us * 1e3);
    if (c.state != Cell::State::kSelf && !(o.mesh.empty() && c.state == Cell::State::kUnknown) && !c.well())
      return 1;
  }
  return missed ? 3 : 0;
}

// A distribution by its name in data/cdf, or a file like those.
Result<sim::SizeDistribution> sizes_of(const std::string& name) {
  for (const sim::SizeRow& row : sim::size_rows()) {
    if (name == row.name) return sim::SizeDistribution::parse(name, row.points);
  }
  const auto text = record::read_file(name);
  if (!text) return fail("--sizes " + text.error().message + ", and no distribution has that name");
  return sim::SizeDistribution::parse(name, *text);
}

int run_perf(PerfOptions& o) {
  if (o.common.serve) return be_served(o.common);
  if (const auto sound = check_hosts({o.plan.host}); !sound)
    return say(2, sound.error().message + "; see weft perf --help");
  const auto size = parse_size("--size", o.size);
  const auto elephant = parse_size("--elephant-size", o.elephant);
  if (!size) return say(2, size.error().message);
  if (!elephant) return say(2, elephant.error().message);
  o.plan.elephant = elephant->n;
  o.plan.sizes = sim::SizeDistribution::fixed(*size);
  if (!o.sizes.empty()) {
    auto read = sizes_of(o.sizes);
    if (!read) return say(2, read.error().message);
    o.plan.sizes = std::move(*read);
  }
  const std::uint64_t longest = std::max(o.plan.sizes.largest(), o.plan.elephants != 0 ? o.plan.elephant : 0);
  if (longest == 0 || longest > 64U << 20U)
    return say(2,
               "a request of " + std::to_string(longest) + " bytes: it must lie between 1 byte and 64 MiB");
  if (o.plan.rate > 0 && o.plan.elephants == 100)
    return say(2, "--rate is the mice's, and with --elephants 100 there are none");
  if (o.plan.elephants != 0 && o.plan.channels * o.plan.elephants < 100)
    return say(2, "--elephants " + std::to_string(o.plan.elephants) + " of " +
                      std::to_string(o.plan.channels) + " channels are none: ask for -q " +
                      std::to_string((99 + o.plan.elephants) / o.plan.elephants) + " or more");
  o.plan.service = o.common.agent.service;
  const auto session =
      open(o.common, {"channels=" + std::to_string(o.plan.channels), "calls=65536", "connect_ms=5000"});
  if (!session) return say(2, session.error().message);
  const auto result = perf(**session, o.plan);
  if (!result) return say(1, result.error().message);
  std::cout << (o.common.as_json ? json_text(o.plan, *result) + "\n" : text(*result));
  double bits = 0;
  std::uint64_t worst = 0;
  for (const FlowResult& f : result->flows) bits += static_cast<double>(f.bytes) * 8;
  worst = result->flows[0].times.percentile(990'000);
  if (result->failed != 0 || result->unfinished != 0) return 1;
  const bool late = o.max_p99 > 0 && static_cast<double>(worst) > o.max_p99 * 1e3;
  const bool little = o.min_gbps > 0 && bits / result->seconds / 1e9 < o.min_gbps;
  return late || little ? 3 : 0;
}

int work(int count, char** words) {
  CLI::App app{"Tools above channels: weft ping, weft perf", "weft"};
  app.require_subcommand(1);
  int exit_code = 0;
  PingOptions ping;
  PerfOptions perf;
  add_ping_options(app, ping)->callback([&] { exit_code = run_ping(ping); });
  add_perf_options(app, perf)->callback([&] { exit_code = run_perf(perf); });
  try {
    app.parse(count, words);
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted);
  } catch (const CLI::ParseError& wrong) {
    std::string why = wrong.what();
    while (!why.empty() && (why.back() == '\n' || why.back() == '.')) why.pop_back();
    std::replace(why.begin(), why.end(), '\n', ' ');
    return say(2, why);
  }
  return exit_code;
}

}  // namespace
}  // namespace weft::tools

int main(int count, char** words) {
  return weft::record::run_program("weft", [=] { return weft::tools::work(count, words); });
}
