// The random numbers are those of the published algorithms, for ever: seeds in bug reports depend on it.
//
// The golden values come from an independent implementation of splitmix64 and xoshiro256** in a few lines of
// Python, written from the authors' description (prng.di.unimi.it). It was itself checked against published
// outputs: splitmix64 from 1234567 begins 6457827717110365317, and xoshiro256** from state (1, 2, 3, 4)
// begins 11520, 0, 1509978240, 1215971899390074240.
#include "core/base/prng.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

namespace weft {
namespace {

TEST(Prng, BeginsWithThePublishedNumbers) {
  const std::map<std::uint64_t, std::array<std::uint64_t, 6>> golden = {
      {0,
       {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c, 0xbba5ad4a1f842e59,
        0xffef8375d9ebcaca}},
      {1,
       {0xb3f2af6d0fc710c5, 0x853b559647364cea, 0x92f89756082a4514, 0x642e1c7bc266a3a7, 0xb27a48e29a233673,
        0x24c123126ffda722}},
      {0xdeadbeef,
       {0xc5555444a74d7e83, 0x65c30d37b4b16e38, 0x54f773200a4efa23, 0x429aed75fb958af7, 0xfb0e1dd69c255b2e,
        0x9d6d02ec58814a27}},
  };
  for (const auto& [seed, numbers] : golden) {
    Prng prng(seed);
    for (const std::uint64_t n : numbers) EXPECT_EQ(prng.next(), n) << "seed " << seed;
  }
}

TEST(Prng, NumbersBelowABoundAreTheUpperBitsScaled) {
  Prng prng(1);
  for (const std::uint64_t n : {702U, 520U, 574U, 391U, 697U, 143U, 71U, 381U})
    EXPECT_EQ(prng.below(1000), n);
}

TEST(Prng, AForkHasThePublishedNumbersOfItsOwnSeed) {
  Prng prng(7);
  Prng fork = prng.fork(3);
  EXPECT_EQ(fork.next(), 0xcda9a7a069775820U);
  EXPECT_EQ(fork.next(), 0xfaa1620c5278620bU);
}

TEST(Prng, AForkDoesNotShiftItsParentsNumbersAndLabelsDiffer) {
  Prng used(9), unused(9);
  Prng a = used.fork(1);
  unused.fork(1);
  for (int i = 0; i < 10; ++i) a.next();
  EXPECT_EQ(used.next(), unused.next());
  EXPECT_NE(Prng(9).fork(1).next(), Prng(9).fork(2).next());
}

// Each bound is reached, none is passed.
TEST(Prng, BelowAndBetweenStayInTheirRangesAndReachBothEnds) {
  Prng prng(2);
  std::array<int, 5> seen{};
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t n = prng.below(5);
    ASSERT_LT(n, 5U);
    ++seen[n];
  }
  for (const int n : seen) EXPECT_NEAR(n, 200, 80);  // more than six standard deviations
  bool low = false, high = false;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t n = prng.between(10, 13);
    ASSERT_GE(n, 10U);
    ASSERT_LE(n, 13U);
    low |= n == 10;
    high |= n == 13;
  }
  EXPECT_TRUE(low && high);
  EXPECT_EQ(prng.below(1), 0U);
  EXPECT_EQ(prng.between(6, 6), 6U);
}

TEST(Prng, ChancesOfNothingAndOfCertaintyAreExact) {
  Prng prng(3);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_FALSE(prng.chance(0));
    ASSERT_TRUE(prng.chance(1'000'000));
    hits += prng.chance(250'000);
  }
  EXPECT_NEAR(hits, 2500, 260);  // six standard deviations
}

}  // namespace
}  // namespace weft
