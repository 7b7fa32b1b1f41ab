// A question for an ownership that comes late, or that somebody on the line repeats, when who asked it does
// not own that half any more: the box that agrees must not wait for it for ever.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/wan/by_hand.h"

namespace weft::wan {
namespace {

struct Disowned : ::testing::Test {
  void SetUp() override {
    boxes.heard = [&](std::uint32_t site, const ByHand::Seen& s) { c.hear(site, s); };
    ASSERT_TRUE(c.until_owned());
    boxes.run(milliseconds(100));  // and let go of again, for nothing is sent
    ASSERT_EQ(boxes.box(0).owned() + boxes.box(1).owned(), 0U);
    c.write(1);  // the boxes go on hearing each other
  }
  // As box 0 may have said it to box 1: for another half, under a lease of which only this message tells, and
  // with a number that was not taken yet, that of a greeting.
  void a_question_comes() {
    const Hmac key(std::vector<std::uint8_t>{1, 2, 3});
    std::uint64_t lease = 0;
    Message m;
    for (const ByHand::Seen& s : boxes.said[0]) {
      Message said;
      ASSERT_TRUE(decode(*s.mad, key, said));
      lease = std::max(lease, said.say == Say::kOwn ? said.lease >> 20U : 0U);
      if (said.say == Say::kHello) m.number = said.number;
    }
    m.say = Say::kOwn;
    m.sender = boxes.box(0).config().instance;
    m.receiver = boxes.box(1).config().instance;
    m.lease = (lease + 1) << 20U;
    m.mode = wire::Mode::kRoce;
    m.from = {500};
    m.half = {Connection::kA, Connection::kB, {77}};
    m.requester_qpn = {66};
    wire::Mad mad;
    encode(m, key, mad);
    Frame f;
    f.header = wire::mad_packet({1});
    f.payload = wire::kMadBytes;
    f.source = Connection::kA;
    f.destination = Connection::kB;
    boxes.from_line(1, f, &mad);
  }
  // A packet of that half ahead of what it began with: it waits in the store for one that nobody sends.
  void a_packet_ahead_comes() {
    Frame f;
    f.header.opcode = wire::kWriteOnly;
    f.header.dest_qp = {77};
    f.header.psn = {502};
    f.payload = 64;
    f.source = Connection::kA;
    f.destination = Connection::kB;
    boxes.from_line(1, f);
  }

  ByHand boxes;
  Connection c{boxes, {11}, {21}, 7};
};

TEST_F(Disowned, IsSaidByWhoAsked) {
  a_question_comes();
  a_packet_ahead_comes();
  EXPECT_EQ(boxes.box(1).owned(), 1U);
  EXPECT_NE(boxes.box(1).stored().n, 0U);
  boxes.run(kDelay * 3);
  EXPECT_EQ(boxes.box(1).owned(), 0U);
  EXPECT_EQ(boxes.box(1).stored().n, 0U);
}

// That answer is lost. Nothing comes of the agreement, so it is told again.
TEST_F(Disowned, IsSaidAgainWhereItWasLost) {
  int released = 0;
  boxes.lose = [&](std::uint32_t from, const Message& m) {
    return from == 0 && m.say == Say::kRelease && ++released == 1;
  };
  a_question_comes();
  a_packet_ahead_comes();
  boxes.run(kDelay * 3);
  EXPECT_EQ(released, 1);
  EXPECT_EQ(boxes.box(1).owned(), 1U);
  boxes.run(boxes.box(1).config().give_up + kDelay * 3);
  EXPECT_EQ(released, 2);
  EXPECT_EQ(boxes.box(1).owned(), 0U);
  EXPECT_EQ(boxes.box(1).stored().n, 0U);
}

// A half that is owned under another lease stays so, whatever an old agreement says.
TEST_F(Disowned, EndsNoOtherOwnership) {
  ASSERT_TRUE(c.until_owned());
  a_question_comes();
  boxes.run(kDelay * 3);
  EXPECT_EQ(boxes.box(0).owned(), 1U);
  EXPECT_EQ(boxes.box(1).owned(), 1U);
  c.write(3);
  c.settle(milliseconds(50));
  EXPECT_EQ(c.done(), c.sent());
}

}  // namespace
}  // namespace weft::wan
