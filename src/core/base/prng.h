// The project's only source of randomness: xoshiro256** seeded by splitmix64. Passed in, never
// global; the same seed gives the same numbers under every compiler and library, which
// std::*_distribution would not.
#pragma once
#include <cstdint>

namespace weft {

class Prng {
 public:
  explicit constexpr Prng(std::uint64_t seed) {
    for (auto& word : s_) {
      seed += 0x9E37'79B9'7F4A'7C15ULL;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30U)) * 0xBF58'476D'1CE4'E5B9ULL;
      z = (z ^ (z >> 27U)) * 0x94D0'49BB'1331'11EBULL;
      word = z ^ (z >> 31U);
    }
  }
  constexpr std::uint64_t next() {
    const std::uint64_t result = rotl(s_[1] * 5U, 7U) * 9U;
    const std::uint64_t t = s_[1] << 17U;
    s_[2] ^= s_[0];
    s_[3] ^= s_[1];
    s_[1] ^= s_[2];
    s_[0] ^= s_[3];
    s_[2] ^= t;
    s_[3] = rotl(s_[3], 45U);
    return result;
  }
  // Uniform in [0, n), without modulo bias worth speaking of (n far below 2^64). n > 0.
  constexpr std::uint64_t below(std::uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * n) >> 64U);
  }
  // Uniform in [lo, hi].
  constexpr std::uint64_t between(std::uint64_t lo, std::uint64_t hi) { return lo + below(hi - lo + 1U); }
  // True with probability millionths / 1 000 000.
  constexpr bool chance(std::uint32_t millionths) { return below(1'000'000U) < millionths; }
  // An independent generator for a sub-system, so that one consumer never shifts another's numbers.
  constexpr Prng fork(std::uint64_t label) { return Prng(next() ^ (label * 0x9E37'79B9'7F4A'7C15ULL)); }

 private:
  static constexpr std::uint64_t rotl(std::uint64_t x, unsigned k) { return (x << k) | (x >> (64U - k)); }
  std::uint64_t s_[4]{};
};

}  // namespace weft
