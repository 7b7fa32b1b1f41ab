// The hold model (hold.h) as a benchmark, over sizes and delay laws; EventHeap alone is the yardstick.
#include <benchmark/benchmark.h>

#include "sim/engine/hold.h"
#include "sim/engine/timeline.h"

namespace weft::sim {
namespace {

void queue_hold(benchmark::State& state, bool mixed) {
  HoldModel model(static_cast<std::uint32_t>(state.range(0)), mixed);
  model.run(300'000);
  for (auto _ : state) benchmark::DoNotOptimize(model.run(1));
}

void heap_hold(benchmark::State& state, bool mixed) {
  EventHeap q;
  Prng prng(1);
  for (std::int64_t i = 0; i < state.range(0); ++i)
    q.push(WakeUp::of(Time{hold_delay_ps(prng, mixed)}, Rank::kUsual, static_cast<std::uint32_t>(i)));
  for (auto _ : state) {
    WakeUp e = q.pop();
    q.push(WakeUp::of(Time{e.at_ps + hold_delay_ps(prng, mixed)}, Rank::kUsual, e.actor()));
    benchmark::DoNotOptimize(e);
  }
}

// The same through Timeline: dispatch to the actor included.
struct Bouncer {
  Bouncer(Timeline& t, Prng& p) : timeline(t), prng(p), id(t.add<&Bouncer::on_wake>(*this)) {}
  void on_wake(Time now) { timeline.wake(id, now + Duration{hold_delay_ps(prng, false)}); }
  Timeline& timeline;
  Prng& prng;
  ActorId id;
};

void timeline_hold(benchmark::State& state) {
  Timeline t;
  Prng prng(1);
  std::vector<Bouncer> actors;
  actors.reserve(static_cast<std::size_t>(state.range(0)));
  for (std::int64_t i = 0; i < state.range(0); ++i) actors.emplace_back(t, prng).on_wake(Time{});
  t.run(kNever, 300'000);
  for (auto _ : state) t.step();
}

BENCHMARK_CAPTURE(queue_hold, near, false)->Arg(64)->Arg(1024)->Arg(8192)->Arg(65536);
BENCHMARK_CAPTURE(queue_hold, mixed, true)->Arg(64)->Arg(1024)->Arg(8192)->Arg(65536);
BENCHMARK_CAPTURE(heap_hold, near, false)->Arg(64)->Arg(1024)->Arg(8192)->Arg(65536);
BENCHMARK_CAPTURE(heap_hold, mixed, true)->Arg(64)->Arg(1024)->Arg(8192)->Arg(65536);
BENCHMARK(timeline_hold)->Arg(64)->Arg(1024)->Arg(8192)->Arg(65536);

}  // namespace
}  // namespace weft::sim

BENCHMARK_MAIN();
