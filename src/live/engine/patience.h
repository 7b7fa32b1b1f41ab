// How long after a program's last poll the background thread takes over.
//
// While a program polls it drives, and a thread that took packets from it would only be in its way. But a
// program may poll for its own completion and then watch its memory (ib_write_lat does): whatever comes then
// waits for the thread. When it finds that something had waited, it comes sooner from then on, and asks the
// kernel for short turns, for the program may spin on the core that it needs. A program that is seen polling
// again and again is trusted again.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/base/units.h"

namespace weft::live {

class Patience {
 public:
  static constexpr Duration kMost = microseconds(50);
  static constexpr Duration kLeast = microseconds(5);
  static constexpr std::uint32_t kTrusted = 32;  // times seen polling, for each doubling

  // Read by every thread; the rest is the background thread's.
  Duration now() const { return Duration{now_.load(std::memory_order_relaxed)}; }

  // Nobody had polled, and something waited. True: it had not been short before.
  bool was_late() {
    polls_ = 0;
    const bool news = now() != kLeast;
    now_.store(kLeast.ps, std::memory_order_relaxed);
    return news;
  }
  // The program had polled meanwhile. True: it is trusted as at first.
  bool saw_poll() {
    if (now() == kMost || ++polls_ % kTrusted != 0) return false;
    now_.store(std::min(now().ps * 2, kMost.ps), std::memory_order_relaxed);
    return now() == kMost;
  }

 private:
  std::atomic<std::int64_t> now_{kMost.ps};
  std::uint32_t polls_ = 0;
};

}  // namespace weft::live
