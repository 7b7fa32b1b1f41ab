// Time, size and rate as types, so that no bare integer crosses an interface.
//
// Time is counted in picoseconds in 64 bits: one byte at 400 Gb/s is exactly 20 ps, so serialisation
// delays of every common link speed are whole numbers and a simulation never rounds; 2^63 ps is 106
// days, longer than any run. Both worlds use the same clock type: virtual time in the simulator,
// CLOCK_MONOTONIC scaled to picoseconds in the live one. Nothing here reads a clock.
//
// Overflow: operator+ does not check. `Time::after` saturates, above at kNever, and deadlines use it.
#pragma once
#include <compare>
#include <cstdint>

namespace weft {

// A span of time.
struct Duration {
  std::int64_t ps = 0;
  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator+(Duration o) const { return {ps + o.ps}; }
  constexpr Duration operator-(Duration o) const { return {ps - o.ps}; }
  constexpr Duration operator*(std::int64_t k) const { return {ps * k}; }
  constexpr Duration operator/(std::int64_t k) const { return {ps / k}; }
  constexpr Duration& operator+=(Duration o) {
    ps += o.ps;
    return *this;
  }
  constexpr std::int64_t ns() const { return ps / 1'000; }
  constexpr std::int64_t us() const { return ps / 1'000'000; }
};

constexpr Duration picoseconds(std::int64_t n) { return {n}; }
constexpr Duration nanoseconds(std::int64_t n) { return {n * 1'000}; }
constexpr Duration microseconds(std::int64_t n) { return {n * 1'000'000}; }
constexpr Duration milliseconds(std::int64_t n) { return {n * 1'000'000'000}; }
constexpr Duration seconds(std::int64_t n) { return {n * 1'000'000'000'000}; }

// A point in time, since the start of the world.
struct Time {
  std::int64_t ps = 0;
  constexpr auto operator<=>(const Time&) const = default;
  constexpr Time operator+(Duration d) const { return {ps + d.ps}; }
  constexpr Time operator-(Duration d) const { return {ps - d.ps}; }
  constexpr Duration operator-(Time o) const { return {ps - o.ps}; }
  // Saturating addition: a deadline never wraps into the past.
  constexpr Time after(Duration d) const {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(ps, d.ps, &sum)) return Time{d.ps < 0 ? INT64_MIN : INT64_MAX};
    return Time{sum};
  }
};

inline constexpr Time kNever{INT64_MAX};
inline constexpr Duration kForever{INT64_MAX};

// A number of bytes.
struct Bytes {
  std::uint64_t n = 0;
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes operator+(Bytes o) const { return {n + o.n}; }
  constexpr Bytes operator-(Bytes o) const { return {n - o.n}; }
  constexpr Bytes& operator+=(Bytes o) {
    n += o.n;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes o) {
    n -= o.n;
    return *this;
  }
};

// Bits per second. Zero means "unlimited" wherever a limit is asked for.
struct Rate {
  std::uint64_t bps = 0;
  constexpr auto operator<=>(const Rate&) const = default;
  // How long `b` takes at this rate, rounded up to the next picosecond; zero when unlimited, kForever when
  // it does not fit.
  constexpr Duration time_for(Bytes b) const {
    if (bps == 0) return {};
    constexpr std::uint64_t kPerByte = 8 * 1'000'000'000'000ULL;  // bits in 10^-12
    if (b.n < 1'000'000) {                                        // the sum below still fits 64 bits
      const std::uint64_t scaled = b.n * kPerByte;
      return {static_cast<std::int64_t>(scaled / bps + (scaled % bps != 0 ? 1U : 0U))};
    }
    __extension__ using Wide = unsigned __int128;
    const Wide bits = static_cast<Wide>(b.n) * 8U * 1'000'000'000'000ULL;
    const Wide ps = (bits + bps - 1U) / bps;
    return ps > static_cast<Wide>(INT64_MAX) ? kForever : Duration{static_cast<std::int64_t>(ps)};
  }
};

constexpr Rate gigabits(std::uint64_t n) { return {n * 1'000'000'000ULL}; }
constexpr Rate megabits(std::uint64_t n) { return {n * 1'000'000ULL}; }

}  // namespace weft
