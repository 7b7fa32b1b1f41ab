#include "tests/differential/compare.h"

namespace weft::differential {

Acted::Acted(std::uint64_t seed, Against against, const Sabotage& sabotage)
    : plan(against == Against::kNics ? make_slow_calls(seed) : make_calls(seed)),
      nics(against == Against::kNics ? std::make_unique<LiveNics>(plan) : nullptr),
      simulated(plan),
      live(plan) {
  run_simulated(plan.world, simulated);
  tied = nics != nullptr ? !nics->run(live, sabotage) : !run_live(plan.world, live, sabotage);
}

std::string Acted::difference() const {
  const std::string first = Programs::difference(simulated, live);
  return first.empty() && !simulated.same_memory(live) ? "memory differs" : first;
}

Compared compare_calls(std::uint64_t seed, Against against, const Sabotage& sabotage) {
  const Acted acted(seed, against, sabotage);
  Compared c;
  c.tied = acted.tied;
  c.counts = acted.simulated.counts();
  for (std::size_t h = 0; h < 2; ++h) {
    for (const Lane lane : {Lane::kDevice, Lane::kServices})
      c.lines += acted.simulated.logged(h, lane).size();
  }
  if (!c.tied) c.difference = acted.difference();
  return c;
}

}  // namespace weft::differential
