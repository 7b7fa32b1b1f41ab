// Connections that a box learns from their acknowledgements: that begin anew, that are too many, that the
// partner has no place for or refuses; and what a box believes of its partner and of an endpoint.
#include <gtest/gtest.h>

#include "tests/wan/by_hand.h"

namespace weft::wan {
namespace {

constexpr Qpn kRequester{11};
constexpr Qpn kResponder{21};
constexpr Duration kRest = milliseconds(50);  // longer than patience

void listen(ByHand& boxes, std::initializer_list<Connection*> connections) {
  const std::vector<Connection*> all(connections);
  boxes.heard = [all](std::uint32_t site, const ByHand::Seen& s) {
    for (Connection* c : all) c->hear(site, s);
  };
}

TEST(Learning, NeedsNothingButAcknowledgements) {
  ByHand boxes;
  Connection c(boxes, kRequester, kResponder, 0xFF'FFF0);  // the numbers wrap meanwhile
  listen(boxes, {&c});
  ASSERT_TRUE(c.until_owned());
  c.write(20);
  EXPECT_EQ(c.done(), c.sent()) << "acknowledged early";
  boxes.run(milliseconds(30));
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_EQ(boxes.box(0).owned() + boxes.box(1).owned(), 0U) << "released when it rests";
  EXPECT_EQ(boxes.bodies(), 0U);
}

// A long line: when an acknowledgement comes, many more packets have asked for one than a box marks.
TEST(Learning, KnowsWhatWasAskedARoundTripAgo) {
  ByHand boxes;
  Connection c(boxes, kRequester, kResponder, 1000);
  listen(boxes, {&c});
  for (int i = 0; i < 100 && boxes.count(0, BoxCounter::owned) == 0; ++i) {
    c.write(60);
    boxes.run(kDelay);
    if (i % 8 == 7) c.resend();
  }
  EXPECT_EQ(boxes.count(0, BoxCounter::owned), 1U);
  c.settle(milliseconds(100));
  EXPECT_EQ(c.taken(), c.sent());
}

// As many connections as the table has rows were learned, and rest for good.
TEST(Learning, GoesOnWhenTheTableIsFullOfConnectionsThatRest) {
  ByHand boxes;
  for (std::uint32_t i = 0; i < 6; ++i) {
    Connection c(boxes, {kRequester.v + i}, {kResponder.v + i}, 1000 * i);
    listen(boxes, {&c});
    EXPECT_TRUE(c.until_owned()) << i;
    boxes.run(kRest);
    EXPECT_EQ(c.taken(), c.sent()) << i;
  }
}

// A requester connects its queue pair to another one of the same host.
TEST(Learning, BeginsAnewWhenARequesterSendsToSomebodyElse) {
  for (const std::uint32_t first : {10U, 500'000U}) {
    ByHand boxes;
    Connection before(boxes, kRequester, kResponder, 1000);
    Connection after(boxes, kRequester, {kResponder.v + 1}, first);
    listen(boxes, {&before, &after});
    ASSERT_TRUE(before.until_owned());
    boxes.run(kRest);
    EXPECT_TRUE(after.until_owned()) << first;
    after.settle(kRest);
    EXPECT_EQ(after.taken(), after.sent());
  }
}

// A responder's queue pair serves another requester, with numbers below, above, or going on.
TEST(Learning, BeginsAnewWhenAResponderServesSomebodyElse) {
  for (const std::uint32_t from : {0U, 1U, 2U}) {
    ByHand boxes;
    Connection before(boxes, kRequester, kResponder, 5000);
    listen(boxes, {&before});
    ASSERT_TRUE(before.until_owned());
    boxes.run(kRest);
    const std::uint32_t first[] = {100, 60'000, before.next().wire().v};
    Connection after(boxes, {kRequester.v + 1}, kResponder, first[from]);
    listen(boxes, {&after});
    EXPECT_TRUE(after.until_owned()) << first[from];
    after.settle(kRest);
    EXPECT_EQ(after.taken(), after.sent());
  }
}

// Packets of one half, each after a rest and each as far below the one before as numbers can be told apart:
// the count must not fall below zero, or what is acknowledged early while it comes back up is kept for ever.
TEST(Learning, CountsNeverBelowZero) {
  ByHand boxes;
  constexpr std::uint32_t kFar = (1U << 23U) - 1;
  std::uint32_t psn = 0;
  for (const std::uint32_t down : {0U, kFar, kFar, 20U}) {
    psn = (psn - down) & kPsnMask;
    Connection stray(boxes, kRequester, kResponder, psn);
    stray.write(1);
    boxes.run(kRest);
  }
  Connection c(boxes, kRequester, kResponder, psn);
  listen(boxes, {&c});
  ASSERT_TRUE(c.until_owned());
  boxes.run(milliseconds(3));
  boxes.cut = true;
  c.write(32);  // beyond the wrap
  boxes.run(milliseconds(3));
  boxes.cut = false;
  c.settle(milliseconds(100));
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_EQ(c.done(), c.sent());
  boxes.run(milliseconds(600));  // longer than give_up
  EXPECT_EQ(boxes.box(0).stored().n, 0U);
  EXPECT_EQ(boxes.bodies(), 0U);
}

// A full table, and acknowledgements of nobody known: each is held against the streams between its own two
// addresses and no other, so a stranger's cost nothing.
TEST(Learning, LooksOnlyAtStreamsBetweenTheTwoThatTalk) {
  constexpr std::uint32_t kHalves = 1000;
  ByHand boxes([](std::uint32_t, BoxConfig& c) { c.halves = kHalves; });
  Frame f;
  f.header.opcode = wire::kWriteOnly;
  f.header.bits = wire::kAckReq;
  f.payload = 64;
  for (std::uint32_t i = 0; i < kHalves; ++i) {
    f.source = wire::Address::v4(10, 0, 0, static_cast<std::uint8_t>(i % 250));
    f.destination = Connection::kB;
    f.header.dest_qp = {i};
    boxes.from_site(0, f);
  }
  Frame ack;
  ack.header.opcode = wire::kAcknowledge;
  ack.header.set_aeth(wire::kSyndromeAck, 1);
  ack.source = Connection::kB;
  const auto compared = [&](const wire::Address& to) {
    const std::uint64_t before = boxes.count(0, BoxCounter::compared);
    ack.destination = to;
    boxes.from_line(0, ack);
    return boxes.count(0, BoxCounter::compared) - before;
  };
  EXPECT_EQ(compared(wire::Address::v4(10, 0, 0, 7)), 4U);
  EXPECT_EQ(compared(wire::Address::v4(10, 0, 9, 9)), 0U);
}

// The far box has one place, and somebody who keeps it. Each question for another one costs a half a round
// trip in which it stands still: they are rare.
TEST(Partner, WithoutAPlaceIsNotAskedAgainAndAgain) {
  ByHand boxes([](std::uint32_t which, BoxConfig& c) {
    if (which == 1) c.halves = 1;
  });
  Connection owned(boxes, kRequester, kResponder, 1000);
  Connection other(boxes, {kRequester.v + 1}, {kResponder.v + 1}, 90'000);
  listen(boxes, {&owned, &other});
  ASSERT_TRUE(owned.until_owned());
  for (int i = 0; i < 300; ++i) {
    owned.write(1);
    other.write(1);
    boxes.run(milliseconds(1));
    if (i % 50 == 49) other.resend();
  }
  other.settle(kRest);
  EXPECT_EQ(other.taken(), other.sent());
  EXPECT_EQ(owned.done(), owned.sent());
  EXPECT_LT(boxes.count(0, BoxCounter::drop_waiting), 30U);
}

// More halves ask at one time than the partner tells numbers apart of, and the first question is lost.
TEST(Partner, IsAskedUnderANewNumberByAHalfThatHeardNothing) {
  constexpr std::uint32_t kHalves = 100;
  ByHand boxes([](std::uint32_t, BoxConfig& c) {
    c.halves = 128;
    c.frames = 4096;
  });
  std::vector<Connection> all;
  for (std::uint32_t i = 0; i < kHalves; ++i)
    all.emplace_back(boxes, Qpn{1000 + i}, Qpn{2000 + i}, 100'000 * i);
  boxes.heard = [&](std::uint32_t site, const ByHand::Seen& s) {
    for (Connection& c : all) c.hear(site, s);
  };
  bool lost = false;
  boxes.lose = [&](std::uint32_t from, const Message& m) {
    return from == 0 && m.say == Say::kOwn && !std::exchange(lost, true);
  };
  for (int i = 0; i < 20 && boxes.count(0, BoxCounter::owned) == 0; ++i) {
    for (Connection& c : all) c.write(1);
    boxes.run(milliseconds(2));
  }
  EXPECT_TRUE(lost);
  boxes.run(milliseconds(10));
  EXPECT_EQ(boxes.count(0, BoxCounter::owned), kHalves);
  EXPECT_EQ(boxes.count(0, BoxCounter::declined), 0U);
}

// The far box agrees, and the line is cut before it hears that anybody is there. The near box gives up by
// itself; the far box must not keep what nobody asks it for any more.
TEST(Partner, ThatIsNeverHeardAfterItsQuestionIsLetGo) {
  ByHand boxes;
  Connection c(boxes, kRequester, kResponder, 1000);
  listen(boxes, {&c});
  ASSERT_TRUE(c.until_owned());
  boxes.run(kRest);
  bool asked = false;
  boxes.lose = [&asked](std::uint32_t from, const Message& m) {
    asked = asked || (from == 0 && m.say == Say::kOwn);
    return from == 0 && m.say == Say::kHello && !m.answer;
  };
  for (int i = 0; i < 100 && !asked; ++i) {
    c.write(1);
    boxes.run(milliseconds(1));
  }
  ASSERT_TRUE(asked);
  boxes.cut = true;
  boxes.run(milliseconds(200));
  boxes.cut = false;
  boxes.lose = {};
  c.settle(milliseconds(300));
  EXPECT_EQ(c.taken(), c.sent());
  boxes.run(milliseconds(100));
  EXPECT_EQ(boxes.box(0).owned() + boxes.box(1).owned(), 0U);
}

// Nobody asks while nothing is owned. From then on the partner is asked, and has as long for its first answer
// as for any other, whenever it was heard last.
TEST(Partner, IsNotLostOnAPerfectLine) {
  for (int rest = 5; rest < 50; ++rest) {
    ByHand boxes;
    Connection c(boxes, kRequester, kResponder, 1000);
    listen(boxes, {&c});
    ASSERT_TRUE(c.until_owned());
    boxes.run(milliseconds(rest));
    c.write(2);
    for (int i = 0; i < 120; ++i) {
      c.write(1);
      boxes.run(microseconds(500));  // three times its patience
    }
    EXPECT_GE(boxes.count(0, BoxCounter::owned), 1U);
    for (std::uint32_t i = 0; i < 2; ++i) {
      EXPECT_EQ(boxes.count(i, BoxCounter::partner_lost), 0U) << rest;
      EXPECT_EQ(boxes.count(i, BoxCounter::partner_found), 1U) << rest;
    }
    EXPECT_EQ(boxes.count(0, BoxCounter::renewed), 0U) << rest;
    EXPECT_EQ(boxes.count(0, BoxCounter::line_resent), 0U) << rest;
  }
}

// Frames to nowhere do not lead its questions astray.
TEST(Partner, IsLookedForBetweenEndpointsThatTalk) {
  ByHand boxes;
  Connection c(boxes, kRequester, kResponder, 1000);
  listen(boxes, {&c});
  Frame stray;
  stray.header.opcode = wire::kWriteOnly;
  stray.header.dest_qp = {77};
  stray.source = wire::Address::v4(10, 0, 0, 9);
  stray.destination = wire::Address::v4(9, 9, 9, 9);
  for (int i = 0; i < 40; ++i) {
    c.write(1);
    for (int k = 0; k < 4; ++k) {
      boxes.run(microseconds(500));
      boxes.from_site(0, stray);
    }
  }
  EXPECT_GT(boxes.count(0, BoxCounter::owned), 0U);
  for (const auto& said : boxes.said) {
    for (const ByHand::Seen& s : said) {
      EXPECT_TRUE(s.frame.destination == Connection::kA || s.frame.destination == Connection::kB);
    }
  }
}

// A box that was just started knows nobody, and what comes first is a question for an ownership. It must not
// ask back between addresses that nobody has.
TEST(Partner, IsAskedBackWhereItsQuestionCameFrom) {
  ByHand boxes;
  Message own;
  own.say = Say::kOwn;
  own.sender = 100;
  own.receiver = 999;  // an earlier instance of box 1
  own.number = 7;
  own.lease = 1U << 20U;
  own.half = {Connection::kA, Connection::kB, kResponder};
  wire::Mad mad;
  encode(own, Hmac{small_box(1).secret}, mad);
  Frame f;
  f.header = wire::mad_packet({7});
  f.payload = wire::kMadBytes;
  f.source = Connection::kA;
  f.destination = Connection::kB;
  boxes.from_line(1, f, &mad);
  boxes.run(milliseconds(3));
  ASSERT_FALSE(boxes.said[1].empty());
  EXPECT_EQ(boxes.said[1].front().frame.source, Connection::kB);
  EXPECT_EQ(boxes.said[1].front().frame.destination, Connection::kA);
  EXPECT_TRUE(boxes.box(1).partner_is_there(boxes.now()));
}

// Its RELEASE is never answered, and the requester never falls silent.
TEST(Partner, ThatGoesAwayLeavesAWire) {
  ByHand boxes;
  Connection c(boxes, kRequester, kResponder, 1000);
  listen(boxes, {&c});
  ASSERT_TRUE(c.until_owned());
  boxes.run(milliseconds(4));  // everything is delivered
  boxes.remove(1);
  boxes.run(milliseconds(5));  // it rests, and is to be released
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 0) c.write(1);
    c.resend();
    boxes.run(milliseconds(1));
  }
  c.settle(kRest);
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_EQ(boxes.box(0).owned(), 0U);
}

// The far endpoint refuses, and every RELEASE is lost until the near box has lost patience. The far box must
// not swallow what the next connection of that queue pair sends.
TEST(Partner, LetsGoOfAHalfThatFailed) {
  ByHand boxes;
  Connection before(boxes, kRequester, kResponder, 1000);
  listen(boxes, {&before});
  ASSERT_TRUE(before.until_owned());
  boxes.lose = [](std::uint32_t, const Message& m) { return m.say == Say::kRelease; };
  before.refuses = true;
  before.write(1);
  boxes.run(milliseconds(4));
  before.write(1);
  boxes.run(milliseconds(4));
  EXPECT_TRUE(before.failed());
  boxes.run(milliseconds(100));
  boxes.lose = {};
  Connection after(boxes, {kRequester.v + 1}, kResponder, before.next().wire().v + 10);
  listen(boxes, {&after});
  after.write(3);
  after.settle(milliseconds(200));
  EXPECT_EQ(after.taken(), after.sent());
}

// What the far box has not got yet is not complete, whatever happens.
TEST(Partner, ThatIsAwayForGoodCompletesNothing) {
  ByHand boxes([](std::uint32_t, BoxConfig& c) { c.acknowledge = Acknowledge::kFar; });
  Connection c(boxes, kRequester, kResponder, 1000);
  listen(boxes, {&c});
  ASSERT_TRUE(c.until_owned());
  boxes.run(milliseconds(4));
  ASSERT_EQ(c.done(), c.sent());
  boxes.cut = true;
  c.write(3);
  boxes.run(milliseconds(600));  // longer than give_up
  c.resend();
  EXPECT_EQ(c.done() + 3, c.sent());
  EXPECT_TRUE(c.failed());
}

// Whoever records a report cannot have it believed when the numbers have gone round.
TEST(Message, CountsOnce) {
  ByHand boxes;
  Connection c(boxes, kRequester, kResponder, 1000);
  listen(boxes, {&c});
  ASSERT_TRUE(c.until_owned());
  c.write(4);
  boxes.run(milliseconds(3));
  const Hmac key{small_box(1).secret};
  const auto report = std::find_if(boxes.said[1].rbegin(), boxes.said[1].rend(), [&](const ByHand::Seen& s) {
    Message m;
    return decode(*s.mad, key, m) && m.say == Say::kReport;
  });
  ASSERT_NE(report, boxes.said[1].rend());
  const ByHand::Seen last = *report;
  const std::uint64_t before = boxes.count(0, BoxCounter::not_heard);
  boxes.from_line(0, last.frame, &*last.mad);
  EXPECT_EQ(boxes.count(0, BoxCounter::not_heard), before + 1);
  // However old it is.
  for (int i = 0; i < 100; ++i) {
    c.write(1);
    boxes.run(milliseconds(1));
  }
  const std::uint64_t later = boxes.count(0, BoxCounter::not_heard);
  boxes.from_line(0, last.frame, &*last.mad);
  EXPECT_EQ(boxes.count(0, BoxCounter::not_heard), later + 1);
}

// "Not ready for 655 ms", about a packet that was never given.
TEST(Endpoint, CannotRefuseWhatItWasNotGiven) {
  ByHand boxes;
  Connection c(boxes, kRequester, kResponder, 1000);
  listen(boxes, {&c});
  ASSERT_TRUE(c.until_owned());
  boxes.run(milliseconds(3));
  ASSERT_EQ(c.taken(), c.sent());
  Frame f;
  f.header.opcode = wire::kAcknowledge;
  f.header.dest_qp = kRequester;
  f.header.psn = c.next().wire();
  f.header.set_aeth(wire::kSyndromeRnr, 0);
  f.source = Connection::kB;
  f.destination = Connection::kA;
  boxes.from_site(1, f);
  c.write(1);
  boxes.run(milliseconds(5));
  EXPECT_EQ(c.taken(), c.sent());
}

// Its box lost the partner, and it says "not ready" for ever. What was kept for it must make room some day.
TEST(Endpoint, ThatIsNeverReadyKeepsNoRowOfAnOrphan) {
  ByHand boxes;
  Connection c(boxes, kRequester, kResponder, 1000);
  ASSERT_TRUE((listen(boxes, {&c}), c.until_owned()));
  boxes.run(milliseconds(3));
  c.answers = false;
  boxes.heard = [&](std::uint32_t site, const ByHand::Seen& s) {
    c.hear(site, s);
    if (site != 1 || !is_push(s.frame.header.opcode)) return;
    Frame f;
    f.header.opcode = wire::kAcknowledge;
    f.header.dest_qp = kRequester;
    f.header.psn = s.frame.header.psn;
    f.header.set_aeth(wire::kSyndromeRnr | 1U, 0);
    f.source = Connection::kB;
    f.destination = Connection::kA;
    boxes.from_site(1, f);
  };
  c.write(3);
  boxes.run(milliseconds(3));
  boxes.cut = true;
  boxes.run(milliseconds(400));
  EXPECT_EQ(boxes.count(1, BoxCounter::orphaned), 1U);
  EXPECT_GT(boxes.box(1).stored().n, 0U) << "its program may become ready yet";
  boxes.run(milliseconds(200));  // together longer than give_up
  EXPECT_EQ(boxes.box(1).stored().n, 0U);
  EXPECT_EQ(boxes.box(1).owned(), 0U);
}

// No path takes more than 4096 bytes in a packet: what is larger passes, as on a wire.
TEST(Endpoint, ThatSendsTooMuchInAPacketFillsNoStore) {
  ByHand boxes;
  Connection c(boxes, kRequester, kResponder, 1000);
  listen(boxes, {&c});
  ASSERT_TRUE(c.until_owned());
  Frame f;
  f.header.opcode = wire::kWriteOnly;
  f.header.dest_qp = kResponder;
  f.header.psn = c.next().wire();
  f.payload = 9000;
  f.source = Connection::kA;
  f.destination = Connection::kB;
  const std::uint64_t before = boxes.box(0).stored().n;
  boxes.from_site(0, f);
  EXPECT_LE(boxes.box(0).stored().n, before);
}

TEST(Secret, IsAsked) {
  BoxConfig c = small_box(1);
  c.secret.clear();
  EXPECT_DEATH(Box{c}, "secret");
}

}  // namespace
}  // namespace weft::wan
