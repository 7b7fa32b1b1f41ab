// weft-fabric-swarm --seeds N [--start S] [--jobs J]: N random scenarios in random fabrics (fabric_plan.h),
// each a pure function of its seed, with real bytes under the observers of src/check and the audit of
// sim/world. weft-fabric-swarm --print SEED writes one as a file for `weft sim`.
//
// At the end: worlds per second, packets per world, and how often each thing that fabrics do to packets was
// reached. From kEnough worlds on, one that was never reached is a failure.
//
// Exit code 0 all clean; 1 a finding; 2 a bad option.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "core/base/parse.h"
#include "record/output.h"
#include "sim/world/simulation.h"
#include "tests/swarm/fabric_plan.h"
#include "tests/swarm/jobs.h"

namespace weft::swarm {
namespace {

constexpr std::uint64_t kEnough = 1000;
constexpr std::uint64_t kFindingsShown = 50;  // per job
constexpr const char* kReplay =
    "build/weft-fabric-swarm --print % > seed%.toml && build/weft sim seed%.toml --trace seed%.pcapng";

// X(name, sentence)
#define WEFT_REACHED(X)                                                        \
  X(roce, "worlds of mode roce")                                               \
  X(irn, "worlds of mode irn")                                                 \
  X(srnic, "worlds of mode srnic")                                             \
  X(controlled, "worlds with a congestion controller")                         \
  X(sprayed, "worlds whose packets were sprayed")                              \
  X(messages, "messages that succeeded")                                       \
  X(failed, "messages that failed because the network lost too much")          \
  X(retransmitted, "packets sent again")                                       \
  X(recoveries, "loss recoveries")                                             \
  X(timeouts, "retransmission time-outs")                                      \
  X(lost, "packets lost on a link")                                            \
  X(corrupted, "packets corrupted")                                            \
  X(duplicated, "packets duplicated")                                          \
  X(queue_drops, "packets dropped by full queues")                             \
  X(pauses, "times PFC stopped a port")                                        \
  X(pauses_of_hosts, "of those, ports of hosts")                               \
  X(credit_waits, "worlds whose ports waited for credit")                      \
  X(failed_links, "packets lost on failed links")                              \
  X(no_route, "packets without a way left")                                    \
  X(rerouted, "worlds without a failed message in spite of a link that fails") \
  X(marked, "packets marked for congestion")                                   \
  X(boxes, "worlds with boxes")                                                \
  X(held, "packets that boxes held")                                           \
  X(resent, "of those, sent over the line again")                              \
  X(swallowed, "acknowledgements that ended in boxes")                         \
  X(full_boxes, "packets that found no room in a box")

enum class Reached : std::size_t {
#define WEFT_X(name, text) name,
  WEFT_REACHED(WEFT_X)
#undef WEFT_X
      kCount
};
constexpr std::array<std::array<const char*, 2>, static_cast<std::size_t>(Reached::kCount)> kReached{{
#define WEFT_X(name, text) {#name, text},
    WEFT_REACHED(WEFT_X)
#undef WEFT_X
}};

struct Tally {
  std::uint64_t seed;  // being run
  std::uint64_t worlds;
  std::uint64_t findings;
  std::uint64_t packets;
  std::array<std::uint64_t, kReached.size()> reached;
};

void tally(Tally& t, const sim::Scenario& s, const sim::Simulation& run) {
  const auto add = [&](Reached what, std::uint64_t n) { t.reached[static_cast<std::size_t>(what)] += n; };
  const sim::Totals n = run.totals();
  t.packets += n.packets_sent;
  add(Reached::roce, s.transport.mode == wire::Mode::kRoce ? 1 : 0);
  add(Reached::irn, s.transport.mode == wire::Mode::kIrn ? 1 : 0);
  add(Reached::srnic, s.transport.mode == wire::Mode::kSrnic ? 1 : 0);
  add(Reached::controlled, s.transport.controller != 0 ? 1 : 0);
  add(Reached::sprayed, s.network.routing == sim::Routing::kSpray ? 1 : 0);
  std::uint64_t failed = 0;
  for (const sim::FlowResult& f : run.results()) {
    add(Reached::messages, f.messages);
    failed += f.failed;
  }
  for (const sim::FlowStatistics& f : run.traffic()) {
    add(Reached::messages, f.done());
    failed += f.failed();
  }
  add(Reached::failed, failed);
  add(Reached::retransmitted, n.retransmitted);
  add(Reached::recoveries, n.recoveries);
  add(Reached::timeouts, n.timeouts);
  add(Reached::lost, n.lost);
  add(Reached::corrupted, n.corrupted);
  add(Reached::queue_drops, n.queue_drops);
  add(Reached::pauses, n.pauses);
  add(Reached::marked, n.marked);
  add(Reached::credit_waits, n.credit_wait.ps != 0 ? 1 : 0);
  add(Reached::failed_links, n.failed_links);
  add(Reached::no_route, n.no_route);
  add(Reached::rerouted, n.failed_links != 0 && failed == 0 ? 1 : 0);
  add(Reached::boxes, run.boxes().empty() ? 0 : 1);
  for (const auto& node : run.boxes()) {
    const wan::BoxCounters& c = node->box().counters();
    add(Reached::held, c.get(wan::BoxCounter::taken));
    add(Reached::resent, c.get(wan::BoxCounter::line_resent));
    add(Reached::swallowed, c.get(wan::BoxCounter::swallowed));
    add(Reached::full_boxes, c.get(wan::BoxCounter::drop_full) + c.get(wan::BoxCounter::drop_line_full));
  }
  const auto& links = s.graph.links;
  for (std::size_t i = 0; i < run.network().ports().size(); ++i) {
    const sim::Port& p = run.network().ports()[i];
    add(Reached::duplicated, p.wire_counters().duplicated);
    const std::uint32_t to = i % 2 == 0 ? links[i / 2].b : links[i / 2].a;
    if (to < s.graph.hosts) add(Reached::pauses_of_hosts, p.counters().pauses_sent);
  }
}

std::string findings_of(Tally& t) {
  const std::string text = plan_fabric(t.seed);
  const auto scenario = sim::parse_scenario(text, "seed " + std::to_string(t.seed), {});
  if (!scenario) return "  refused: " + scenario.error().message + "\n";
  sim::Simulation run(*scenario);
  while (run.run(UINT64_MAX)) {
  }
  tally(t, *scenario, run);
  std::string found = run.findings()->text();
  if (!run.complete()) found += "  the limit of virtual time came before every flow was done\n";
  return found;
}

void run_world(Tally& t) {
  const std::string found = findings_of(t);
  ++t.worlds;
  if (found.empty() || ++t.findings > kFindingsShown) return;
  say_findings(t.seed, found, kReplay);
}

int summarise(const Options& o, std::span<const Tally> tallies, double seconds, bool crashed) {
  Tally sum{};
  for (const Tally& t : tallies) {
    sum.worlds += t.worlds;
    sum.findings += t.findings;
    sum.packets += t.packets;
    for (std::size_t i = 0; i < kReached.size(); ++i) sum.reached[i] += t.reached[i];
  }
  const double worlds = static_cast<double>(std::max<std::uint64_t>(sum.worlds, 1));
  std::printf("%llu fabrics, %.0f a second; per fabric %.0f packets\n",
              static_cast<unsigned long long>(sum.worlds), worlds / seconds,
              static_cast<double>(sum.packets) / worlds);
  bool missed = false;
  for (std::size_t i = 0; i < kReached.size(); ++i) {
    std::printf("  %-22s %12llu  %s%s\n", kReached[i][0], static_cast<unsigned long long>(sum.reached[i]),
                kReached[i][1], sum.reached[i] == 0 ? "  <- never reached" : "");
    missed = missed || sum.reached[i] == 0;
  }
  return conclude(sum.worlds, sum.findings, crashed, missed && o.seeds >= kEnough, "fabrics");
}

int run(const Options& o) {
  const auto begin = std::chrono::steady_clock::now();
  const auto done = run_in_children<Tally>(o, kReplay, run_world);
  if (!done) return 2;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return summarise(o, done->tallies, elapsed.count(), done->crashed);
}

int refuse(const std::string& why) {
  std::fprintf(stderr, "weft-fabric-swarm: %s.\n", why.c_str());
  return 2;
}

}  // namespace
}  // namespace weft::swarm

namespace {

int swarm_program(std::span<char*> args) {
  using namespace weft;
  if (args.size() == 2 && std::string_view(args[0]) == "--print") {
    const auto seed = parse_integer("--print", args[1], 0, UINT64_MAX / 2);
    if (!seed) return swarm::refuse(seed.error().message);
    std::fputs(swarm::plan_fabric(*seed).c_str(), stdout);
    return 0;
  }
  if (swarm::helped(args, "weft-fabric-swarm",
                    "  --print S   only write the scenario of seed S, for `weft sim`\n"
                    "\nFrom 1000 worlds on, what none of them reached is a failure, too.\n"
                    "Example: weft-fabric-swarm --seeds 1000 --jobs 2\n"))
    return 0;
  const auto options = swarm::parse_options(args);
  return options ? swarm::run(*options) : swarm::refuse(options.error().message);
}

}  // namespace

int main(int argc, char** argv) {
  return weft::record::run_program("weft-fabric-swarm", [&] {
    return swarm_program({argv + 1, static_cast<std::size_t>(argc - 1)});
  });
}
