// What boxes make of the connection manager's messages: connections learned before their first packet,
// farewells behind what was acknowledged, connections that begin again with the same numbers.
#include <gtest/gtest.h>

#include "tests/wan/by_hand.h"

namespace weft::wan {
namespace {

constexpr Qpn kActive{11};
constexpr Qpn kPassive{21};
constexpr std::uint32_t kFirst = 1000;  // of the active side

struct Dialogue {
  ByHand& boxes;
  std::uint32_t id = 0xC0;
  Qpn active = kActive;
  Qpn passive = kPassive;
  std::uint32_t first = kFirst;  // of the active side's requests
  wire::EceOptions agreed{};     // what the passive side picks

  void say(std::uint32_t site, const wire::CmMessage& m) {
    wire::Mad mad;
    encode(m, mad);
    Frame f;
    f.header = wire::mad_packet({7});
    f.payload = wire::kMadBytes;
    f.source = site == 0 ? Connection::kA : Connection::kB;
    f.destination = site == 0 ? Connection::kB : Connection::kA;
    boxes.from_site(site, f, &mad);
  }
  void req(std::uint32_t site = 0) {
    wire::CmMessage m;
    m.kind = wire::CmKind::kReq;
    m.local_id = id;
    m.qpn = active;
    m.starting_psn = {5000};
    m.mtu = 3;  // 1024
    say(site, m);
  }
  void rep(std::uint32_t site = 1) {
    wire::CmMessage m;
    m.kind = wire::CmKind::kRep;
    m.local_id = 0xD0;
    m.remote_id = id;
    m.qpn = passive;
    m.starting_psn = {first};
    m.vendor_id = wire::kEceVendor;
    m.modifier = wire::encode_ece(agreed);
    say(site, m);
  }
  void meet() {
    req();
    boxes.run(milliseconds(2));
    rep();
    boxes.run(milliseconds(2));
  }
  void farewell(std::uint32_t site = 0) {
    wire::CmMessage m;
    m.kind = wire::CmKind::kDreq;
    m.local_id = id;
    m.remote_id = 0xD0;
    m.qpn = site == 0 ? passive : active;
    say(site, m);
  }
};

// What of the connection manager came to a site, and what the responder had by then.
struct Ears {
  Ears(ByHand& boxes, std::vector<Connection*> connections) {
    boxes.heard = [this, connections](std::uint32_t site, const ByHand::Seen& s) {
      for (Connection* c : connections) c->hear(site, s);
      wire::CmMessage m;
      wire::MadError error{};
      if (!s.mad.has_value() || !decode(*s.mad, m, error) || m.kind != wire::CmKind::kDreq) return;
      ++farewells[site];
      taken = connections.front()->taken();
    };
  }
  std::uint32_t farewells[2] = {0, 0};
  std::uint64_t taken = 0;
};

TEST(Follow, LearnsBothHalvesFromTheirRequestAndReply) {
  ByHand boxes;
  Connection c(boxes, kActive, kPassive, kFirst);
  Ears ears(boxes, {&c});
  Dialogue{boxes}.meet();
  EXPECT_EQ(boxes.count(0, BoxCounter::followed), 1U);
  EXPECT_EQ(boxes.count(1, BoxCounter::followed), 1U);
  ASSERT_TRUE(c.until_owned());
  EXPECT_LE(c.sent(), 6U) << "as soon as it is calm";
  EXPECT_EQ(boxes.count(0, BoxCounter::learned), 0U);
  boxes.run(milliseconds(30));
  EXPECT_EQ(c.taken(), c.sent());
}

// The REP names the dialect, and everything from the first packet on is known in it.
TEST(Follow, LearnsTheDialectFromTheReply) {
  for (const wire::Mode mode : {wire::Mode::kIrn, wire::Mode::kSrnic}) {
    ByHand boxes;
    Connection c(boxes, kActive, kPassive, kFirst, mode);
    Ears ears(boxes, {&c});
    Dialogue d{boxes};
    d.agreed.irn = mode == wire::Mode::kIrn;
    d.agreed.srnic = mode == wire::Mode::kSrnic;
    d.meet();
    ASSERT_TRUE(c.until_owned());
    EXPECT_LE(c.sent(), 6U) << "as soon as it is calm";
    EXPECT_EQ(boxes.count(0, BoxCounter::learned) + boxes.count(0, BoxCounter::other_mode), 0U);
    boxes.run(milliseconds(30));
    EXPECT_EQ(c.taken(), c.sent());
  }
}

// A READ's numbers are counted by the path MTU that the REQ names.
TEST(Follow, CountsAReadsNumbers) {
  ByHand boxes;
  Connection c(boxes, kActive, kPassive, kFirst);
  Ears ears(boxes, {&c});
  Dialogue{boxes}.meet();
  c.read(3 * Connection::kMtu);
  boxes.run(milliseconds(3));
  ASSERT_TRUE(c.until_owned());
  c.settle(milliseconds(30));
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_EQ(boxes.count(0, BoxCounter::learned) + boxes.count(0, BoxCounter::unlearned), 0U);
}

TEST(Follow, TakesNoReplyFromTheWrongSide) {
  ByHand boxes;
  Dialogue d{boxes};
  d.req(0);
  d.rep(0);
  boxes.run(milliseconds(3));
  EXPECT_EQ(boxes.count(0, BoxCounter::followed) + boxes.count(1, BoxCounter::followed), 0U);
}

// A flood of requests takes the place of older ones, and nothing more.
TEST(Follow, RemembersAsManyRequestsAsItsTableHolds) {
  ByHand boxes([](std::uint32_t, BoxConfig& c) { c.meetings = 4; });
  for (std::uint32_t i = 0; i < 100; ++i) {
    Dialogue{boxes, 0xC0 + i}.req();
    boxes.run(milliseconds(1));
  }
  boxes.run(milliseconds(2));
  Dialogue{boxes, 0xC0}.rep();
  boxes.run(milliseconds(2));
  EXPECT_EQ(boxes.count(0, BoxCounter::followed), 0U);
  Dialogue{boxes, 0xC0 + 99}.rep();
  boxes.run(milliseconds(2));
  EXPECT_EQ(boxes.count(0, BoxCounter::followed), 1U);
}

TEST(Follow, AReplyThatComesAgainEndsNothing) {
  ByHand boxes;
  Connection c(boxes, kActive, kPassive, kFirst);
  Ears ears(boxes, {&c});
  Dialogue d{boxes};
  d.meet();
  ASSERT_TRUE(c.until_owned());
  c.answers = false;
  c.write(5);
  boxes.run(milliseconds(3));
  d.req();
  d.rep();
  boxes.run(milliseconds(3));
  c.answers = true;
  boxes.run(milliseconds(20));
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_FALSE(c.failed());
}

// The responder is slow. Its program must have what was complete before it hears that the peer leaves.
TEST(Farewell, WaitsForWhatWasAcknowledged) {
  ByHand boxes([](std::uint32_t, BoxConfig& c) { c.site_tries = 200; });
  Connection c(boxes, kActive, kPassive, kFirst);
  Ears ears(boxes, {&c});
  Dialogue d{boxes};
  d.meet();
  ASSERT_TRUE(c.until_owned());
  c.answers = false;
  c.write(5);
  ASSERT_EQ(c.done(), c.sent());
  d.farewell();
  boxes.run(milliseconds(20));
  d.farewell();  // again, for want of an answer
  boxes.run(milliseconds(20));
  EXPECT_EQ(ears.farewells[1], 0U);
  c.answers = true;
  boxes.run(milliseconds(30));
  EXPECT_EQ(ears.farewells[1], 1U);
  EXPECT_EQ(ears.taken, c.sent());
  EXPECT_EQ(boxes.count(0, BoxCounter::farewells), 1U);
  EXPECT_EQ(boxes.box(0).owned() + boxes.box(1).owned(), 0U);
  EXPECT_EQ(boxes.bodies(), 0U);
}

TEST(Farewell, PassesWhereNothingIsOwed) {
  ByHand boxes;
  Connection c(boxes, kActive, kPassive, kFirst);
  Ears ears(boxes, {&c});
  Dialogue d{boxes};
  d.meet();
  d.farewell();
  boxes.run(milliseconds(2));
  EXPECT_EQ(ears.farewells[1], 1U);
  d.farewell(1);
  boxes.run(milliseconds(2));
  EXPECT_EQ(ears.farewells[0], 1U);
}

// The responder never answers again: once the far box has given up, nobody waits any longer.
TEST(Farewell, PassesWhenTheResponderIsGone) {
  ByHand boxes;
  Connection c(boxes, kActive, kPassive, kFirst);
  Ears ears(boxes, {&c});
  Dialogue d{boxes};
  d.meet();
  ASSERT_TRUE(c.until_owned());
  c.answers = false;
  c.write(5);
  d.farewell();
  boxes.run(milliseconds(100));
  EXPECT_EQ(ears.farewells[1], 1U);
  EXPECT_EQ(boxes.box(0).owned() + boxes.box(1).owned(), 0U);
  EXPECT_EQ(boxes.bodies(), 0U);
}

// The responder's program says farewell: the requester's half ends, and what was acknowledged is delivered.
TEST(Farewell, OfTheOtherSideEndsTheHalf) {
  ByHand boxes;
  Connection c(boxes, kActive, kPassive, kFirst);
  Ears ears(boxes, {&c});
  Dialogue d{boxes};
  d.meet();
  ASSERT_TRUE(c.until_owned());
  c.write(5);
  d.farewell(1);
  boxes.run(milliseconds(4));
  EXPECT_EQ(ears.farewells[0], 1U);
  boxes.run(milliseconds(4));
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_EQ(boxes.box(0).owned(), 0U);
}

// Five packets were acknowledged early when the responder's queue pair became another connection's, with the
// same two numbers and with first numbers below, within and above theirs. They are not delivered into it, and
// nothing of it is acknowledged for them.
TEST(Reconnect, KeepsTheOldDataOut) {
  for (const std::uint32_t shift : {0U, 1U, 2U, 3U}) {
    ByHand boxes([](std::uint32_t, BoxConfig& c) { c.site_tries = 200; });
    Connection before(boxes, kActive, kPassive, kFirst);
    Dialogue d{boxes};
    {
      Ears ears(boxes, {&before});
      d.meet();
      ASSERT_TRUE(before.until_owned());
      before.answers = false;
      before.write(5);
      boxes.run(milliseconds(3));
      ASSERT_EQ(before.done(), before.sent());
    }
    const std::uint32_t next = before.next().wire().v;
    const std::uint32_t first[] = {100, next - 3, next, next + 40};
    Connection after(boxes, kActive, kPassive, first[shift]);
    Ears ears(boxes, {&after});
    Dialogue anew{boxes, 0xC1, kActive, kPassive, first[shift]};
    after.answers = false;  // its queue pair is not there yet
    anew.req();
    boxes.run(milliseconds(2));
    after.answers = true;
    anew.rep();
    boxes.run(milliseconds(2));
    for (int i = 0; i < 10; ++i) {
      after.write(1);
      boxes.run(milliseconds(1));
      EXPECT_LE(after.taken(), after.sent()) << "numbers of the old connection were taken";
    }
    after.settle(milliseconds(100));
    EXPECT_EQ(after.taken(), after.sent());
    EXPECT_EQ(after.done(), after.sent());
    EXPECT_FALSE(after.failed());
    ASSERT_TRUE(after.until_owned()) << "it is learned anew";
    boxes.run(milliseconds(50));
    EXPECT_EQ(after.taken(), after.sent());
    EXPECT_EQ(boxes.bodies(), 0U);
  }
}

// Over the line anybody can write a reply. What was acknowledged is delivered in spite of it.
TEST(Reconnect, ThatIsForgedOnTheLineLosesNothing) {
  ByHand boxes;
  Connection c(boxes, kActive, kPassive, kFirst);
  Ears ears(boxes, {&c});
  Dialogue d{boxes};
  d.meet();
  ASSERT_TRUE(c.until_owned());
  c.answers = false;
  c.write(5);
  boxes.run(milliseconds(2));
  // A program asks for another connection, and somebody on the line answers it with the old one's number.
  Dialogue{boxes, 0xC1, {kActive.v + 1}}.req();
  wire::CmMessage m;
  m.kind = wire::CmKind::kRep;
  m.remote_id = 0xC1;
  m.qpn = kPassive;
  wire::Mad mad;
  encode(m, mad);
  Frame f;
  f.header = wire::mad_packet({7});
  f.payload = wire::kMadBytes;
  f.source = Connection::kB;
  f.destination = Connection::kA;
  boxes.from_line(0, f, &mad);
  c.answers = true;
  boxes.run(milliseconds(50));
  EXPECT_EQ(c.taken(), c.done());
  c.write(3);
  c.settle(milliseconds(50));
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_FALSE(c.failed());
}

}  // namespace
}  // namespace weft::wan
