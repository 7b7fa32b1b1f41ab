// Shared receives of a swarm world: one queue per host. A slot is posted again when it comes back, as fast as
// the plan says. The limit event is armed again whenever it came.
#include "core/base/check.h"
#include "pair/workload.h"

namespace weft::pair {

Workload::Shared& Workload::shared_of(World& world, std::uint32_t host) {
  const auto [it, fresh] = shared_receives_.try_emplace(host);
  Shared& s = it->second;
  if (!fresh) return s;
  const SharedPlan& plan = plan_.shared[host];
  const PdId pd = shared(world, host).first;
  s.host = host;
  s.srq = world.create_srq(host, pd, {plan.slots, plan.max_sge, plan.limit});
  s.sinks.buffer = world.host(host).allocate(pd, plan.slots * plan.slot_bytes, kLocalWrite, random_);
  for (std::uint32_t i = plan.slots; i > 0; --i) s.sinks.free.push_back(i - 1);
  return s;
}

void Workload::tend_shared(World& world, Time now) {
  for (auto& [host, s] : shared_receives_) {
    const SharedPlan& plan = plan_.shared[host];
    const bool below_limit =
        plan.limit != 0 && world.limit_reached(host, s.srq);  // asked before more are posted
    while (!s.sinks.free.empty() && now >= s.next_receive) {
      const std::uint32_t slot = s.sinks.free.back();
      RecvWr wr;
      wr.wr_id = kReceiveMark | s.count;
      wr.sges = pieces(s.sinks.buffer, std::uint64_t{slot} * plan.slot_bytes, plan.slot_bytes,
                       static_cast<std::uint32_t>(random_.between(1, plan.max_sge)), random_.below(3) == 0);
      if (const auto done = world.post_shared(host, s.srq, wr); !done) {
        CHECK(done.error() == Errc::kNoMemory);
        break;
      }
      s.sinks.free.pop_back();
      s.posted.emplace(wr.wr_id, slot);
      ++s.count;
      s.next_receive = now + plan.receive_delay;
    }
    if (below_limit) world.arm_limit(host, s.srq, plan.limit);
  }
}

void Workload::shared_completed(World& world, End& e, const Completion& c) {
  Shared& s = shared_receives_.at(e.host);
  const auto posted = s.posted.find(c.wr_id);
  if (posted == s.posted.end()) return;  // the referee has reported it
  if (c.status == WcStatus::kSuccess) world.host(e.host).coverage.hit(Covered::shared_taken);
  s.sinks.free.push_back(posted->second);
  s.posted.erase(posted);
}

// A program whose peer is gone closes its end: it may hold shared receives for messages that will never be
// whole.
void Workload::hang_up(World& world) {
  for (End& e : ends_) {
    if (!draws_shared(e) || e.dead || !peer_of(e).dead) continue;
    poll(world, e);
    if (e.dead) continue;
    world.force_error(e.host, e.qpn);
    e.dead = true;
    poll(world, e);
  }
}

}  // namespace weft::pair
