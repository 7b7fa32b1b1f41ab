#include "channel_tools/options.h"

#include <arpa/inet.h>

#include <CLI/CLI.hpp>

namespace weft::tools {
namespace {

// Peers are compared as they are written: what is no address would deny nobody.
std::string address_or_why(const std::string& text) {
  in_addr in{};
  if (inet_pton(AF_INET, text.c_str(), &in) == 1) return "";
  return "'" + text + "': it must be an IPv4 address, as 10.0.0.7; name each host";
}

void add_common(CLI::App& app, BothOptions& c) {
  app.add_flag("-j,--json", c.as_json, "one JSON object");
  CLI::Option* const serve = app.add_flag("--serve", c.serve, "be the far end, until interrupted");
  app.add_option("--for", c.agent.seconds, "with --serve: end after so many seconds")
      ->needs(serve)
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 1e7));
  app.add_option("--deny", c.agent.deny, "with --serve: addresses that may not open channels")
      ->needs(serve)
      ->type_name("ADDRESS")
      ->check(address_or_why)
      ->allow_extra_args(false);
  app.add_option("--service", c.agent.service, "number of the service at the far end")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("-d,--device", c.device, "RDMA device; the first one if none is named")->type_name("NAME");
  app.add_option("--set", c.parameters, "a parameter of the context, NAME=VALUE (docs/guide/messaging.md)")
      ->type_name("")
      ->allow_extra_args(false);
}

}  // namespace

CLI::App* add_ping_options(CLI::App& app, PingOptions& o) {
  CLI::App* ping = app.add_subcommand("ping", "Ping hosts over channels, or every host from every other");
  ping->add_option("host", o.hosts, "addresses; each runs weft ping --serve")->type_name("");
  ping->add_option("--mesh", o.mesh, "a file with the addresses of a full mesh")->type_name("FILE");
  ping->add_option("--svg", o.svg, "draw the matrix there, too")->type_name("FILE");
  ping->add_option("-c,--count", o.plan.count, "pings to each")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1U, kMostPings));
  ping->add_option("-i,--interval", o.interval_ms, "between pings to one host")
      ->type_name("MS")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 10'000.0));
  ping->add_option("-W,--timeout", o.timeout_ms, "before a ping is lost")
      ->type_name("MS")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 10'000.0));
  ping->add_option("--max", o.max_us, "exit code 3 if a mean is above")
      ->type_name("US")
      ->check(CLI::Range(0.0, 1e9));
  add_common(*ping, o.common);
  ping->footer(
      "Without a fault the exit code is 0; 1: a host does not answer, or loses pings; 3: --max was "
      "missed.\n\n"
      "Examples, each --serve in a terminal of its own:\n"
      "  weft ping --addr 127.0.0.2 --serve\n"
      "  weft ping --addr 127.0.0.1 127.0.0.2\n"
      "  weft ping --addr 127.0.0.1 --mesh hosts --svg mesh.svg");
  return ping;
}

CLI::App* add_perf_options(CLI::App& app, PerfOptions& o) {
  CLI::App* perf =
      app.add_subcommand("perf", "Measure latency, bandwidth and rate of requests over channels");
  perf->add_option("host", o.plan.host, "the address of weft perf --serve")->type_name("");
  perf->add_option("-s,--size", o.size, "bytes of a request")->type_name("SIZE")->capture_default_str();
  perf->add_option("--sizes", o.sizes,
                   "draw them: a distribution of weft sim --list, or a file like data/cdf")
      ->type_name("NAME");
  perf->add_option("-q,--channels", o.plan.channels, "channels")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1U, 16'384U));
  CLI::Option* const closed =
      perf->add_option("-t,--outstanding", o.plan.outstanding, "requests under way on each, in a closed loop")
          ->type_name("N")
          ->capture_default_str()
          ->check(CLI::Range(1U, 64U));
  perf->add_option("--rate", o.plan.rate, "an open loop: requests a second, Poisson")
      ->type_name("N")
      ->check(CLI::Range(0.001, 1e8))
      ->excludes(closed);
  perf->add_option("--elephants", o.plan.elephants, "so many of a hundred channels send large requests")
      ->type_name("PERCENT")
      ->check(CLI::Range(0U, 100U));
  perf->add_option("--elephant-size", o.elephant, "bytes of those")->type_name("SIZE")->capture_default_str();
  perf->add_option("-D,--duration", o.plan.seconds, "seconds that count")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(0.05, 86'400.0));
  perf->add_option("--seed", o.plan.seed, "of sizes and arrivals")->type_name("N")->capture_default_str();
  perf->add_option("--max-p99", o.max_p99, "exit code 3 if the 99th percentile (of the mice) is above")
      ->type_name("US")
      ->check(CLI::Range(0.0, 1e9));
  perf->add_option("--min-gbps", o.min_gbps, "exit code 3 if all flows together are below")
      ->type_name("G")
      ->check(CLI::Range(0.0, 1e6));
  add_common(*perf, o.common);
  perf->footer(
      "A request is answered by an empty response; its time is that of a program, from its beginning to the "
      "response.\n\n"
      "Examples, each --serve in a terminal of its own:\n"
      "  weft perf --addr 127.0.0.2 --serve\n"
      "  weft perf --addr 127.0.0.1 127.0.0.2\n"
      "  weft perf --addr 127.0.0.1 127.0.0.2 -q 100 --rate 20000 --sizes google-rpc\n"
      "  weft perf --addr 127.0.0.1 127.0.0.2 -q 10 --elephants 20");
  return perf;
}

}  // namespace weft::tools
