// What the middleware costs per message, without a network: `./dev bench channel [--json F]`.
//
// Two contexts face each other over ports with nothing between them (tests/channel/null_port.h): a post
// writes a request down, and what a device does happens when one of them is polled, in batches. An iteration
// sends 32 messages of 64 bytes:
//
//   message_ns   all of it: allocate, send; poll, next, release at the other end; poll at the first: the
//                completion, the acknowledgement, memory given back. Acknowledgements that travel alone are
//                in
//   port_ns      what the same calls of the port cost by themselves, over as many queue pairs
//   controls     acknowledgements that travelled alone, for each message
//   logic_ns     the difference: the middleware's own
//
// "hot" is one channel with the default parameters; "hot_lean" has a window of 8 and frames of 256 bytes, so
// that ten thousand of them fit; "10k_lean" draws each of the 32 channels at random from 10 000. Each is then
// so rarely used that its acknowledgements travel alone, with a timer. bytes_per_channel is what an idle
// channel of default parameters takes beside its posted receives. Nothing may be allocated meanwhile:
// `allocations` is their number. Processor time of the thread, medians of nine repetitions; the process pins
// itself to one core.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "channel/context.h"
#include "core/base/prng.h"
#include "tests/bench/counted_new.h"
#include "tests/bench/program.h"
#include "tests/channel/null_port.h"

namespace weft::channel {
namespace {

using channel_test::NullPort;

constexpr std::uint32_t kBatch = 32;
constexpr std::uint32_t kBytes = 64;

struct Pair {
  Pair(std::uint32_t channels, bool lean) {
    Config config;
    config.channels = channels;
    if (lean) config.depth = 8, config.small = 256;
    window = config.depth;
    port[0].meet(port[1]);
    for (int i = 0; i < 2; ++i) context[i] = std::move(*Context::open(port[i], config, 1));
    for (std::uint32_t i = 0; i < channels; ++i) {
      at.push_back(*context[0]->connect(wire::Address::v4(127, 0, 0, 1), 1, 0));
      turn();
    }
    turn();
  }
  void turn() {
    for (int round = 0; round < 3; ++round) {
      for (auto& c : context) {
        c->poll(now);
        for (Notice n; c->next(n);) {
          if (n.kind == Notice::Kind::kAsked) c->accept(*n.channel, 0);
          if (n.kind == Notice::Kind::kMessage) c->release(n.message);
        }
      }
    }
  }
  NullPort port[2];
  std::unique_ptr<Context> context[2];
  std::vector<Channel*> at;
  std::uint32_t window = 0;
  Time now{};
};

// Processor time of this thread in nanoseconds: a loaded machine takes the core away.
double thread_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// The port's calls alone, as often as a message needs them, over as many queue pairs and as much memory: a
// receive, a send, two completions, and of each hundred messages so many acknowledgements that travel alone,
// a while later. What many queue pairs cost the port is not the middleware's.
double port_ns(std::uint32_t channels, std::uint32_t window, double controls) {
  constexpr std::uint32_t kStride = 512;
  constexpr std::uint32_t kLater = 1024;
  NullPort a;
  NullPort b;
  a.meet(b);
  const std::uint32_t entries = 128 + channels * window * 4;  // as the middleware asks for
  (void)a.create_cq(entries);
  (void)b.create_cq(entries);
  PortQueuePair wanted;
  wanted.caps.max_recv_wr = 2 * window;
  const std::uint64_t bytes = std::uint64_t{channels} * window * kStride;
  const PortMemory memory = *a.allocate(bytes, 0, MemoryKind::kBytes);
  std::fill(memory.bytes.begin(), memory.bytes.end(), std::uint8_t{1});
  VerbsPort* pa = &a;
  VerbsPort* pb = &b;
  for (std::uint32_t q = 0; q < channels; ++q) {
    (void)a.create_qp(wanted);
    (void)b.create_qp(wanted);
    (void)a.accept({q}, {q}, {}, {});
  }
  const Sge s{memory.address, kBytes, {}};
  SendWr wr;
  wr.opcode = WrOpcode::kSendImm;
  wr.flags = kSendSignaled;
  wr.sges = {&s, 1};
  SendWr control;
  control.opcode = WrOpcode::kSendImm;
  Completion done[kBatch];
  std::vector<std::uint32_t> past(kLater);
  std::vector<std::uint32_t> times(channels);
  Prng random(7);
  double owed = 0;
  const auto rounds =
      static_cast<int>(std::max<std::uint64_t>(20'000, std::uint64_t{channels} * window / 16));
  double begin = 0;
  for (int r = -rounds / 2; r < rounds; ++r) {
    if (r == 0) begin = thread_ns();
    for (std::uint32_t i = 0; i < kBatch; ++i) {
      const std::uint32_t q = channels == 1 ? 0 : static_cast<std::uint32_t>(random.below(channels));
      const std::uint64_t block = std::uint64_t{q} * window + times[q]++ % window;
      const Sge where{memory.address + block * kStride, kBytes, {}};
      const RecvWr recv{1, {&where, 1}};
      benchmark::DoNotOptimize(pb->post_recv({q}, {&recv, 1}));
      benchmark::DoNotOptimize(pa->post_send({q}, {&wr, 1}));
      std::uint32_t& then = past[static_cast<std::uint32_t>(r * static_cast<int>(kBatch)) % kLater + i];
      if ((owed += controls) >= 1) {
        owed -= 1;
        benchmark::DoNotOptimize(pa->post_recv({then}, {&recv, 1}));
        benchmark::DoNotOptimize(pb->post_send({then}, {&control, 1}));
      }
      then = q;
    }
    while (pa->poll({0}, done) == kBatch) {
    }
    while (pb->poll({0}, done) == kBatch) {
    }
  }
  return (thread_ns() - begin) / (double(rounds) * kBatch);
}

void messages(benchmark::State& state, std::uint32_t channels, bool lean) {
  auto pair = std::make_unique<Pair>(channels, lean);
  // Every receive has been used once: memory that nobody has touched is the kernel's cost.
  for (std::uint32_t i = 0; i < 2 * pair->window; ++i) {
    for (std::uint32_t k = 0; k < channels; ++k) {
      Message* const m = pair->context[0]->allocate(kBytes);
      if (!pair->context[0]->send(*pair->at[k], m, 0, false)) pair->context[0]->release(m);
      if (k % kBatch == 0) pair->turn();
    }
    pair->now = pair->now + microseconds(100);
    pair->turn();
  }
  Prng random(7);
  std::uint64_t count = 0;
  std::size_t before = 0;
  Channel* drawn[kBatch];
  std::uint64_t refused = 0;
  std::uint64_t rounds = 0;
  const std::uint64_t sent = pair->port[1].sends();
  const double begin = thread_ns();
  for (auto _ : state) {
    if (++rounds == 100) before = allocations;  // the memory caches have grown by now
    for (Channel*& c : drawn) c = pair->at[channels == 1 ? 0 : random.below(channels)];
    const std::uint32_t group = channels == 1 ? pair->window : kBatch;
    for (std::uint32_t from = 0; from < kBatch; from += group) {
      pair->now = pair->now + nanoseconds(2000);
      for (std::uint32_t i = from; i < from + group; ++i) {
        Message* const m = pair->context[0]->allocate(kBytes);
        if (!pair->context[0]->send(*drawn[i], m, 0, false)) ++refused, pair->context[0]->release(m);
      }
      pair->context[1]->poll(pair->now);
      for (Notice n; pair->context[1]->next(n);) pair->context[1]->release(n.message);
      pair->context[0]->poll(pair->now);
      for (Notice n; pair->context[0]->next(n);) {
      }
      count += group;
    }
  }
  const double message = (thread_ns() - begin) / static_cast<double>(count);
  const std::size_t allocated = rounds > 100 ? allocations - before : 0;
  const double controls = static_cast<double>(pair->port[1].sends() - sent) / static_cast<double>(count);
  const std::uint32_t window = pair->window;
  pair.reset();
  const double port = port_ns(channels, window, controls);
  state.counters["controls"] = controls;
  state.counters["message_ns"] = message;
  state.counters["port_ns"] = port;
  state.counters["logic_ns"] = message - port;
  state.counters["allocations"] = static_cast<double>(allocated);
  state.counters["refused"] = static_cast<double>(refused);
  state.counters["bytes_per_channel"] = static_cast<double>(Context::bytes_per_channel(Config{}));
}

void register_all() {
  struct Row {
    const char* name;
    std::uint32_t channels;
    bool lean;
  };
  for (const Row& r : {Row{"hot", 1, false}, Row{"hot_lean", 1, true}, Row{"10k_lean", 10'000, true}}) {
    benchmark::RegisterBenchmark(r.name, [r](benchmark::State& s) { messages(s, r.channels, r.lean); })
        ->Repetitions(9)
        ->ReportAggregatesOnly()
        ->MinTime(0.2);
  }
}

}  // namespace
}  // namespace weft::channel

int main(int argc, char** argv) {
  return weft::bench::program("weft-bench-channel", argc, argv, weft::channel::register_all);
}
