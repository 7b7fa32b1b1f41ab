// The loop around turns: the clock, signals, sleeping until something comes, is due, or the user wants to
// hear. One thread drives everything.
#pragma once
#include <array>
#include <functional>
#include <memory>

#include "core/base/result.h"
#include "core/base/units.h"

namespace weft::wan {

// Time since the clock was made, and an hour: what lies a little before "now" is a Time, too.
class WallClock {
 public:
  WallClock();
  Time now() const;

 private:
  std::int64_t base_ns_;
};

struct Turns {
  std::function<bool(Time now)> turn;  // true: there may be more
  std::function<Time(Time now)> next_due;
  std::function<bool(Time now)> tick;  // twice a second; false: it is over
  // SIGINT, SIGTERM, SIGUSR1; false: it is over.
  std::function<bool(Time now, int signal)> signal;
  std::array<int, 2> descriptors{-1, -1};
  bool spin = false;  // never sleep
};

// Its signals are blocked for the process from here on: make it before anything that takes long.
class Driving {
 public:
  static Result<std::unique_ptr<Driving>> prepare();
  ~Driving();
  void run(const Turns& turns);
  const WallClock& clock() const { return clock_; }

 private:
  Driving() = default;
  WallClock clock_;
  int signals_ = -1;
};

}  // namespace weft::wan
