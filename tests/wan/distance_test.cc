// A pair of boxes with the configuration that it has when nothing is set, at every distance: on one floor,
// across a continent, over a satellite. The times that depend on the line follow the round trip that its
// partner's answers tell.
#include <gtest/gtest.h>

#include "tests/wan/by_hand.h"

namespace weft::wan {
namespace {

void unset(std::uint32_t which, BoxConfig& c) {
  const BoxConfig small = small_box(which);
  c = BoxConfig{};
  c.instance = small.instance;
  c.seed = small.seed;
  c.secret = small.secret;
  c.site_tries = 200;
}

class Distance : public ::testing::TestWithParam<std::int64_t> {
 protected:
  Distance() : boxes(unset), c(boxes, {11}, {21}, 0xFF'FF80) {
    boxes.delay = microseconds(GetParam());
    boxes.heard = [this](std::uint32_t site, const ByHand::Seen& s) { c.hear(site, s); };
  }
  // Nothing was taken for lost, or for somebody else's.
  void expect_calm() {
    for (std::uint32_t i = 0; i < 2; ++i) {
      EXPECT_EQ(boxes.count(i, BoxCounter::partner_found), 1U);
      EXPECT_EQ(boxes.count(i, BoxCounter::partner_lost), 0U);
      EXPECT_EQ(boxes.count(i, BoxCounter::orphaned), 0U);
      EXPECT_EQ(boxes.count(i, BoxCounter::unlearned), 0U);
    }
    EXPECT_EQ(boxes.count(0, BoxCounter::declined), 0U);
    EXPECT_EQ(boxes.count(0, BoxCounter::renewed), 0U);
    EXPECT_EQ(boxes.count(0, BoxCounter::line_resent), 0U);
  }
  ByHand boxes;
  Connection c;
};

// The requester never rests: a packet each eighth of a round trip, or each half millisecond.
TEST_P(Distance, AStreamIsOwnedAndStaysSo) {
  const Duration between = std::max(boxes.delay / 4, microseconds(500));
  for (int i = 0; i < 400; ++i) {
    c.write(1);
    boxes.run(between);
    if (i % 32 == 31 && c.done() < c.sent()) c.resend();
  }
  EXPECT_EQ(boxes.count(0, BoxCounter::owned), 1U);
  boxes.run(boxes.delay * 20 + milliseconds(200));
  EXPECT_EQ(c.done(), c.sent());
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_EQ(boxes.box(0).owned() + boxes.box(1).owned(), 0U) << "released when it rests";
  EXPECT_EQ(boxes.bodies(), 0U);
  expect_calm();
}

// The requester waits for each answer, so nothing but answers tells the boxes how far apart they are.
TEST_P(Distance, ARequesterThatWaitsForEachAnswerIsOwned) {
  while (boxes.now() < Time{} + milliseconds(300) + boxes.delay * 60 &&
         boxes.count(0, BoxCounter::owned) == 0) {
    c.write(1);
    for (int k = 0; k < 40 && c.done() < c.sent(); ++k) boxes.run(boxes.delay / 4 + microseconds(10));
  }
  EXPECT_EQ(boxes.count(0, BoxCounter::owned), 1U);
  for (int i = 0; i < 20; ++i) {
    c.write(1);
    EXPECT_EQ(c.done(), c.sent()) << "acknowledged early";
    boxes.run(boxes.delay / 10);
  }
  boxes.run(boxes.delay * 20 + milliseconds(200));
  EXPECT_EQ(c.taken(), c.sent());
  expect_calm();
}

// A second, and then the satellite's orbit.
INSTANTIATE_TEST_SUITE_P(OfMicrosecondsEachWay, Distance,
                         ::testing::Values(5, 1000, 45'000, 60'000, 120'000, 300'000, 1'000'000));

// The line grows longer by far than it was, as when a queue builds up on it: nothing is taken for lost for
// good.
TEST(Distance, ThatGrowsIsFollowed) {
  ByHand boxes(unset);
  Connection c(boxes, {11}, {21}, 7);
  boxes.heard = [&](std::uint32_t site, const ByHand::Seen& s) { c.hear(site, s); };
  ASSERT_TRUE(c.until_owned());
  boxes.delay = milliseconds(250);
  for (int i = 0; i < 2000; ++i) {
    c.write(1);
    boxes.run(microseconds(900));
  }
  c.settle(seconds(3));
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_EQ(c.done(), c.sent());
  EXPECT_LE(boxes.count(0, BoxCounter::partner_lost), 1U);
  EXPECT_LE(boxes.count(1, BoxCounter::partner_lost), 1U);
  EXPECT_LT(boxes.count(0, BoxCounter::line_resent), 4 * c.sent());
}

// The two boxes are set up differently, and the near one's word that it lets go is never heard: it must not
// become a wire while the far box, which is more patient, still keeps what comes.
TEST(Distance, IsNotTheOnlyReasonForPatience) {
  ByHand boxes([](std::uint32_t which, BoxConfig& c) {
    if (which == 1) c.patience = milliseconds(200);
  });
  Connection c(boxes, {11}, {21}, 7);
  boxes.heard = [&](std::uint32_t site, const ByHand::Seen& s) { c.hear(site, s); };
  ASSERT_TRUE(c.until_owned());
  boxes.run(milliseconds(3));
  boxes.cut = true;
  for (int i = 0; i < 400 && boxes.box(0).owned() != 0; ++i) boxes.run(milliseconds(1));
  EXPECT_EQ(boxes.box(0).owned(), 0U);
  EXPECT_EQ(boxes.box(1).owned(), 0U);
}

}  // namespace
}  // namespace weft::wan
