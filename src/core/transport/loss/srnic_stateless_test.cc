// The requester without a bitmap and the receiver that names what it lacks, one rule at a time (SRNIC
// §4.4.2).
#include <gtest/gtest.h>

#include <vector>

#include "core/transport/loss/scheme.h"

namespace weft {
namespace {

using Packets = std::vector<std::uint64_t>;

class StatelessTest : public ::testing::Test {
 protected:
  // Twenty packets are out, none acknowledged.
  void SetUp() override {
    s.start(Seq{1000});
    s.nxt = s.max = Seq{1020};
    r.expected = Seq{1000};
  }
  LossContext context() { return {pool, counters}; }
  // The receiver gets a packet, ahead of its turn; what it names.
  Hole arrive(std::uint64_t seq) {
    LossContext c = context();
    EXPECT_EQ(kSrnicStateless.classify(c, r, Seq{seq}), Arrival::kKeep);
    kSrnicStateless.hold(c, r, Seq{seq}, false);
    return hole_before(pool, r, Seq{seq});
  }
  void nack(std::uint64_t trigger, Hole hole, bool kept = true) {
    LossContext c = context();
    kSrnicStateless.on_nack(c, s, {Seq{trigger}, kept, hole});
  }
  void ack(std::uint64_t to) {
    LossContext c = context();
    const std::uint64_t acked = to - s.una.v;
    s.una = Seq{to};
    kSrnicStateless.on_ack(c, s, acked);
  }
  Packets resent() {
    LossContext c = context();
    Packets out;
    for (Seq seq; kSrnicStateless.next_lost(c, s, seq); s.resent(seq)) out.push_back(seq.v);
    return out;
  }
  bool recovering() const { return s.recovering(); }

  LossPool pool{2, 1024};
  Counters counters;
  SendStream s;
  RecvStream r;
};

TEST_F(StatelessTest, TheReceiverNamesTheHoleBeforeTheLatestRun) {
  const auto expect = [](Hole h, unsigned missing, unsigned since) {
    EXPECT_EQ(h.missing, missing);
    EXPECT_EQ(h.since, since);
  };
  expect(arrive(1003), 3, 0);
  expect(arrive(1004), 3, 1);
  expect(arrive(1005), 3, 2);
  expect(arrive(1010), 4, 0);
  expect(arrive(1011), 4, 1);
  expect(arrive(1007), 0, 0);  // late, or resent: its hole was named
  expect(arrive(1012), 2, 2);  // 1008 and 1009
  LossContext c = context();
  release_block(pool, r.block);
  EXPECT_EQ(c.pool.in_use(), 0U);
}

TEST_F(StatelessTest, WhatDoesNotFitIsNotNamedWrongly) {
  EXPECT_EQ(arrive(1300).missing, 255U);  // 1045 to 1299; the first 45 are left to the time-out
  for (std::uint64_t seq = 1301; seq <= 1555; ++seq) EXPECT_EQ(arrive(seq).since, seq - 1300);
  EXPECT_EQ(arrive(1556).missing, 0U);
  release_block(pool, r.block);
}

TEST_F(StatelessTest, TheRequesterResendsWhatIsNamedOnceAndKeepsNoBitmap) {
  nack(1003, {1, 0});
  EXPECT_EQ(resent(), Packets{1002});
  nack(1004, {1, 1});
  EXPECT_EQ(resent(), Packets{});
  nack(1010, {4, 1});
  EXPECT_EQ(resent(), (Packets{1005, 1006, 1007, 1008}));
  EXPECT_EQ(s.block, kNoBlock);
  EXPECT_EQ(pool.in_use(), 0U);
}

// The NACK of 1003 is lost: that of 1004 names the same hole.
TEST_F(StatelessTest, ALostNackIsMadeUpForByTheNext) {
  EXPECT_EQ(arrive(1003).missing, 3U);
  nack(1004, arrive(1004));
  EXPECT_EQ(resent(), (Packets{1000, 1001, 1002}));
  release_block(pool, r.block);
}

TEST_F(StatelessTest, ANackThatNamesNothingResendsNothing) {
  nack(1003, {});
  EXPECT_FALSE(recovering());
  EXPECT_EQ(resent(), Packets{});
}

TEST_F(StatelessTest, HolesNamedBeforeTheFirstIsResentBecomeOneRange) {
  nack(1002, {1, 0});
  nack(1005, {2, 0});
  EXPECT_EQ(resent(), (Packets{1001, 1002, 1003, 1004}));
}

TEST_F(StatelessTest, RecoveryEndsWhenAllThatWasResentIsAcknowledged) {
  nack(1003, {1, 0});
  resent();
  nack(1006, {1, 0});
  resent();
  ack(1005);
  EXPECT_TRUE(recovering());
  ack(1007);
  EXPECT_FALSE(recovering());
  nack(1010, {1, 0});  // and the next one is another recovery
  EXPECT_EQ(resent(), Packets{1009});
  EXPECT_EQ(counters.get(Counter::recoveries), 2U);
}

// Of what lies below una nothing is resent, whatever an old NACK says.
TEST_F(StatelessTest, AnOldNameIsCutToWhatIsOutstanding) {
  ack(1004);
  nack(1006, {4, 0});
  EXPECT_EQ(resent(), (Packets{1004, 1005}));
  nack(1003, {2, 0});
  EXPECT_EQ(resent(), Packets{});
}

TEST_F(StatelessTest, AReceiverWithoutBitmapLacksEverything) {
  nack(1002, {}, false);
  EXPECT_EQ(resent(), (Packets{1000, 1001, 1002}));
  nack(1003, {}, false);
  EXPECT_EQ(resent(), Packets{1003});
}

TEST_F(StatelessTest, AfterATimeOutTwoPacketsFollowEachAcknowledgedOne) {
  LossContext c = context();
  kSrnicStateless.on_timeout(c, s);
  EXPECT_EQ(resent(), Packets{1000});
  ack(1001);
  EXPECT_EQ(resent(), (Packets{1001, 1002}));
  ack(1020);
  EXPECT_FALSE(recovering());
}

}  // namespace
}  // namespace weft
