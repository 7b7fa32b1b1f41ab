// The hold model: a queue of n events, pop the earliest, push one at a random delay, for ever. The
// classic measure of a simulator's event queue (Vaucher and Duval 1975), and a calibration figure of
// the machine: benchmarks that are compared across machines show it beside their own.
#pragma once
#include <cstdint>

#include "core/base/prng.h"
#include "sim/engine/window_queue.h"

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
    queue_.set_width(nanoseconds(524));
    for (std::uint32_t i = 0; i < events; ++i) {
      const std::uint32_t actor = queue_.add_actor(1U + i % kNodes);
      queue_.push(WakeUp::of(Time{hold_delay_ps(prng_, mixed)}, Rank::kUsual, actor));
    }
  }
  // Runs `times` operations. Returns the virtual time, so that the compiler cannot remove them.
  std::int64_t run(std::uint64_t times) {
    WakeUp e;
    for (std::uint64_t i = 0; i < times; ++i) {
      queue_.pop(kNever, e);
      queue_.push(WakeUp::of(Time{e.at_ps + hold_delay_ps(prng_, mixed_)}, Rank::kUsual, e.actor()));
    }
    return e.at_ps;
  }

 private:
  static constexpr std::uint32_t kNodes = 256;
  WindowQueue queue_;
  Prng prng_{1};
  bool mixed_;
};

}  // namespace weft::sim
