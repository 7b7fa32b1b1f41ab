// weft-both-swarm --seeds N [--start S] [--jobs J]: N random plans of calls (calls.h), each acted out in the
// simulator and by the soft NIC's engine, and compared line by line; with `nics` in front, by whole soft NICs
// (compare.h). weft-both-swarm --show SEED prints what both worlds logged, and where they part.
//
// Exit code 0 all alike; 1 a difference; 2 a bad option.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "core/base/parse.h"
#include "record/output.h"
#include "tests/differential/compare.h"
#include "tests/swarm/jobs.h"

namespace weft::differential {
namespace {

const char* replay(Against against) {
  return against == Against::kNics ? "build/weft-both-swarm nics --show %" : "build/weft-both-swarm --show %";
}
constexpr std::uint64_t kFindingsShown = 20;  // per job

struct Tally {
  std::uint64_t seed;  // being run
  std::uint64_t worlds;
  std::uint64_t findings;
  std::uint64_t lines;
  std::uint64_t tied;
  Party::Counts counts;
};

void run_world(Tally& t, Against against) {
  const Compared c = compare_calls(t.seed, against);
  ++t.worlds;
  t.lines += c.lines;
  t.tied += c.tied ? 1 : 0;
  t.counts += c.counts;
  if (c.difference.empty() || ++t.findings > kFindingsShown) return;
  swarm::say_findings(t.seed, "  " + c.difference + "\n", replay(against));
}

int run(const swarm::Options& o, Against against) {
  const auto begin = std::chrono::steady_clock::now();
  const auto done =
      swarm::run_in_children<Tally>(o, replay(against), [&](Tally& t) { run_world(t, against); });
  if (!done) return 2;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  Tally sum{};
  for (const Tally& t : done->tallies) {
    sum.worlds += t.worlds;
    sum.findings += t.findings;
    sum.lines += t.lines;
    sum.tied += t.tied;
    sum.counts += t.counts;
  }
  std::printf("%llu plans, %.0f a second, %llu not to be compared; a plan has %.0f lines\n",
              static_cast<unsigned long long>(sum.worlds), static_cast<double>(sum.worlds) / elapsed.count(),
              static_cast<unsigned long long>(sum.tied),
              static_cast<double>(sum.lines) / static_cast<double>(std::max<std::uint64_t>(sum.worlds, 1)));
  sum.counts.each([](const char* name, std::uint64_t n) {
    std::printf("  %-12s %llu\n", name, static_cast<unsigned long long>(n));
  });
  return swarm::conclude(sum.worlds, sum.findings, done->crashed, false, "plans");
}

int show(std::uint64_t seed, Against against) {
  const Acted acted(seed, against);
  for (std::size_t h = 0; h < 2; ++h) {
    for (const Lane lane : {Lane::kServices, Lane::kDevice}) {
      const auto& s = acted.simulated.logged(h, lane);
      const auto& l = acted.live.logged(h, lane);
      std::printf("--- host %zu%s\n", h, lane == Lane::kServices ? ", services" : "");
      for (std::size_t i = 0; i < std::max(s.size(), l.size()); ++i) {
        const bool same = i < s.size() && i < l.size() && s[i] == l[i];
        if (i < s.size()) std::printf("%s %s\n", same ? " " : "s", s[i].c_str());
        if (i < l.size() && !same) std::printf("l %s\n", l[i].c_str());
      }
    }
  }
  if (acted.tied) std::printf("two frames came at one instant: not to be compared\n");
  const std::string difference = acted.difference();
  std::printf("%s\n", difference.empty() ? "both worlds are alike" : difference.c_str());
  return difference.empty() ? 0 : 1;
}

int both_swarm_program(std::span<char*> args) {
  if (swarm::helped(
          args, "weft-both-swarm",
          "  --show S    instead: what both worlds logged of seed S, line by line\n"
          "\nEvery plan of calls is acted out in the simulator and by the soft NIC's engine; what differs "
          "is shown.\nExample: weft-both-swarm --seeds 5000 --jobs 2\n"))
    return 0;
  Against against = Against::kShards;
  if (!args.empty() && std::string_view(args[0]) == "nics") {
    against = Against::kNics;
    args = args.subspan(1);
  }
  if (args.size() == 2 && std::string_view(args[0]) == "--show") {
    const auto seed = parse_integer("--show", args[1], 0, UINT64_MAX / 2);
    if (seed) return show(*seed, against);
    std::fprintf(stderr, "weft-both-swarm: %s.\n", seed.error().message.c_str());
    return 2;
  }
  const auto options = swarm::parse_options(args);
  if (!options) {
    std::fprintf(stderr, "weft-both-swarm: %s.\n", options.error().message.c_str());
    return 2;
  }
  return run(*options, against);
}

}  // namespace
}  // namespace weft::differential

int main(int argc, char** argv) {
  return weft::record::run_program("weft-both-swarm", [&] {
    return weft::differential::both_swarm_program({argv + 1, static_cast<std::size_t>(argc - 1)});
  });
}
