// READs inside an ownership: in order between the WRITEs around them, never answered early, never overtaken
// by an acknowledgement, which would say that their answer is lost.
#include <gtest/gtest.h>

#include "tests/wan/by_hand.h"

namespace weft::wan {
namespace {

// A connection whose path MTU is known, because it once sent a message of several packets, is owned.
struct Reading {
  explicit Reading(const std::function<void(std::uint32_t, BoxConfig&)>& change = {})
      : boxes(change), c(boxes, {11}, {21}, 0xFF'FFF8) {
    boxes.heard = [this](std::uint32_t site, const ByHand::Seen& s) {
      const std::uint8_t op = s.frame.header.opcode;
      if (site == 1 && op == wire::kReadRequest) asked.push_back(c.taken());
      if (site == 0 && op == wire::kAcknowledge && s.frame.header.syndrome <= wire::kSyndromeAck)
        overtaken = overtaken || (read_at != Seq{} && expand(s.frame.header.psn, read_at) >= read_at);
      if (site == 0 && op == wire::kReadResponseLast) read_at = {};
      c.hear(site, s);
    };
    c.learn_mtu();
    owned = c.until_owned();
  }
  void read(std::uint32_t packets) {
    if (read_at == Seq{}) read_at = c.next();
    c.read(packets * Connection::kMtu);
  }
  ByHand boxes;
  Connection c;
  bool owned = false;
  std::vector<std::uint64_t> asked;  // what the responder had when a READ came
  Seq read_at{};                     // an answer is awaited for this number
  bool overtaken = false;
};

// The responder is slow. The READ waits for the WRITEs before it, the WRITEs behind it wait for its answer,
// and then everything is acknowledged early again.
TEST(Read, PassesInOrderAndTheOwnershipGoesOn) {
  Reading r([](std::uint32_t, BoxConfig& c) {
    c.site_tries = 200;
    c.quiet = milliseconds(15);
  });
  ASSERT_TRUE(r.owned);
  r.c.answers = false;
  r.c.write(3);
  const std::uint64_t before = r.c.sent();
  EXPECT_EQ(r.c.done(), before);
  r.read(3);
  r.c.write(2);
  r.boxes.run(milliseconds(5));
  EXPECT_TRUE(r.asked.empty());
  r.c.answers = true;
  r.boxes.run(milliseconds(12));
  ASSERT_FALSE(r.asked.empty());
  EXPECT_EQ(r.asked.front(), before);
  EXPECT_EQ(r.c.done(), r.c.sent());
  EXPECT_EQ(r.boxes.count(0, BoxCounter::reads), 1U);
  EXPECT_EQ(r.boxes.count(0, BoxCounter::released), 0U);
  EXPECT_FALSE(r.overtaken);
  r.c.write(4);
  EXPECT_EQ(r.c.done(), r.c.sent()) << "acknowledged early";
  r.boxes.run(milliseconds(30));
  EXPECT_EQ(r.c.taken(), r.c.sent());
  EXPECT_EQ(r.boxes.bodies(), 0U);
}

TEST(Read, FollowsAnother) {
  Reading r;
  ASSERT_TRUE(r.owned);
  r.boxes.run(milliseconds(3));
  for (std::uint32_t i = 1; i < 5; ++i) r.read(i);
  r.c.write(1);
  r.boxes.run(milliseconds(3));
  EXPECT_GE(r.asked.size(), 4U) << "in one round trip";
  r.boxes.run(milliseconds(10));
  EXPECT_EQ(r.c.done(), r.c.sent());
  EXPECT_EQ(r.boxes.count(0, BoxCounter::reads), 4U);
  EXPECT_FALSE(r.overtaken);
}

// The answer of a READ was lost behind the box, and WRITEs after it were acknowledged early since.
TEST(Read, ThatIsRepeatedPassesAndNothingIsAcknowledgedMeanwhile) {
  Reading r;
  ASSERT_TRUE(r.owned);
  r.boxes.run(milliseconds(3));
  const Seq at = r.c.next();
  r.read(2);
  r.boxes.run(milliseconds(4));
  r.c.write(3);
  r.boxes.run(milliseconds(1));
  const std::size_t before = r.asked.size();
  r.read_at = at;
  r.c.emit(at);
  r.c.emit(at + 2);
  r.boxes.run(milliseconds(5));
  EXPECT_EQ(r.asked.size(), before + 1);
  EXPECT_EQ(r.read_at, Seq{}) << "answered again";
  EXPECT_FALSE(r.overtaken);
}

// Another connection of the same numbers READs where WRITEs were acknowledged, and beyond them. Its answer
// says nothing of the four that are kept.
TEST(Read, ThatEndsBehindWhatWasAcknowledgedTakesNothingOfItAlong) {
  Reading r([](std::uint32_t, BoxConfig& c) { c.site_tries = 200; });
  ASSERT_TRUE(r.owned);
  r.boxes.run(milliseconds(3));
  r.c.answers = false;
  r.c.write(4);
  ASSERT_EQ(r.c.done(), r.c.sent());  // acknowledged early
  Frame f;
  f.header.opcode = wire::kReadRequest;
  f.header.dest_qp = {21};
  f.header.psn = (r.c.next() - 1).wire();
  f.header.dma_len = 2 * Connection::kMtu;
  f.source = Connection::kA;
  f.destination = Connection::kB;
  r.boxes.from_site(0, f);
  Frame answer;
  answer.header.opcode = wire::kReadResponseLast;
  answer.header.dest_qp = {11};
  answer.header.psn = r.c.next().wire();
  answer.source = Connection::kB;
  answer.destination = Connection::kA;
  const std::uint64_t sent = r.c.sent();
  r.boxes.from_line(0, answer);
  r.c.answers = true;
  r.boxes.run(milliseconds(50));
  EXPECT_EQ(r.c.taken(), sent);
  EXPECT_EQ(r.boxes.box(0).stored().n, 0U);
  r.c.write(2);
  r.c.settle(milliseconds(30));
  EXPECT_EQ(r.c.done(), r.c.sent());
  EXPECT_EQ(r.c.taken(), r.c.sent());
}

TEST(Read, ThatIsLostIsRepeatedByItsRequester) {
  Reading r;
  ASSERT_TRUE(r.owned);
  r.boxes.run(milliseconds(3));
  r.boxes.cut = true;
  r.read(2);
  r.c.write(1);
  r.boxes.cut = false;
  r.boxes.run(milliseconds(3));
  EXPECT_TRUE(r.asked.empty());
  r.c.settle(milliseconds(30));
  EXPECT_EQ(r.c.done(), r.c.sent());
  EXPECT_EQ(r.c.taken(), r.c.sent());
  EXPECT_FALSE(r.overtaken);
}

TEST(Read, ThatIsRefusedIsAnErrorOfTheRequester) {
  Reading r;
  ASSERT_TRUE(r.owned);
  r.boxes.run(milliseconds(3));
  r.c.refuses = true;
  r.read(2);
  r.boxes.run(milliseconds(5));
  EXPECT_TRUE(r.c.failed());
}

// The numbers of the wire have begun again since the ownership did.
TEST(Read, ThatIsRefusedIsAnErrorOfTheRequesterHoweverManyWentBefore) {
  Reading r;
  ASSERT_TRUE(r.owned);
  r.boxes.run(milliseconds(3));
  constexpr std::uint32_t kNumbers = 1U << 21U;
  for (int i = 0; i < 9; ++i) {
    r.c.read(kNumbers * Connection::kMtu);
    r.boxes.run(milliseconds(4));
  }
  ASSERT_EQ(r.c.done(), r.c.sent());
  ASSERT_EQ(r.boxes.count(0, BoxCounter::owned), 1U);
  ASSERT_EQ(r.boxes.count(0, BoxCounter::reads), 9U);
  r.c.refuses = true;
  r.read(2);
  r.boxes.run(milliseconds(5));
  EXPECT_TRUE(r.c.failed());
}

// How many numbers it takes is not known, so nobody could own what is behind it.
TEST(Read, OfUnknownLengthEndsTheOwnership) {
  ByHand boxes;
  Connection c(boxes, {11}, {21}, 7);
  boxes.heard = [&c](std::uint32_t site, const ByHand::Seen& s) { c.hear(site, s); };
  ASSERT_TRUE(c.until_owned());
  c.read(2 * Connection::kMtu);
  c.settle(milliseconds(30));
  EXPECT_EQ(c.done(), c.sent());
  EXPECT_EQ(boxes.count(0, BoxCounter::drained_for_read), 1U);
  EXPECT_EQ(boxes.count(0, BoxCounter::reads), 0U);
}

}  // namespace
}  // namespace weft::wan
