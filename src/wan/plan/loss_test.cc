// Closed forms, limits, and a count by hand.
#include "wan/plan/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/prng.h"

namespace weft::wan {
namespace {

TEST(Loss, NothingIsRepairedWhereNothingIsLost) {
  EXPECT_EQ(go_back_n_share(30'000, 0), 1);
  EXPECT_EQ(rounds(30'000, 0), 1);
  EXPECT_EQ(rounds_within(30'000, 0, 0.99), 1);
  EXPECT_EQ(group_fails({16, 2}, 0), 0);
  EXPECT_EQ(rounds(30'000, 0, Parity{16, 2}), 1);
}

TEST(Loss, OnePacketTakesAGeometricNumberOfRounds) {
  EXPECT_NEAR(rounds(1, 0.5), 2, 1e-6);
  EXPECT_NEAR(rounds(1, 0.1), 1 / 0.9, 1e-6);
  EXPECT_EQ(rounds_within(1, 0.1, 0.99), 2);  // 0.9, then 0.99
  EXPECT_EQ(rounds_within(1, 0.1, 0.995), 3);
}

// With a window of one packet each loss costs that packet; with a window of w, w packets.
TEST(Loss, GoBackNSendsAWindowForEachLoss) {
  EXPECT_NEAR(go_back_n_share(1, 0.25), 0.75, 1e-9);
  EXPECT_NEAR(go_back_n_share(100, 0.01), 0.99 / (0.99 + 1), 1e-9);
  EXPECT_LT(go_back_n_share(30'000, 1e-3), 0.033);
}

TEST(Loss, AGroupFailsWhenMoreAreLostThanItHasRepairPackets) {
  // 1 + 1: both are lost. 2 + 1: two or three of three.
  EXPECT_NEAR(group_fails({1, 1}, 0.1), 0.01, 1e-12);
  EXPECT_NEAR(group_fails({2, 1}, 0.1), 3 * 0.01 * 0.9 + 0.001, 1e-12);
}

TEST(Loss, RoundsAgreeWithACount) {
  Prng random(7);
  constexpr std::uint32_t kLoss = 20'000;  // millionths
  constexpr int kTrials = 4000;
  constexpr Parity kParity{4, 1};
  double plain = 0;
  double coded = 0;
  for (int t = 0; t < kTrials; ++t) {
    int worst = 1;
    int worst_coded = 1;
    for (int group = 0; group < 5; ++group) {
      unsigned lost = 0;
      int longest = 1;
      for (unsigned i = 0; i < kParity.data + kParity.repair; ++i) {
        int n = 1;
        while (random.below(1'000'000) < kLoss) ++n;
        if (n > 1) ++lost;
        if (i < kParity.data) worst = std::max(worst, n);
        longest = std::max(longest, n);
      }
      if (lost > kParity.repair) worst_coded = std::max(worst_coded, longest);
    }
    plain += worst;
    coded += worst_coded;
  }
  EXPECT_NEAR(plain / kTrials, rounds(20, 0.02), 0.03);
  EXPECT_NEAR(coded / kTrials, rounds(20, 0.02, kParity), 0.02);
  EXPECT_LT(rounds(20, 0.02, kParity), rounds(20, 0.02) - 0.2);
}

}  // namespace
}  // namespace weft::wan
