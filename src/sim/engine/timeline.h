// Virtual time: which actor wakes up when. The clock of a simulated world stands still while an actor runs
// and jumps to the next wake-up when it returns.
//
// An actor is an object with a member function `void f(Time now)`, registered once; it may register
// several (a NIC has one for its link and one for its timer). A wake-up is a time and an actor, no
// more; actors treat a wake-up that finds nothing to do as normal. Simultaneous wake-ups run in the
// order in which they were asked for: that, and seeds, is all a run depends on.
//
// Not thread-safe: a world is one thread. Actors outlive the Timeline's last step.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/base/ids.h"
#include "core/base/units.h"
#include "sim/engine/event_queue.h"

namespace weft::sim {

using ActorId = Id<struct ActorTag, std::uint32_t>;

class Timeline {
 public:
  Time now() const { return now_; }
  std::uint64_t events() const { return events_; }  // wake-ups run so far
  bool idle() const { return queue_.empty(); }

  // timeline.add<&Port::on_wake>(*this)
  template <auto Member, class T>
  ActorId add(T& actor) {
    CHECK_OP(actors_.size(), <, 1U << WakeUp::kActorBits);
    actors_.push_back({&actor, [](void* self, Time now) { (static_cast<T*>(self)->*Member)(now); }});
    return {static_cast<std::uint32_t>(actors_.size() - 1U)};
  }

  void wake(ActorId actor, Time at) {
    DCHECK(at >= now_ && actor.v < actors_.size());
    queue_.push(at, actor.v);
  }

  // Runs after everything else of the same time. Time-outs use it, because a packet that arrives at the same
  // time may make them void.
  void wake_last(ActorId actor, Time at) {
    DCHECK(at >= now_ && actor.v < actors_.size());
    queue_.push(at, actor.v, true);
  }

  // Runs the next wake-up if it is not later than `limit`.
  bool step(Time limit = kNever) {
    WakeUp e;
    if (!queue_.pop(limit, e)) return false;
    DCHECK(e.at_ps >= now_.ps);
    now_ = Time{e.at_ps};
    ++events_;
    prefetch();
    const Actor& actor = actors_[e.actor()];
    actor.run(actor.self, now_);
    return true;
  }

  // Runs up to `most` wake-ups that are not later than `limit`; returns how many there were. The clock
  // stays at the last one.
  std::uint64_t run(Time limit, std::uint64_t most) {
    std::uint64_t n = 0;
    while (n != most && step(limit)) ++n;
    return n;
  }

  void check_invariants() const { queue_.check_invariants(); }

 private:
  struct Actor {
    void* self;
    void (*run)(void*, Time);
  };
  // Worlds are larger than caches, so prefetch what the event after the next one will touch first.
  void prefetch() const {
    const WakeUp* e = queue_.ahead(1);
    if (e == nullptr) return;
    const char* self = static_cast<const char*>(actors_[e->actor()].self);
    for (std::size_t line = 0; line < 4; ++line) __builtin_prefetch(self + 64 * line, 1);
  }

  EventQueue queue_;
  Time now_{};
  std::uint64_t events_ = 0;
  std::vector<Actor> actors_;
};

}  // namespace weft::sim
