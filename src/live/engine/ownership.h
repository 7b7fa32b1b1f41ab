// The right to drive a shard: one lock that is usually only tried. Three states, as in Drepper's "Futexes are
// tricky": free, held, held while others sleep on it. A thread that finds it held waits, briefly at first,
// then in the kernel.
#pragma once
#include <atomic>
#include <mutex>

namespace weft::live {

class Ownership {
 public:
  bool try_acquire() {
    int expected = kFree;
    return state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  void acquire() {
    if (!try_acquire()) acquire_slowly();
  }
  void release() {
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) state_.notify_one();
  }

 private:
  static constexpr int kFree = 0;
  static constexpr int kHeld = 1;
  static constexpr int kAwaited = 2;

  void acquire_slowly() {
    for (int spins = 0; spins < 200; ++spins) {
      __builtin_ia32_pause();
      if (state_.load(std::memory_order_relaxed) == kFree && try_acquire()) return;
    }
    // It is taken as kAwaited, because other threads may still sleep on it.
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) state_.wait(kAwaited);
  }

  std::atomic<int> state_{kFree};
};

class Owned {
 public:
  explicit Owned(Ownership& o) : o_(o) { o_.acquire(); }
  Owned(Ownership& o, std::adopt_lock_t) : o_(o) {}
  ~Owned() { o_.release(); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

 private:
  Ownership& o_;
};

}  // namespace weft::live
