// The papers' numbers, to the digits that they print.
#include "account/quantities.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "account/irn.h"
#include "account/network.h"
#include "account/srnic.h"
#include "account/stated.h"

namespace weft::account {
namespace {

class Statement : public ::testing::TestWithParam<Stated> {};

TEST_P(Statement, FollowsFromItsInputs) {
  const Stated s = GetParam();
  const Quantity* q = find_quantity(s.id);
  ASSERT_NE(q, nullptr);
  ASSERT_GT(q->figures().size(), s.figure);
  EXPECT_NEAR(q->figures()[s.figure].value, s.value, s.within) << q->text;
}

constexpr Stated kStated[] = {
    {"irn-bdp", 0, 120, 0.5},
    {"irn-bdp", 1, 110, 0.5},
    {"irn-rto-high", 0, 320, 10},  // "approximately"
    {"irn-pfc-threshold", 0, 220, 0.5},
    {"irn-topology", 0, 54, 0},
    {"irn-topology", 1, 45, 0},
    {"irn-topology", 2, 6, 0},
    {"irn-topology", 3, 128, 0},
    {"irn-topology", 4, 250, 0},
    {"irn-ooo-buffer", 0, 110, 0.5},
    {"irn-state-vars", 0, 52, 0},
    {"irn-state-vars", 1, 104, 0},
    {"irn-state-read", 0, 56, 0},
    {"irn-state-read", 1, 160, 0},
    {"irn-state-bitmaps", 0, 640, 0},
    {"irn-state-wqe", 0, 3, 0},
    {"irn-state-shared", 0, 10, 0},
    {"irn-state-pct", 0, 3, 0.5},
    {"irn-state-pct", 1, 10, 1.5},  // the paper names neither cache nor counts
    {"irn-headers", 0, 16, 0},
    {"irn-headers", 1, 6, 0},
    {"irn-headers", 2, 0, 0},
    {"srnic-bdp-slots", 0, 500, 0},
    {"srnic-hdr-size", 0, 58, 0},
    {"srnic-hdr-size", 1, 66, 0},
    {"srnic-hdr-size", 2, 78, 0},
    {"srnic-hdr-goodput", 0, 0.7, 0.05},
    {"srnic-hdr-goodput", 1, 1.8, 0.05},
};
INSTANTIATE_TEST_SUITE_P(Papers, Statement, ::testing::ValuesIn(kStated),
                         [](const auto& each) { return name_of(each.param); });

TEST(Quantities, EachHasANameOfItsOwnAndAFigure) {
  std::set<std::string> ids;
  for (const Quantity& q : quantities()) {
    EXPECT_TRUE(ids.insert(q.id).second) << q.id;
    EXPECT_FALSE(q.figures().empty()) << q.id;
    EXPECT_NE(std::string(q.text), "") << q.id;
  }
  EXPECT_EQ(find_quantity("irn-nothing"), nullptr);
}

// The formulas move with their inputs: nothing above is a constant in disguise.
TEST(Arithmetic, FollowsTheNetwork) {
  EXPECT_EQ(bdp(gigabits(100), 6, microseconds(2)), 300'000U);
  EXPECT_EQ(bdp(gigabits(40), 2, microseconds(1)), 20'000U);
  EXPECT_EQ(packets_in(10'860, 1024, Headers{}.total()), 10U);
  EXPECT_EQ(pfc_threshold({60'000}, gigabits(10), microseconds(2)), 55'000U);
  EXPECT_EQ(rto_high(microseconds(24), 6, {480'000}, gigabits(40)), microseconds(600));
  EXPECT_EQ(FatTree{4}.switches(), 20U);
}

TEST(Arithmetic, FollowsTheNic) {
  EXPECT_EQ(irn::bitmap_bits(1, 32), 32U);
  EXPECT_EQ(irn::bitmap_bits(128, 32), 128U);
  EXPECT_EQ(irn::bitmap_bits(129, 32), 160U);
  const irn::QueuePair qp{104, 56, 128};
  EXPECT_EQ(qp.bytes(), 100U);
  EXPECT_EQ(irn::added_bytes(qp, {10, 100, 1}), 1000U + 300U + 10U);
  EXPECT_DOUBLE_EQ(irn::percent_of_cache(qp, {10, 100, 13'100}), 10.0);
  EXPECT_EQ(srnic::bitmaps(1, 5, 8), 5U);
  EXPECT_EQ(srnic::translations(1U << 30U, 2U << 20U, 8), 4096U);
}

}  // namespace
}  // namespace weft::account
