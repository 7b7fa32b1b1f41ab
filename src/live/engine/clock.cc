#include "live/engine/clock.h"

#include <algorithm>
#include <ctime>

namespace weft::live {
namespace {

std::int64_t nanoseconds_of(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}
std::int64_t monotonic_ns() { return nanoseconds_of(CLOCK_MONOTONIC); }

}  // namespace

// One hour in, so that a deadline a little before "now" is a valid Time from the first moment.
Clock::Clock(std::int64_t old_ns) : base_ns_(monotonic_ns() - 3'600'000'000'000 - old_ns) {}

Time Clock::now() const {
  if (hand_ != nullptr) [[unlikely]]
    return *hand_;
  constexpr std::int64_t kLastNs = kLast.ps / 1'000;
  return Time{std::min(monotonic_ns() - base_ns_, kLastNs) * 1'000};
}

std::uint64_t Clock::unix_start_ns() const {
  return static_cast<std::uint64_t>(nanoseconds_of(CLOCK_REALTIME) - now().ps / 1'000);
}

}  // namespace weft::live
