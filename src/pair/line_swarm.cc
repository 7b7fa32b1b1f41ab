#include "pair/line_swarm.h"

#include <algorithm>

#include "pair/meetings.h"
#include "pair/workload.h"

namespace weft::pair {
namespace {

std::uint32_t between(Prng& r, std::uint32_t lo, std::uint32_t hi) {
  return static_cast<std::uint32_t>(r.between(lo, hi));
}
std::uint32_t pick(Prng& r, std::initializer_list<std::uint32_t> choices) {
  return choices.begin()[r.below(choices.size())];
}
bool one_in(Prng& r, std::uint32_t n) { return r.below(n) == 0; }
Duration some(Prng& r, Duration lo, Duration hi) {
  return picoseconds(static_cast<std::int64_t>(
      r.between(static_cast<std::uint64_t>(lo.ps), static_cast<std::uint64_t>(hi.ps))));
}

void plan_line(Prng& r, LineConfig& l) {
  l.there = true;
  impair::ImpairConfig& n = l.network;
  n.delay = some(r, microseconds(5), microseconds(200));
  switch (r.below(6)) {
    case 0:
    case 1:
      break;
    case 2:
    case 3:
      n.loss = between(r, 1'000, 50'000);
      break;
    case 4:
      n.loss = between(r, 50'000, 200'000);
      n.duplicate = between(r, 0, 50'000);
      break;
    default:
      n.loss = between(r, 0, 50'000);
      n.reorder = between(r, 1'000, 200'000);
      n.reorder_by = some(r, nanoseconds(10), microseconds(100));
      n.duplicate = between(r, 0, 100'000);
      n.jitter = some(r, Duration{}, microseconds(20));
      break;
  }
  if (one_in(r, 3)) l.rate = gigabits(between(r, 1, 40));
  wan::BoxConfig b;
  b.store = Bytes{one_in(r, 3) ? between(r, 17'000, 60'000) : between(r, 40'000, 4'000'000)};
  b.frames = pick(r, {64, 512, 4096});
  b.halves = pick(r, {1, 4, 64, 64});
  b.window = pick(r, {64, 128, 512});
  b.loss_blocks = one_in(r, 4) ? between(r, 0, 2) : 64;
  b.acknowledge = one_in(r, 3) ? wan::Acknowledge::kFar : wan::Acknowledge::kEarly;
  b.line_timeout = milliseconds(2);
  b.site_timeout = some(r, microseconds(300), milliseconds(2));
  b.site_tries = 100;
  b.hello = some(r, microseconds(600), milliseconds(2));
  b.patience = milliseconds(20);
  b.give_up = seconds(4);
  b.quiet = some(r, microseconds(50), milliseconds(2));
  b.agreements = static_cast<std::uint8_t>(between(r, 2, 3));
  b.calm = between(r, 1, 6);
  b.secret = {1, 2, 3};
  for (std::uint32_t i = 0; i < 2; ++i) {
    l.boxes[i] = b;
    l.boxes[i].instance = r.next() | 1U;
    l.boxes[i].seed = r.next();
  }
}

// Both boxes repair answers, or one of them does, or none.
void plan_answers(Prng r, LineConfig& l) {
  const std::uint64_t which = r.below(8);
  l.boxes[0].repair_answers = which > 1;
  l.boxes[1].repair_answers = which > 0 && which != 2;
}

// A third of the worlds have parity; in some of them one of the boxes knows nothing of it.
void plan_parity(Prng r, LineConfig& l) {
  if (!one_in(r, 3)) return;
  wan::ParityTerms terms;
  terms.data = static_cast<std::uint8_t>(between(r, 2, one_in(r, 4) ? 64 : 16));
  terms.repair = static_cast<std::uint8_t>(between(r, 1, 3));
  const Duration wait = some(r, microseconds(20), microseconds(400));
  const std::uint32_t covered = one_in(r, 4) ? between(r, 64, 2048) : 4096;
  const std::uint32_t without = one_in(r, 8) ? between(r, 0, 1) : 2;
  for (std::uint32_t i = 0; i < 2; ++i) {
    if (i != without) l.boxes[i].parity = terms;
    l.boxes[i].parity_wait = wait;
    l.boxes[i].covered = covered;
  }
}

}  // namespace

Plan plan_line_world(std::uint64_t seed, bool& meets) {
  Plan p = plan_world(seed);
  Prng r = Prng(seed).fork(0x6C'696E65);
  plan_line(r, p.world.line);
  plan_answers(Prng(seed).fork(0x61'6E73), p.world.line);
  plan_parity(Prng(seed).fork(0x70'6172), p.world.line);
  p.forgeries = 0;
  p.door_bound = {};
  p.world.drain = {};
  for (SharedPlan& s : p.shared) s = {};
  for (DeviceConfig& d : p.world.hosts) {
    d.rto_low = std::max(d.rto_low, milliseconds(1));
    d.rto_high = std::max(d.rto_high, milliseconds(3));
    d.path_credit = {};
  }
  const bool pure = one_in(r, 2);  // WRITEs and SENDs only
  const bool roce = one_in(r, 2);
  for (ConnectionPlan& c : p.connections) {
    c.windows = false;
    c.shared[0] = c.shared[1] = false;
    c.disruption = Disruption::kNone;
    for (BindFault& f : c.bad_bind) f = BindFault::kNone;
    for (EndConfig& e : c.end) {
      if (roce) e.mode = wire::Mode::kRoce;
      e.timeout = static_cast<std::uint8_t>(between(r, 9, 11));  // 2.1 to 8.4 ms
      e.retry_count = e.rnr_retry = 7;
    }
    for (FlowPlan& f : c.flow) {
      // Two or three times over, so that there is something left once a connection is known.
      const auto once = f.messages;
      for (std::uint32_t i = between(r, 0, 2); i > 0; --i)
        f.messages.insert(f.messages.end(), once.begin(), once.end());
      for (MessagePlan& m : f.messages) {
        m.fault = Fault::kNone;
        const bool answered = m.opcode == WrOpcode::kRead || m.opcode == WrOpcode::kCompareSwap ||
                              m.opcode == WrOpcode::kFetchAdd;
        if (pure && answered) m.opcode = one_in(r, 2) ? WrOpcode::kWrite : WrOpcode::kSend;
      }
      f.slots = static_cast<std::uint32_t>(f.messages.size()) + f.spare_receives + 1;
    }
  }
  meets = one_in(r, 2);
  // Who parts knows that everything is complete.
  for (ConnectionPlan& c : p.connections) {
    for (FlowPlan& f : c.flow) {
      if (meets && !f.messages.empty()) f.messages.back().flags |= kSendSignaled;
    }
  }
  return p;
}

LineResult run_line_seed(std::uint64_t seed, Recorder* recorder) {
  bool meets = false;
  const Plan plan = plan_line_world(seed, meets);
  World world(plan.world, recorder);
  Workload workload(plan, world);
  Meetings meetings(plan, world, workload);
  world.run(meets ? static_cast<Programs&>(meetings) : workload);
  LineResult r;
  r.clean = world.referee().report().clean();
  r.findings = world.referee().report().text();
  r.packets = world.packets();
  for (std::uint32_t i = 0; i < 2; ++i) {
    const wan::Box& box = world.line()->box(i);
    for (std::size_t c = 0; c < r.counters.size(); ++c)
      r.counters[c] += box.counters().get(static_cast<wan::BoxCounter>(c));
  }
  return r;
}

}  // namespace weft::pair
