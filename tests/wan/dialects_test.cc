// A pair of boxes between endpoints that speak irn or srnic: what is taken ahead of a gap and what is said of
// it, and READs that are packets as others.
#include "tests/wan/speaking.h"

namespace weft::wan {
namespace {

// Only the missing packet goes again, and the far endpoint sees no gap.
TEST_P(Speaking, WhatComesAheadIsKeptAndNamed) {
  begin();
  const Seq at = next;
  emit(at + 1);
  emit(at + 2);
  ASSERT_EQ(told.size(), 2U);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const Report r = rc_report(told[i], una);
    EXPECT_EQ(told[i].syndrome, wire::kSyndromeNakSequence);
    EXPECT_EQ(told[i].mode, GetParam());
    EXPECT_EQ(r.to, at);
    EXPECT_EQ(r.trigger, at + 1 + i);
    EXPECT_TRUE(r.kept);
    EXPECT_EQ(told[i].aeth_msn(), message(at) - 1);
    if (GetParam() != wire::Mode::kSrnic) continue;
    EXPECT_EQ(told[i].echo_msn(), message(at + 1 + i));
    EXPECT_EQ(r.hole.missing, 1U);
    EXPECT_EQ(r.hole.since, i);
  }
  EXPECT_EQ(una, at);
  emit(at);
  EXPECT_EQ(last().to, at + 3);
  EXPECT_TRUE(last().positive);
  EXPECT_EQ(told.back().aeth_msn(), message(at) + 2);
  boxes->run(milliseconds(4));
  EXPECT_EQ(given, (Packets{at, at + 1, at + 2}));
  EXPECT_EQ(count(0, BoxCounter::kept_ahead), 2U);
}

TEST_P(Speaking, WhatThereIsNoBitmapForIsDeclined) {
  begin([](std::uint32_t, BoxConfig& c) { c.loss_blocks = 0; });
  const Seq at = next;
  emit(at + 1);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(last().trigger, at + 1);
  EXPECT_FALSE(last().kept);
  emit(at);
  emit(at + 1);
  EXPECT_EQ(una, next);
  boxes->run(milliseconds(4));
  EXPECT_EQ(expected, next);
}

TEST_P(Speaking, ACopyIsAcknowledgedAgain) {
  begin();
  write(2);
  const std::size_t before = told.size();
  emit(next - 2);
  ASSERT_EQ(told.size(), before + 1);
  EXPECT_EQ(last().to, next);
  if (GetParam() == wire::Mode::kSrnic) {
    EXPECT_EQ(last().trigger, next - 2);
    EXPECT_EQ(told.back().ext_flags, wire::kEcxDuplicate);
  }
  boxes->run(milliseconds(4));
  EXPECT_EQ(given.size(), 2U);
}

// One that the requester sent before the pair took over, and whose acknowledgement it did not hear.
TEST_P(Speaking, ACopyFromBeforeTheOwnershipIsAcknowledgedByTheNearBox) {
  begin();
  const Seq from = next;
  write(1);
  told.clear();
  emit(from - 1);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(last().to, next);
}

// What is acknowledged `far` counts the messages of packets that came ahead, too.
TEST_P(Speaking, MessagesAreCountedWhereItAcknowledgesFar) {
  begin([](std::uint32_t, BoxConfig& c) { c.acknowledge = Acknowledge::kFar; });
  boxes->run(milliseconds(1));
  told.clear();
  const Seq at = next;
  emit(at + 1);
  emit(at);
  boxes->run(milliseconds(1));
  write(1);  // it is not with the far box yet
  boxes->run(milliseconds(1));
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(last().to, at + 2);
  EXPECT_EQ(told.back().aeth_msn(), message(at + 1));
  if (GetParam() == wire::Mode::kSrnic) {
    EXPECT_EQ(told.back().echo_msn(), message(at + 1));
  }
}

TEST_P(Speaking, EachCongestionMarkIsEchoedOnce) {
  begin();
  const Seq at = next;
  emit(at, wire::kWriteOnly, wire::kEcnCe);
  emit(at + 2, wire::kWriteOnly, wire::kEcnCe);
  emit(at + 1);
  ASSERT_EQ(told.size(), 3U);
  EXPECT_NE(told[0].bits & wire::kBecn, 0);
  EXPECT_NE(told[1].ext_flags & wire::kCeEcho, 0);
  EXPECT_EQ(told[2].bits & wire::kBecn, 0);
}

// Nothing is said of packets ahead while another one is still on the line. What was missing comes meanwhile,
// and more were marked than can wait to be told of.
TEST_P(Speaking, EachCongestionMarkIsEchoedOnceWhereItAcknowledgesFar) {
  begin([](std::uint32_t, BoxConfig& c) { c.acknowledge = Acknowledge::kFar; });
  boxes->run(milliseconds(1));
  told.clear();
  const Seq at = next;
  emit(at);
  constexpr std::uint32_t kMarked = kMostTriggers + 8;
  for (std::uint32_t i = 0; i < kMarked; ++i) emit(at + 2 + i, wire::kWriteOnly, wire::kEcnCe);
  emit(at + 1);
  boxes->run(milliseconds(5));
  EXPECT_EQ(una, next);
  EXPECT_EQ(echoes(), kMarked);
}

// It is lost with this box.
TEST_P(Speaking, WhatOnlyTheNearBoxHasIsNotSaidToBeKeptWhereItAcknowledgesFar) {
  begin([](std::uint32_t, BoxConfig& c) { c.acknowledge = Acknowledge::kFar; });
  boxes->run(milliseconds(1));
  told.clear();
  const Seq at = next;
  for (std::uint32_t n = 1; n <= 2; ++n) {
    emit(at + 1);
    ASSERT_EQ(told.size(), n);
    EXPECT_EQ(last().trigger, at + 1);
    EXPECT_FALSE(last().kept);
  }
  emit(at);
  boxes->run(milliseconds(4));
  EXPECT_EQ(expected, next);
}

// WRITEs behind a READ do not wait for its answer, and it reaches the far endpoint in its turn.
TEST_P(Speaking, AReadIsAPacketAsOthers) {
  begin();
  const Seq at = next;
  emit(at);
  emit(at + 1, wire::kReadRequest);
  emit(at + 2);
  EXPECT_EQ(una, at + 3);
  boxes->run(milliseconds(4));
  EXPECT_EQ(given, (Packets{at, at + 1, at + 2}));
  EXPECT_EQ(count(0, BoxCounter::renewed), 0U);
}

// The far endpoint may have the answers still; before it has the READ itself, a copy tells it nothing.
TEST_P(Speaking, AReadThatIsAskedForAgainPassesOnceItIsDelivered) {
  begin([](std::uint32_t, BoxConfig& c) { c.quiet = milliseconds(50); });
  const Seq at = next;
  boxes->cut = true;
  emit(at, wire::kReadRequest);
  emit(at, wire::kReadRequest);
  boxes->cut = false;
  boxes->run(milliseconds(12));
  ASSERT_EQ(given, (Packets{at}));
  write(1);
  boxes->run(milliseconds(3));
  ASSERT_EQ(count(0, BoxCounter::released), 0U);
  emit(at, wire::kReadRequest);
  boxes->run(milliseconds(3));
  EXPECT_EQ(given, (Packets{at, at + 1, at}));
}

// Its requester may have asked for all that it may, and says nothing until the answers come.
TEST_P(Speaking, AHalfRestsLaterWhenItsLastRequestIsARead) {
  begin();
  const Seq at = next;
  emit(at, wire::kReadRequest);
  boxes->run(milliseconds(12));
  EXPECT_EQ(count(0, BoxCounter::released), 0U) << "twice its time to rest";
  emit(at + 2, wire::kReadRequest);  // it is kept ahead
  emit(at + 1);
  boxes->run(milliseconds(12));
  EXPECT_EQ(given, (Packets{at, at + 1, at + 2}));
  EXPECT_EQ(count(0, BoxCounter::released), 0U);
  write(1);
  boxes->run(milliseconds(12));
  EXPECT_EQ(count(0, BoxCounter::released), 1U);
}

TEST_P(Speaking, AHalfWhoseReadIsNeverAnsweredRests) {
  begin();
  emit(next, wire::kReadRequest);
  boxes->run(milliseconds(40));
  EXPECT_EQ(count(0, BoxCounter::released), 1U);
}

TEST_P(Speaking, AReadWhoseAnswerFailsIsAnErrorOfItsRequester) {
  begin();
  const Seq at = next;
  emit(at, wire::kReadRequest);
  write(2);
  boxes->run(milliseconds(3));
  ASSERT_EQ(expected, next);
  from_responder(said(wire::kSyndromeNakAccess, at, at, false));
  boxes->run(milliseconds(2));
  EXPECT_EQ(told.back().syndrome, wire::kSyndromeNakAccess);
  EXPECT_EQ(told.back().psn, at.wire());
}

// The WRITE behind it was refused, and the READ, acknowledged long ago, will have no answer.
TEST_P(Speaking, AReadOfAHalfThatFailedIsRefusedByItsOwnNumber) {
  begin();
  const Seq at = next;
  emit(at, wire::kReadRequest);
  boxes->run(milliseconds(3));
  answers = false;
  write(1);
  boxes->run(milliseconds(1));
  from_responder(said(wire::kSyndromeNakAccess, at + 1, at + 1, false));
  boxes->run(milliseconds(3));
  told.clear();
  emit(at, wire::kReadRequest);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told.back().syndrome, wire::kSyndromeNakAccess);
  EXPECT_EQ(told.back().psn, at.wire());
}

// The requester was told that a packet is kept and never sends it again, so the half ends behind it.
TEST_P(Speaking, AHalfIsLetGoOfBehindWhatIsKeptAhead) {
  begin();
  const Seq at = next;
  emit(at + 1);
  boxes->leave(0);
  boxes->run(milliseconds(30));
  EXPECT_EQ(count(0, BoxCounter::released), 0U);
  const std::size_t before = told.size();
  emit(at + 2);  // this one comes too late
  EXPECT_EQ(told.size(), before);
  emit(at);
  boxes->run(milliseconds(30));
  EXPECT_EQ(count(0, BoxCounter::released), 1U);
  repairs = true;
  write(1);
  boxes->run(milliseconds(5));
  EXPECT_EQ(expected, next);
  EXPECT_EQ(una, next);
}

// The requester is gone in the middle of a repair.
TEST_P(Speaking, AGapThatNobodyFillsIsGivenUp) {
  begin();
  emit(next + 1);
  ASSERT_NE(boxes->box(0).stored().n, 0U);
  boxes->run(milliseconds(600));
  EXPECT_EQ(boxes->box(0).stored().n, 0U);
  EXPECT_EQ(boxes->box(0).owned(), 0U);
  EXPECT_EQ(boxes->box(0).loss_blocks_in_use(), 0U);
  EXPECT_EQ(boxes->bodies(), 0U);
}

// Behind the same names stands another connection, which speaks something else.
TEST_P(Speaking, AnotherDialectEndsTheOwnership) {
  begin();
  write(1);
  stray();
  boxes->run(milliseconds(10));
  EXPECT_EQ(expected, next);
  EXPECT_EQ(boxes->box(0).owned(), 0U);
  EXPECT_EQ(count(0, BoxCounter::other_mode), 1U);
}

// Neither a farewell that anybody can write nor a packet of another dialect is the site's own word, so what
// the requester was told is kept is delivered still.
TEST_P(Speaking, AStrangerTakesNothingThatWasSaidToBeKept) {
  for (const bool farewell : {true, false}) {
    begin();
    const Seq at = next;
    emit(at + 1);
    ASSERT_TRUE(last().kept);
    if (farewell) {
      farewell_from_line();
    } else {
      stray();
    }
    emit(at);
    boxes->run(milliseconds(10));
    EXPECT_EQ(expected, at + 2);
  }
}

// What came behind a half that is let go of was dropped, and its requester hears of it afterwards.
TEST_P(Speaking, WhatIsHeldBackBehindAGapIsAskedForAgain) {
  begin();
  const Seq at = next;
  emit(at + 1);
  boxes->leave(0);
  boxes->run(milliseconds(1));
  emit(at + 2);
  repairs = true;
  emit(at);
  boxes->run(milliseconds(30));
  EXPECT_EQ(count(0, BoxCounter::released), 1U);
  EXPECT_EQ(expected, at + 3);
}

TEST_P(Speaking, WhatLiesBeforeThePacketsThatAreKeptIsTakenAlsoWhenOneBehindThemWasHeldBack) {
  begin();
  const Seq at = next;
  emit(at + 2);
  boxes->leave(0);
  boxes->run(milliseconds(1));
  emit(at + 3);
  emit(at + 1);
  EXPECT_EQ(last().trigger, at + 1);
  EXPECT_TRUE(last().kept);
  emit(at);
  EXPECT_EQ(una, at + 3);
}

INSTANTIATE_TEST_SUITE_P(Dialects, Speaking, testing::Values(wire::Mode::kIrn, wire::Mode::kSrnic), name_of);

}  // namespace
}  // namespace weft::wan
