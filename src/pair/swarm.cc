#include "pair/swarm.h"

#include "pair/plan.h"
#include "pair/workload.h"

namespace weft::pair {
namespace {

constexpr std::array kUnreachable{
    Unreachable{Counter::cq_overflow, "completion queues are as large as everything that may be posted"},
    Unreachable{Counter::drop_malformed, "only a responder that breaks the protocol sends such a response"},
    Unreachable{Counter::stalls,
                "time never stands still here; core/transport/rc/stall_test.cc is about that"},
    Unreachable{Counter::drop_message, "these worlds speak RC"},
    Unreachable{Counter::drop_qkey, "these worlds speak RC"},
    Unreachable{Counter::drop_too_long, "these worlds speak RC"},
    Unreachable{Counter::drop_refused, "these worlds speak RC"},
};

}  // namespace

SeedResult run_seed(std::uint64_t seed, Recorder* recorder) {
  const Plan plan = plan_world(seed);
  World world(plan.world, recorder);
  Workload workload(plan, world);
  world.run(workload);
  if (plan.door_bound.n != 0 && world.deepest_queue(0) > plan.door_bound) {
    world.referee().report().add(world.now(), "path credit",
                                 "%llu bytes waited at host 0's door, the credits allow %llu",
                                 static_cast<unsigned long long>(world.deepest_queue(0).n),
                                 static_cast<unsigned long long>(plan.door_bound.n));
  }
  SeedResult r;
  r.clean = world.referee().report().clean();
  r.findings = world.referee().report().text();
  r.packets = world.packets();
  r.corrupted = world.corrupt_dropped();
  for (std::uint32_t h = 0; h < world.host_count(); ++h) {
    for (std::size_t i = 0; i < kCounterCount; ++i) r.counters[i] += world.host(h).device.counters().get(i);
    for (std::size_t i = 0; i < kCoveredCount; ++i) r.coverage[i] += world.host(h).coverage.get(i);
  }
  return r;
}

std::span<const Unreachable> unreachable_counters() { return kUnreachable; }

}  // namespace weft::pair
