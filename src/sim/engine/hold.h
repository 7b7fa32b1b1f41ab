// The hold model: a queue of n events, pop the earliest, push one at a random delay, for ever. The
// classic measure of a simulator's event queue (Vaucher and Duval 1975), and a calibration figure of
// the machine: benchmarks that are compared across machines show it beside their own.
#pragma once
#include <cstdint>

#include "core/base/prng.h"
#include "sim/engine/event_queue.h"

namespace weft::sim {

// Two delay laws: one hop of a fabric, 1 to 1.13 us; or one push in sixteen 100 us ahead, like
// retransmission timers.
inline std::int64_t hold_delay_ps(Prng& prng, bool mixed) {
  const std::uint64_t draw = prng.next();
  const auto hop = static_cast<std::int64_t>(1'000'000U + (draw & 0x1'FFFFU));
  return mixed && (draw >> 60U) == 0 ? 100'000'000 + hop : hop;
}

class HoldModel {
 public:
  HoldModel(std::uint32_t events, bool mixed) : mixed_(mixed) {
    for (std::uint32_t i = 0; i < events; ++i) queue_.push(Time{hold_delay_ps(prng_, mixed)}, 0);
  }
  // Runs `times` operations. Returns the virtual time, so that the compiler cannot remove them.
  std::int64_t run(std::uint64_t times) {
    WakeUp e;
    for (std::uint64_t i = 0; i < times; ++i) {
      queue_.pop(kNever, e);
      queue_.push(Time{e.at_ps + hold_delay_ps(prng_, mixed_)}, 0);
    }
    return e.at_ps;
  }
  unsigned shift() const { return queue_.shift(); }

 private:
  EventQueue queue_;
  Prng prng_{1};
  bool mixed_;
};

}  // namespace weft::sim
