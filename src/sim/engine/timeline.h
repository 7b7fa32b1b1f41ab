// Virtual time: which actor wakes up when. The clock of a simulated world stands still while an actor runs
// and jumps to the next wake-up when it returns.
//
// An actor is an object with a member function `void f(Time now)`, registered once; it may register
// several (a NIC has one for its link and one for its timer). A wake-up is a time and an actor, no
// more; actors treat a wake-up that finds nothing to do as normal. Wake-ups of one time run by rank, and by
// lot within a rank (wake_up.h).
//
// An actor belongs to a node, or to the world. Nodes run apart inside a window of time (window_queue.h), so
// now() is the running node's time, and an actor touches no other node but by wires. A world actor may touch
// everything. An actor that says nothing is the world's: right everywhere, but slow in large networks, and
// where nodes run apart no node may wake it inside the open window.
//
// Not thread-safe: a world is one thread. Actors outlive the Timeline's last step.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/base/ids.h"
#include "core/base/units.h"
#include "sim/engine/window_queue.h"

namespace weft::sim {

using ActorId = Id<struct ActorTag, std::uint32_t>;
using NodeId = Id<struct NodeTag, std::uint32_t>;
inline constexpr NodeId kWorldNode{WindowQueue::kWorld};

class Timeline {
 public:
  Time now() const { return now_; }
  std::uint64_t events() const { return events_; }  // wake-ups run so far
  bool idle() const { return queue_.empty(); }

  // timeline.add<&Port::on_wake>(*this, node)
  template <auto Member, class T>
  ActorId add(T& actor, NodeId node = kWorldNode) {
    actors_.push_back({&actor, [](void* self, Time now) { (static_cast<T*>(self)->*Member)(now); }, node});
    return {queue_.add_actor(node.v)};
  }

  // Windows are no longer than `most`, the shortest time in which one node can reach another. With `apart`
  // nodes run apart in them, and it is an error when a node wakes another one, or the world, before the
  // window's end; without it events run in order of time. Before the first wake-up.
  void set_window(Duration most, bool apart) {
    windows_ = Windows(most);
    apart_ = apart;
    // One node's events need no window; short ones keep its heap small.
    queue_.set_width(apart || most < nanoseconds(1) ? most : most / 32);
  }
  // Of the window that a time lies in, and of the one that is running.
  Time window_start(Time at) const { return windows_.start(windows_.of(at)); }
  Time window_end() const { return windows_.start(windows_.of(now_) + 1); }

  void wake(ActorId actor, Time at) { push(Rank::kUsual, actor, at); }
  void wake_for_arrival(ActorId actor, Time at) { push(Rank::kArrival, actor, at); }
  void wake_for_timeout(ActorId actor, Time at) { push(Rank::kTimeout, actor, at); }

  // Runs the next wake-up if it is not later than `limit`, and unless stop() was called.
  bool step(Time limit = kNever) {
    WakeUp e;
    if (stopped_ || !queue_.pop(limit, e)) {
      now_ = std::max(now_, latest_);
      return false;
    }
    const Actor& actor = actors_[e.actor()];
    now_ = Time{e.at_ps};
    latest_ = std::max(latest_, now_);
    running_ = actor.node;
    ++events_;
    actor.run(actor.self, now_);
    return true;
  }

  // Runs up to `most` wake-ups that are not later than `limit`; returns how many there were. When it was less
  // than that the clock stays at the last one.
  std::uint64_t run(Time limit, std::uint64_t most) {
    std::uint64_t n = 0;
    while (n != most && step(limit)) ++n;
    return n;
  }
  // No wake-up runs any more.
  void stop() { stopped_ = true; }

  void check_invariants() const { queue_.check_invariants(); }

 private:
  struct Actor {
    void* self;
    void (*run)(void*, Time);
    NodeId node;
  };
  void push(Rank rank, ActorId actor, Time at) {
    DCHECK(at >= now_ && actor.v < actors_.size());
    DCHECK(!apart_ || running_ == kWorldNode || actors_[actor.v].node == running_ || at >= window_end());
    queue_.push(WakeUp::of(at, rank, actor.v));
  }

  WindowQueue queue_;
  Time now_{};
  Time latest_{};
  std::uint64_t events_ = 0;
  bool stopped_ = false;
  bool apart_ = false;
  Windows windows_{nanoseconds(512)};
  NodeId running_ = kWorldNode;
  std::vector<Actor> actors_;
};

}  // namespace weft::sim
