// Random variates in integers: the same numbers from the same draws on every machine, without the maths
// library.
#pragma once
#include <bit>
#include <cstdint>

#include "core/base/prng.h"

namespace weft::sim {

// -log2 of (draw + 1) / 2^64, in 2^-32: the leading zeros give the whole part, and squaring the rest gives a
// binary digit of the fraction each time it passes two.
constexpr std::uint64_t minus_log2_q32(std::uint64_t draw) {
  if (draw == UINT64_MAX) return 0;
  const std::uint64_t x = draw + 1U;
  const auto zeros = static_cast<unsigned>(std::countl_zero(x));
  __extension__ using Wide = unsigned __int128;
  std::uint64_t m = x << zeros;  // 1.63 fixed point, in [1, 2)
  std::uint64_t fraction = 0;
  for (int i = 0; i < 32; ++i) {
    const auto square = static_cast<Wide>(m) * m;  // 2.126, in [1, 4)
    const bool two = static_cast<std::uint64_t>(square >> 127U) != 0;
    m = static_cast<std::uint64_t>(square >> (two ? 64U : 63U));
    fraction = fraction << 1U | (two ? 1U : 0U);
  }
  // log2(x / 2^64) = -(zeros + 1) + 0.fraction
  return ((std::uint64_t{zeros} + 1U) << 32U) - fraction;
}

// An exponential variate of mean one, in 2^-32.
inline std::uint64_t exponential_q32(Prng& random) {
  constexpr std::uint64_t kLn2_q32 = 0xB172'17F7;
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{minus_log2_q32(random.next())} * kLn2_q32) >> 32U);
}

// The same with a given mean.
inline std::uint64_t exponential(Prng& random, std::uint64_t mean) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{exponential_q32(random)} * mean) >> 32U);
}

}  // namespace weft::sim
