// The pending events of a simulation. Time is cut into windows, and inside a window events run node by node:
// first all of one node, then all of the next.
//
//   nodes    window 7                 | window 8
//   world      |                      |     :           a world event divides: everything before it runs
//   first host 0     1--2--3                | 7 ....... host 1        4----5              |    8 ..... the
//   digits are the order in which events run switch 0    6                     |
//
// Why: a network is larger than a processor's caches. In order of time each event finds another node, and its
// memory has to be fetched. In a window a node runs ten or twenty events in a row and is fetched once.
//
// Why that is right: nodes reach each other by links only, and a link takes time. A window is no longer than
// the shortest link, so what a node does in it is felt elsewhere in the next window at the earliest. The
// order of events of one time does not depend on who asked for them (wake_up.h). So every node sees the same
// events in the same order as it would in order of time.
//
// Node 0 is the world: programs that connect two hosts, failures of links, measurements. A world event runs
// when all nodes have reached its time, before everything else of that time.
//
// Structure: for each node what is left of the open window (node_events.h); a wheel of 1024 windows whose
// events lie unsorted in chunks; a heap for what is further away; a heap for world events. Where all actors
// belong to one node, or to the world, events run in order of time.
//
// Considered instead: one wheel in order of time, with prefetching of what the next events will touch. It
// gains a fifth where windows gain two thirds (4096 hosts).
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/units.h"
#include "sim/engine/node_events.h"
#include "sim/engine/wake_up.h"

namespace weft::sim {

// Time, cut into windows of one width of at least 2 ps. Which window a time lies in is found by a
// multiplication: with a reciprocal of 63 + log2(width) bits the quotient of every number below 2^63 is exact
// (Granlund and Montgomery 1994).
class Windows {
 public:
  explicit Windows(Duration width) : width_(width.ps) {
    const auto d = static_cast<std::uint64_t>(width.ps);
    shift_ = static_cast<unsigned>(std::bit_width(d - 1U)) - 1U;
    reciprocal_ = static_cast<std::uint64_t>((static_cast<Wide>(1) << (64U + shift_)) / d) + 1U;
  }
  std::int64_t of(Time at) const {
    return static_cast<std::int64_t>(
        (static_cast<Wide>(static_cast<std::uint64_t>(at.ps)) * reciprocal_ >> 64U) >> shift_);
  }
  Time start(std::int64_t window) const { return Time{window * width_}; }

 private:
  __extension__ using Wide = unsigned __int128;
  std::int64_t width_;
  std::uint64_t reciprocal_;
  unsigned shift_;
};

class WindowQueue {
 public:
  static constexpr std::uint32_t kWorld = 0;

  WindowQueue();

  // The next actor, which belongs to a node; returns its number.
  std::uint32_t add_actor(std::uint32_t node);
  // How long a window is. Only before the first event.
  void set_width(Duration width);
  // Where the window ends that is open.
  Time window_end() const { return Time{window_end_}; }

  // An event is not before the one that is running. It is not before window_end() either where it is for
  // another node than that one's, or for the world while there are several nodes.
  void push(WakeUp e) {
    ++size_;
    const std::uint32_t node = node_of_[e.actor()];
    if (node == kWorld) return push_world(e);
    if (e.at_ps < window_end_) return push_now(e, node);
    const std::int64_t window = windows_.of(Time{e.at_ps});
    if (window - window_ >= kWindows) return far_.push(e);
    push_later(e, static_cast<std::uint32_t>(window) & (kWindows - 1U));
  }

  // Takes the next event if it is not later than `limit`.
  bool pop(Time limit, WakeUp& out) {
    for (;;) {
      for (; turn_ != active_.size(); ++turn_) {
        NodeEvents& events = nodes_[active_[turn_]];
        if (events.empty() || events.top().at_ps >= cut_ || events.top().at_ps > limit.ps) continue;
        out = events.pop();
        --size_;
        return true;
      }
      turn_ = 0;
      if (cut_ > limit.ps) return false;
      if (!world_.empty() && world_.top().at_ps <= cut_ && world_.top().at_ps < window_end_) {
        out = world_.pop();
        --size_;
        return true;
      }
      if (!go_on(limit.ps)) return false;
    }
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void check_invariants() const;

 private:
  static constexpr std::uint32_t kWindows = 1024;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::int64_t kEnd = INT64_MAX;
  static constexpr Duration kUsualWidth = nanoseconds(512);

  struct Chunk {
    static constexpr std::uint32_t kEvents = 31;
    std::array<WakeUp, kEvents> events;
    std::uint32_t count = 0;
    std::uint32_t next = kNone;
  };

  void push_world(WakeUp e);
  void push_now(WakeUp e, std::uint32_t node) {
    NodeEvents& events = nodes_[node];
    // The node whose turn it is stands in active_ already, though it may have run out of events.
    if (events.empty() && (turn_ == active_.size() || active_[turn_] != node)) active_.push_back(node);
    events.push(e);
  }
  void push_later(WakeUp e, std::uint32_t slot);
  bool go_on(std::int64_t limit);
  std::int64_t next_window() const;
  void open(std::int64_t window);

  Windows windows_{kUsualWidth};
  std::size_t size_ = 0;
  std::int64_t window_ = -1;  // the open one
  std::int64_t window_end_ = 0;
  std::int64_t cut_ = 0;               // everything before may run
  std::size_t turn_ = 0;               // in active_
  std::vector<std::uint32_t> active_;  // nodes with events in the open window, or that had some
  std::vector<NodeEvents> nodes_;      // events of the open window, by node
  EventHeap world_;
  EventHeap far_;
  std::vector<std::uint32_t> node_of_;  // by actor
  // The wheel: a list of chunks for each of the windows after the open one.
  std::array<std::uint32_t, kWindows> heads_;
  std::array<std::uint64_t, kWindows / 64U> bits_{};  // windows that have events
  std::vector<Chunk> chunks_;
  std::uint32_t free_ = kNone;
};

}  // namespace weft::sim
