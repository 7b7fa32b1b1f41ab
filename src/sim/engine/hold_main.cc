// The hold model: a queue of n events, pop the earliest, push one at a random delay, for ever. The
// classic measure of a simulator's event queue (Vaucher and Duval 1975), and a calibration figure of
// the machine: run it beside any simulator benchmark that is compared across machines.
//
// Two delay laws: `near` is what a fabric does (one hop: 1 to 1.1 us), `mixed` sends one push in
// sixteen 100 us ahead, like retransmission timers. EventHeap alone is the yardstick.
#include <benchmark/benchmark.h>

#include "core/base/prng.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/timeline.h"

namespace weft::sim {
namespace {

std::int64_t delay(Prng& prng, bool mixed) {
  const std::uint64_t draw = prng.next();
  const auto hop = static_cast<std::int64_t>(1'000'000U + (draw & 0x1'FFFFU));
  return mixed && (draw >> 60U) == 0 ? 100'000'000 + hop : hop;
}

void queue_hold(benchmark::State& state, bool mixed) {
  EventQueue q;
  Prng prng(1);
  for (std::int64_t i = 0; i < state.range(0); ++i) q.push(Time{delay(prng, mixed)}, 0);
  Event e;
  for (int i = 0; i < 300'000; ++i) {
    q.pop(kNever, e);
    q.push(Time{e.at_ps + delay(prng, mixed)}, 0);
  }
  for (auto _ : state) {
    q.pop(kNever, e);
    q.push(Time{e.at_ps + delay(prng, mixed)}, 0);
    benchmark::DoNotOptimize(e);
  }
  state.counters["log2_width"] = q.shift();
}

void heap_hold(benchmark::State& state, bool mixed) {
  EventHeap q;
  Prng prng(1);
  std::uint64_t serial = 0;
  for (std::int64_t i = 0; i < state.range(0); ++i) q.push({delay(prng, mixed), serial++});
  for (auto _ : state) {
    Event e = q.pop();
    q.push({e.at_ps + delay(prng, mixed), serial++});
    benchmark::DoNotOptimize(e);
  }
}

// The same through Timeline: dispatch to the actor included.
struct Bouncer {
  Bouncer(Timeline& t, Prng& p) : timeline(t), prng(p), id(t.add<&Bouncer::on_wake>(*this)) {}
  void on_wake(Time now) { timeline.wake(id, now + Duration{delay(prng, false)}); }
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
