// The papers' rules of recovery, one test each (IRN §3.1, §4.3, §7; SRNIC §4.4.2), on a stream and a pool
// alone.
#include <gtest/gtest.h>

#include <vector>

#include "core/transport/loss/advance.h"
#include "core/transport/loss/scheme.h"

namespace weft {
namespace {

class LossTest : public ::testing::Test {
 protected:
  // Ten packets are out, none acknowledged.
  void SetUp() override {
    s.start(Seq{1000});
    s.nxt = s.max = Seq{1010};
  }
  LossContext context() { return {pool, counters, threshold}; }
  void nack(const LossScheme& scheme, std::uint64_t trigger, bool kept = true) {
    LossContext c = context();
    scheme.on_nack(c, s, {Seq{trigger}, kept, {}});
  }
  void ack(const LossScheme& scheme, std::uint64_t to) {
    LossContext c = context();
    const std::uint64_t acked = to - s.una.v;
    s.una = Seq{to};
    if (s.nxt < s.una) s.nxt = s.una;
    scheme.on_ack(c, s, acked);
  }
  void timeout(const LossScheme& scheme) {
    LossContext c = context();
    scheme.on_timeout(c, s);
  }
  // Everything that goes out again now.
  std::vector<std::uint64_t> resent(const LossScheme& scheme) {
    LossContext c = context();
    std::vector<std::uint64_t> out;
    for (Seq seq; scheme.next_lost(c, s, seq); s.resent(seq)) out.push_back(seq.v);
    return out;
  }
  using Packets = std::vector<std::uint64_t>;

  LossPool pool{4, 64};
  Counters counters;
  SendStream s;
  std::uint32_t threshold = 1;
};

TEST_F(LossTest, TheFirstPacketResentIsTheFirstOneMissing) {
  nack(kIrn, 1003);
  EXPECT_TRUE(s.recovering());
  EXPECT_EQ(resent(kIrn), (Packets{1000, 1001, 1002}));
}

TEST_F(LossTest, OnlyWhatLiesBelowASelectiveAckIsLostAndOnlyOnce) {
  nack(kIrn, 1002);
  EXPECT_EQ(resent(kIrn), (Packets{1000, 1001}));
  nack(kIrn, 1003);
  EXPECT_EQ(resent(kIrn), Packets{});
  nack(kIrn, 1006);
  EXPECT_EQ(resent(kIrn), (Packets{1004, 1005}));
}

TEST_F(LossTest, RecoveryEndsBehindTheLastPacketSentBeforeIt) {
  nack(kIrn, 1002);
  resent(kIrn);
  s.nxt = s.max = Seq{1020};
  ack(kIrn, 1009);
  EXPECT_TRUE(s.recovering());
  ack(kIrn, 1010);
  EXPECT_FALSE(s.recovering());
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_F(LossTest, SrnicsRecoveryEndsWhenAllThatWasResentIsAcknowledged) {
  nack(kSrnic, 1002);
  EXPECT_EQ(resent(kSrnic), (Packets{1000, 1001}));
  ack(kSrnic, 1001);
  EXPECT_TRUE(s.recovering());
  ack(kSrnic, 1003);  // and what was kept behind them
  EXPECT_FALSE(s.recovering());
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_F(LossTest, AHoleBehindTheRecoveryBeginsTheNextOne) {
  nack(kIrn, 1001);
  EXPECT_EQ(resent(kIrn), Packets{1000});
  s.nxt = s.max = Seq{1020};
  nack(kIrn, 1015);  // of packets sent meanwhile, 1012 to 1014 are lost, and so are 1002 to 1009
  ack(kIrn, 1012);
  EXPECT_TRUE(s.recovering());
  EXPECT_EQ(counters.get(Counter::recoveries), 2U);
  EXPECT_EQ(resent(kIrn), (Packets{1012, 1013, 1014}));
}

TEST_F(LossTest, ATriggerThatWasNotKeptIsLostToo) {
  nack(kIrn, 1002, false);
  EXPECT_EQ(resent(kIrn), (Packets{1000, 1001, 1002}));
}

// The answer to the oldest does not tell whether its first copy was lost. That to the newest does.
TEST_F(LossTest, AfterATimeOutTheNewestPacketAsksWhatIsMissing) {
  for (const LossScheme* scheme : {&kIrn, &kSrnic}) {
    SetUp();
    timeout(*scheme);
    EXPECT_EQ(resent(*scheme), Packets{1000});
    ack(*scheme, 1001);
    EXPECT_EQ(resent(*scheme), Packets{1009});
    nack(*scheme, 1009);
    EXPECT_EQ(resent(*scheme), (Packets{1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008}));
    ack(*scheme, 1010);
    EXPECT_FALSE(s.recovering());
    EXPECT_EQ(pool.in_use(), 0U);
  }
}

TEST_F(LossTest, AfterATimeOutWhatASackLeavesOutGoesAgainWithTheOldest) {
  nack(kIrn, 1004);
  resent(kIrn);
  timeout(kIrn);
  EXPECT_EQ(resent(kIrn), (Packets{1000, 1001, 1002, 1003}));
  ack(kIrn, 1005);
  EXPECT_EQ(resent(kIrn), Packets{1009});
}

// The first copies are only late: their ACKs come one by one, and none of them releases anything.
TEST_F(LossTest, AfterANeedlessTimeOutTheWindowIsNotResent) {
  timeout(kIrn);
  EXPECT_EQ(resent(kIrn), Packets{1000});
  ack(kIrn, 1001);
  EXPECT_EQ(resent(kIrn), Packets{1009});
  for (std::uint64_t to = 1002; to < 1010; ++to) {
    ack(kIrn, to);
    EXPECT_EQ(resent(kIrn), Packets{}) << to;
  }
}

// A NACK that a first copy provoked says what is missing below it, and nothing of what is above.
TEST_F(LossTest, ANackOfALateFirstCopyReleasesWhatIsBelowIt) {
  for (const LossScheme* scheme : {&kIrn, &kSrnic}) {
    SetUp();
    timeout(*scheme);
    EXPECT_EQ(resent(*scheme), Packets{1000});
    ack(*scheme, 1001);
    EXPECT_EQ(resent(*scheme), Packets{1009});
    nack(*scheme, 1002);
    EXPECT_EQ(resent(*scheme), Packets{1001});
    nack(*scheme, 1009);
    EXPECT_EQ(resent(*scheme), (Packets{1003, 1004, 1005, 1006, 1007, 1008}));
    release_block(pool, s.block);
  }
}

TEST_F(LossTest, WithoutSackTwoPacketsFollowEachAcknowledgedOneAfterATimeOut) {
  timeout(kIrnWithoutSack);
  EXPECT_EQ(resent(kIrnWithoutSack), Packets{1000});
  ack(kIrnWithoutSack, 1001);
  EXPECT_EQ(resent(kIrnWithoutSack), (Packets{1001, 1002}));
  ack(kIrnWithoutSack, 1003);
  EXPECT_EQ(resent(kIrnWithoutSack), (Packets{1003, 1004, 1005, 1006}));
}

TEST_F(LossTest, WithoutABitmapItGoesBack) {
  while (pool.take() != kNoBlock) {
  }
  nack(kIrn, 1003);
  EXPECT_EQ(s.nxt, Seq{1000});
  EXPECT_EQ(counters.get(Counter::fallback_go_back_n), 1U);
}

TEST_F(LossTest, AThresholdOfNacksForgivesReordering) {
  threshold = 3;
  nack(kIrn, 1001);
  nack(kIrn, 1002);
  EXPECT_FALSE(s.recovering());
  ack(kIrn, 1003);  // 1000 was late, not lost
  EXPECT_EQ(pool.in_use(), 0U);
  for (std::uint64_t trigger : {1004U, 1005U, 1006U}) nack(kIrn, trigger);
  EXPECT_TRUE(s.recovering());
  EXPECT_EQ(resent(kIrn), Packets{1003});
}

TEST_F(LossTest, WithoutSackItResendsHoleByHole) {
  nack(kIrnWithoutSack, 1005);
  EXPECT_EQ(resent(kIrnWithoutSack), Packets{1000});
  nack(kIrnWithoutSack, 1006);
  EXPECT_EQ(resent(kIrnWithoutSack), Packets{});
  ack(kIrnWithoutSack, 1003);
  EXPECT_EQ(resent(kIrnWithoutSack), Packets{1003});
  ack(kIrnWithoutSack, 1010);
  EXPECT_FALSE(s.recovering());
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST_F(LossTest, GoBackNOverIrnsWireGoesBackOncePerLoss) {
  nack(kIrnGoBackN, 1005, false);
  EXPECT_EQ(s.nxt, Seq{1000});
  s.nxt = Seq{1004};
  nack(kIrnGoBackN, 1006, false);
  EXPECT_EQ(s.nxt, Seq{1004});
  RecvStream r;
  r.expected = Seq{5};
  LossContext c = context();
  EXPECT_EQ(kIrnGoBackN.classify(c, r, Seq{7}), Arrival::kDecline);
  EXPECT_EQ(pool.in_use(), 0U);
}

// The receiver's two bits: arrived, and last packet of a message (IRN §5.3.3).
TEST_F(LossTest, TheExpectedNumberAndTheMessagesAdvanceTogether) {
  RecvStream r;
  r.expected = Seq{0};
  LossContext c = context();
  for (const auto& [seq, end] :
       std::vector<std::pair<std::uint64_t, bool>>{{1, true}, {2, false}, {4, true}, {5, true}}) {
    ASSERT_EQ(kIrn.classify(c, r, Seq{seq}), Arrival::kKeep);
    kIrn.hold(c, r, Seq{seq}, end);
  }
  EXPECT_EQ(kIrn.classify(c, r, Seq{4}), Arrival::kDuplicate);
  Advance a = receive_in_order(pool, r, true);
  EXPECT_EQ(a.packets, 3U);
  EXPECT_EQ(a.messages, 2U);
  EXPECT_EQ(r.expected, Seq{3});
  a = receive_in_order(pool, r, true);  // the run that came last is passed in one step
  EXPECT_EQ(a.packets, 3U);
  EXPECT_EQ(a.messages, 3U);
  EXPECT_EQ(r.expected, Seq{6});
  EXPECT_EQ(pool.in_use(), 0U);
}

}  // namespace
}  // namespace weft
