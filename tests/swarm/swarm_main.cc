// weft-swarm --seeds N [--start S] [--jobs J]: N random worlds, each a pure function of its seed, under the
// observers of src/check.
//
// A world that breaks a rule prints its seed, the findings and the command that replays it.
//
// At the end: worlds per second, packets and recoveries per world, and how often each of the Device's
// counters and each row of pair/coverage.h was reached. From kEnough worlds on, one that was never reached is
// a failure: something that the transport does is not being tested.
//
// Exit code 0 all clean; 1 a finding; 2 a bad option.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>

#include "pair/swarm.h"
#include "record/output.h"
#include "tests/swarm/jobs.h"

namespace weft::pair {
namespace {

constexpr std::uint64_t kEnough = 1000;  // the rarest come a few times in so many worlds
constexpr const char* kReplay = "build/weft replay % --trace seed.pcapng";
constexpr std::uint64_t kFindingsShown = 50;  // per job

using swarm::Options;

// One per job, in memory shared with the parent.
struct Tally {
  std::uint64_t seed;  // being run
  std::uint64_t worlds;
  std::uint64_t findings;
  std::uint64_t packets;
  std::array<std::uint64_t, kCounterCount> counters;
  std::array<std::uint64_t, kCoveredCount> coverage;
};

void run_world(Tally& t) {
  const SeedResult r = run_seed(t.seed);
  ++t.worlds;
  t.packets += r.packets;
  for (std::size_t c = 0; c < kCounterCount; ++c) t.counters[c] += r.counters[c];
  for (std::size_t m = 0; m < kCoveredCount; ++m) t.coverage[m] += r.coverage[m];
  if (r.clean || ++t.findings > kFindingsShown) return;
  swarm::say_findings(t.seed, r.findings, kReplay);
}

bool reachable(std::size_t counter) {
  for (const Unreachable& u : unreachable_counters()) {
    if (static_cast<std::size_t>(u.counter) == counter) return false;
  }
  return true;
}

int summarise(const Options& o, std::span<const Tally> tallies, double seconds, bool crashed) {
  Tally sum{};
  for (const Tally& t : tallies) {
    sum.worlds += t.worlds;
    sum.findings += t.findings;
    sum.packets += t.packets;
    for (std::size_t c = 0; c < kCounterCount; ++c) sum.counters[c] += t.counters[c];
    for (std::size_t m = 0; m < kCoveredCount; ++m) sum.coverage[m] += t.coverage[m];
  }
  const double worlds = static_cast<double>(std::max<std::uint64_t>(sum.worlds, 1));
  const auto per_world = [&](std::uint64_t n) { return static_cast<double>(n) / worlds; };
  const auto counter = [&](Counter c) { return sum.counters[static_cast<std::size_t>(c)]; };
  std::printf("%llu worlds, %.0f worlds/s; per world %.0f packets, %.1f recoveries, %.2f time-outs\n",
              static_cast<unsigned long long>(sum.worlds), worlds / seconds, per_world(sum.packets),
              per_world(counter(Counter::recoveries)),
              per_world(counter(Counter::timeout_low) + counter(Counter::timeout_high)));
  bool missed = false;
  for (std::size_t c = 0; c < kCounterCount; ++c) {
    const bool never = sum.counters[c] == 0 && reachable(c);
    std::printf("  %-22s %12llu  %s%s\n", kCounterInfo[c].name,
                static_cast<unsigned long long>(sum.counters[c]), kCounterInfo[c].text,
                never ? "  <- never reached" : "");
    missed = missed || never;
  }
  for (std::size_t m = 0; m < kCoveredCount; ++m) {
    std::printf("  %-22s %12llu  %s%s\n", kCoveredInfo[m].name,
                static_cast<unsigned long long>(sum.coverage[m]), kCoveredInfo[m].text,
                sum.coverage[m] == 0 ? "  <- never seen" : "");
    missed = missed || sum.coverage[m] == 0;
  }
  for (const Unreachable& u : unreachable_counters()) {
    std::printf("  not expected: %s, because %s\n", kCounterInfo[static_cast<std::size_t>(u.counter)].name,
                u.reason);
  }
  return swarm::conclude(sum.worlds, sum.findings, crashed, missed && o.seeds >= kEnough);
}

int run(const Options& o) {
  const auto begin = std::chrono::steady_clock::now();
  const auto done = swarm::run_in_children<Tally>(o, kReplay, run_world);
  if (!done) return 2;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return summarise(o, done->tallies, elapsed.count(), done->crashed);
}

}  // namespace
}  // namespace weft::pair

namespace {

int swarm_program(std::span<char*> args) {
  if (weft::swarm::helped(args, "weft-swarm",
                          "\nA world that breaks a rule prints its seed; `build/weft replay SEED` shows it "
                          "packet by packet.\n"
                          "From 1000 worlds on, what none of them reached is a failure, too.\n"
                          "Example: weft-swarm --seeds 5000 --jobs 2\n"))
    return 0;
  const auto options = weft::swarm::parse_options(args);
  if (!options) {
    std::fprintf(stderr, "weft-swarm: %s.\n", options.error().message.c_str());
    return 2;
  }
  return weft::pair::run(*options);
}

}  // namespace

int main(int argc, char** argv) {
  return weft::record::run_program("weft-swarm", [&] {
    return swarm_program({argv + 1, static_cast<std::size_t>(argc - 1)});
  });
}
