// weft-line-swarm --seeds N [--start S] [--jobs J]: N random worlds with a pair of boxes between their sites
// (pair/line_swarm.h), each a pure function of its seed, under the observers of src/check.
//
// At the end: worlds per second, packets per world, and how often each of the boxes' counters was reached.
// From kEnough worlds on, one that was never reached is a failure.
//
// Exit code 0 all clean; 1 a finding; 2 a bad option.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>

#include "pair/line_swarm.h"
#include "record/output.h"
#include "tests/swarm/jobs.h"

namespace weft::pair {
namespace {

constexpr std::uint64_t kEnough = 1000;
constexpr const char* kReplay = "build/weft replay --line %";
constexpr std::uint64_t kFindingsShown = 50;  // per job

struct Tally {
  std::uint64_t seed;  // being run
  std::uint64_t worlds;
  std::uint64_t findings;
  std::uint64_t packets;
  std::array<std::uint64_t, wan::kBoxCounterCount> counters;
};

// Reached too seldom to be asked for: nobody refuses or forges anything here, and nobody goes away on
// purpose.
constexpr wan::BoxCounter kElsewhere[] = {wan::BoxCounter::failed, wan::BoxCounter::orphaned,
                                          wan::BoxCounter::declined, wan::BoxCounter::drained_for_read,
                                          wan::BoxCounter::restored_wrong};

void run_world(Tally& t) {
  const LineResult r = run_line_seed(t.seed);
  ++t.worlds;
  t.packets += r.packets;
  for (std::size_t c = 0; c < r.counters.size(); ++c) t.counters[c] += r.counters[c];
  if (r.clean || ++t.findings > kFindingsShown) return;
  swarm::say_findings(t.seed, r.findings, kReplay);
}

int run(const swarm::Options& o) {
  const auto begin = std::chrono::steady_clock::now();
  const auto done = swarm::run_in_children<Tally>(o, kReplay, run_world);
  if (!done) return 2;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  Tally sum{};
  for (const Tally& t : done->tallies) {
    sum.worlds += t.worlds;
    sum.findings += t.findings;
    sum.packets += t.packets;
    for (std::size_t c = 0; c < t.counters.size(); ++c) sum.counters[c] += t.counters[c];
  }
  const double worlds = static_cast<double>(std::max<std::uint64_t>(sum.worlds, 1));
  std::printf("%llu worlds, %.0f worlds/s; per world %.0f packets\n",
              static_cast<unsigned long long>(sum.worlds), worlds / elapsed.count(),
              static_cast<double>(sum.packets) / worlds);
  bool missed = false;
  for (std::size_t c = 0; c < sum.counters.size(); ++c) {
    const bool elsewhere = std::find(std::begin(kElsewhere), std::end(kElsewhere),
                                     static_cast<wan::BoxCounter>(c)) != std::end(kElsewhere);
    const bool never = sum.counters[c] == 0 && !elsewhere;
    std::printf("  %-18s %12llu  %s%s\n", wan::kBoxCounterInfo[c].name,
                static_cast<unsigned long long>(sum.counters[c]), wan::kBoxCounterInfo[c].text,
                never ? "  <- never reached" : "");
    missed = missed || never;
  }
  return swarm::conclude(sum.worlds, sum.findings, done->crashed, missed && o.seeds >= kEnough);
}

int line_swarm_program(std::span<char*> args) {
  if (swarm::helped(
          args, "weft-line-swarm",
          "\nA world that breaks a rule prints its seed; `build/weft replay --line SEED` shows it packet by "
          "packet.\nExample: weft-line-swarm --seeds 2000 --jobs 2\n"))
    return 0;
  const auto options = swarm::parse_options(args);
  if (!options) {
    std::fprintf(stderr, "weft-line-swarm: %s.\n", options.error().message.c_str());
    return 2;
  }
  return run(*options);
}

}  // namespace
}  // namespace weft::pair

int main(int argc, char** argv) {
  return weft::record::run_program("weft-line-swarm", [&] {
    return weft::pair::line_swarm_program({argv + 1, static_cast<std::size_t>(argc - 1)});
  });
}
