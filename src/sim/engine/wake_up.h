// An event of a simulation: 16 bytes that carry no data. It says which actor wakes up when; what the actor
// then does follows from its own state. An event that has become pointless is harmless, so no event is ever
// cancelled: a timer that moved to a later time is woken by its old event and sees that it is too early.
//
//   at     picoseconds                                  64 bits
//   order  | rank, 2 bits | draw, 38 bits | actor, 24 bits |
//
// Events of one time run by rank, and those of one rank in an order that is drawn by lot from time and actor.
// So the order of events does not depend on when they were asked for, and no sender is first for ever.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/units.h"

namespace weft::sim {

// What arrives comes first, as a NIC drains its wire before it sends; a time-out comes last, because a packet
// of the same time may make it void.
enum class Rank : std::uint8_t { kArrival, kUsual, kTimeout };

struct WakeUp {
  std::int64_t at_ps = 0;
  std::uint64_t order = 0;
  static constexpr unsigned kActorBits = 24;

  static WakeUp of(Time at, Rank rank, std::uint32_t actor) {
    const std::uint64_t lot =
        (static_cast<std::uint64_t>(at.ps) ^ (std::uint64_t{actor} << 40U)) * 0x9E37'79B9'7F4A'7C15ULL;
    const std::uint64_t drawn = (lot ^ (lot >> 29U)) * 0xBF58'476D'1CE4'E5B9ULL;
    return {at.ps, static_cast<std::uint64_t>(rank) << 62U | (drawn >> 26U) << kActorBits | actor};
  }
  constexpr std::uint32_t actor() const {
    return static_cast<std::uint32_t>(order) & ((1U << kActorBits) - 1U);
  }
  constexpr bool before(const WakeUp& o) const { return key() < o.key(); }

 private:
  __extension__ using Wide = unsigned __int128;
  constexpr Wide key() const { return (static_cast<Wide>(static_cast<std::uint64_t>(at_ps)) << 64U) | order; }
};
static_assert(sizeof(WakeUp) == 16);

// A 4-ary min-heap of events.
class EventHeap {
 public:
  bool empty() const { return events_.empty(); }
  std::size_t size() const { return events_.size(); }
  const WakeUp& top() const { return events_.front(); }
  void push(WakeUp e) {
    std::size_t i = events_.size();
    events_.push_back(e);
    while (i != 0) {
      const std::size_t parent = (i - 1U) / 4U;
      if (!e.before(events_[parent])) break;
      events_[i] = events_[parent];
      i = parent;
    }
    events_[i] = e;
  }
  WakeUp pop() {
    const WakeUp result = events_.front();
    const WakeUp last = events_.back();
    events_.pop_back();
    const std::size_t n = events_.size();
    if (n == 0) return result;
    std::size_t i = 0;
    for (;;) {
      const std::size_t child = 4U * i + 1U;
      if (child >= n) break;
      std::size_t least = child;
      const std::size_t end = child + 4U < n ? child + 4U : n;
      for (std::size_t k = child + 1U; k < end; ++k) {
        if (events_[k].before(events_[least])) least = k;
      }
      if (!events_[least].before(last)) break;
      events_[i] = events_[least];
      i = least;
    }
    events_[i] = last;
    return result;
  }

 private:
  std::vector<WakeUp> events_;
};

}  // namespace weft::sim
