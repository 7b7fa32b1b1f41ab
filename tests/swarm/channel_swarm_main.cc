// weft-channel-swarm --seeds N [--start S] [--jobs J]: N random worlds of channels (channel_world/swarm.h),
// each a pure function of its seed. A world that breaks a rule prints its seed and findings; --show S runs
// one and prints every packet and completion.
//
// Exit code 0 all clean; 1 a finding, or from kEnough worlds on something that none of them reached; 2 a bad
// option.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <span>
#include <string>

#include "channel_world/swarm.h"
#include "record/output.h"
#include "tests/swarm/jobs.h"

namespace weft::channel_world {
namespace {

constexpr std::uint64_t kEnough = 300;
constexpr std::uint64_t kFindingsShown = 20;  // per job
constexpr const char* kReplay = "build/weft-channel-swarm --show %";

// What the worlds reached.
struct Reached {
  std::uint64_t SeedResult::*field;
  const char* name;
};
constexpr Reached kReached[] = {
    {&SeedResult::messages, "messages"},
    {&SeedResult::packets, "packets"},
    {&SeedResult::large, "large messages"},
    {&SeedResult::reconnects, "reconnections"},
    {&SeedResult::early, "early ACKs"},
    {&SeedResult::nops, "NOPs"},
    {&SeedResult::probes, "probes"},
    {&SeedResult::reused, "queue pairs used again"},
    {&SeedResult::unknown, "messages told unknown"},
    {&SeedResult::traced, "messages with stamps"},
    {&SeedResult::crashes, "programs that ended"},
    {&SeedResult::moves, "changes of the carrier"},
    {&SeedResult::frames, "frames over streams"},
    {&SeedResult::shared, "worlds that share receives"},
    {&SeedResult::used_up, "shared receives used up"},
    {&SeedResult::not_ready, "frames without a receive"},
};

struct Tally {
  std::uint64_t seed;
  std::uint64_t worlds;
  std::uint64_t findings;
  std::uint64_t reached[std::size(kReached)];
};

void run_world(Tally& t) {
  const SeedResult r = run_seed(t.seed);
  ++t.worlds;
  for (std::size_t i = 0; i < std::size(kReached); ++i) t.reached[i] += r.*kReached[i].field;
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
    for (std::size_t i = 0; i < std::size(kReached); ++i) sum.reached[i] += t.reached[i];
  }
  std::printf("%llu worlds, %.0f worlds/s\n", static_cast<unsigned long long>(sum.worlds),
              static_cast<double>(sum.worlds) / elapsed.count());
  bool missed = false;
  for (std::size_t i = 0; i < std::size(kReached); ++i) {
    std::printf("  %-24s %12llu%s\n", kReached[i].name, static_cast<unsigned long long>(sum.reached[i]),
                sum.reached[i] == 0 ? "  <- never" : "");
    missed = missed || sum.reached[i] == 0;
  }
  return swarm::conclude(sum.worlds, sum.findings, done->crashed, missed && o.seeds >= kEnough);
}

int show(std::uint64_t seed) {
  pair::Recorder recorder(&std::cout, nullptr);
  const SeedResult r = run_seed(seed, &recorder);
  std::cout << r.findings;
  return r.clean ? 0 : 1;
}

int program(std::span<char*> args) {
  if (swarm::helped(args, "weft-channel-swarm",
                    "\n--show SEED runs one world and prints every packet.\n"
                    "Example: weft-channel-swarm --seeds 2000 --jobs 2\n"))
    return 0;
  if (args.size() == 2 && std::strcmp(args[0], "--show") == 0) {
    char seed[] = "--start";
    char* as_start[] = {seed, args[1]};
    const auto options = swarm::parse_options(as_start);
    if (options) return show(options->start);
  }
  const auto options = swarm::parse_options(args);
  if (!options) {
    std::fprintf(stderr, "weft-channel-swarm: %s.\n", options.error().message.c_str());
    return 2;
  }
  return run(*options);
}

}  // namespace
}  // namespace weft::channel_world

int main(int argc, char** argv) {
  return weft::record::run_program("weft-channel-swarm", [&] {
    return weft::channel_world::program({argv + 1, static_cast<std::size_t>(argc - 1)});
  });
}
