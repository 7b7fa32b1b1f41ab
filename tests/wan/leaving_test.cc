// A box that is about to be switched off: what it answers for is delivered, and nothing new is taken, by it
// or by its partner.
#include <gtest/gtest.h>

#include "tests/wan/by_hand.h"

namespace weft::wan {
namespace {

// The requester's box leaves, or the responder's, while packets are kept whose responder is slow.
class Leaving : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Leaving, DeliversWhatItKeepsAndBecomesAWire) {
  ByHand boxes([](std::uint32_t, BoxConfig& c) { c.site_tries = 200; });
  Connection c(boxes, {11}, {21}, 7);
  boxes.heard = [&](std::uint32_t site, const ByHand::Seen& s) { c.hear(site, s); };
  ASSERT_TRUE(c.until_owned());
  c.answers = false;
  c.write(3);
  boxes.run(milliseconds(5));
  ASSERT_EQ(c.done(), c.sent());  // acknowledged early
  ASSERT_LT(c.taken(), c.sent());
  boxes.leave(GetParam());
  boxes.run(kDelay);  // the other one hears of it
  c.write(2);
  boxes.run(milliseconds(10));
  EXPECT_NE(boxes.box(0).owned(), 0U);  // it still answers for these three
  EXPECT_LT(c.done(), c.sent());
  c.answers = true;
  c.settle(milliseconds(100));
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_EQ(c.done(), c.sent());
  const std::uint64_t owned = boxes.count(0, BoxCounter::owned);
  for (int i = 0; i < 50; ++i) {
    c.write(1);
    boxes.run(milliseconds(4));
  }
  c.settle(milliseconds(50));
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_EQ(c.done(), c.sent());
  EXPECT_EQ(boxes.count(0, BoxCounter::owned), owned);
  EXPECT_EQ(boxes.box(0).owned(), 0U);
  EXPECT_EQ(boxes.box(1).owned(), 0U);
  EXPECT_EQ(boxes.box(0).stored().n + boxes.box(1).stored().n, 0U);
}
INSTANTIATE_TEST_SUITE_P(EitherBox, Leaving, ::testing::Values(0U, 1U));

// What it said on the way out was lost; it says it again.
TEST(LeavingBox, RepeatsItself) {
  ByHand boxes;
  Connection c(boxes, {11}, {21}, 7);
  boxes.heard = [&](std::uint32_t site, const ByHand::Seen& s) { c.hear(site, s); };
  ASSERT_TRUE(c.until_owned());
  int left = 0;
  boxes.lose = [&](std::uint32_t, const Message& m) { return m.say == Say::kLeave && ++left <= 2; };
  boxes.leave(1);
  for (int i = 0; i < 20; ++i) {
    c.write(1);
    boxes.run(milliseconds(2));
  }
  c.settle(milliseconds(50));
  EXPECT_GT(left, 2);
  EXPECT_EQ(boxes.box(0).owned(), 0U);
  EXPECT_EQ(boxes.box(1).owned(), 0U);
  EXPECT_EQ(c.done(), c.sent());
}

}  // namespace
}  // namespace weft::wan
