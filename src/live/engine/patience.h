// How long after a program's last poll the background thread takes over.
//
// While a program polls it drives, and a thread that took packets from it would only be in its way. But a
// program may poll for its own completion and then watch its memory (ib_write_lat does): whatever comes then
// waits for the thread. When that happens again and again the thread is eager: it comes sooner, and asks the
// kernel for short turns, for the program may spin on the core that it needs. It stops when it only ever
// finds the program there.
#pragma once
#include <atomic>
#include <cstdint>

#include "core/base/units.h"

namespace weft::live {

class Patience {
 public:
  static constexpr Duration kUsual = microseconds(50);
  static constexpr Duration kEager = microseconds(5);
  static constexpr std::uint32_t kLate = 3;              // times within
  static constexpr Duration kLately = milliseconds(20);  // make it eager
  static constexpr std::uint32_t kThere = 32;            // in a row end that

  // Read by every thread; the rest is the background thread's.
  Duration now() const { return is_eager() ? kEager : kUsual; }
  bool is_eager() const { return eager_.load(std::memory_order_relaxed); }

  // Something had waited, for the program was away. True: eager from now on.
  bool was_late(Time now) {
    there_ = 0;
    if (is_eager()) return false;
    if (now - since_ > kLately) {
      since_ = now;
      late_ = 0;
    }
    if (++late_ < kLate) return false;
    eager_.store(true, std::memory_order_relaxed);
    return true;
  }
  // The program was there. True: no longer eager.
  bool saw_program() {
    if (!is_eager() || ++there_ < kThere) return false;
    late_ = 0;
    eager_.store(false, std::memory_order_relaxed);
    return true;
  }

 private:
  std::atomic<bool> eager_{false};
  std::uint32_t late_ = 0;
  std::uint32_t there_ = 0;
  Time since_{};
};

}  // namespace weft::live
