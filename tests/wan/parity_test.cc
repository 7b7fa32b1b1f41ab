// Parity on the line between two boxes (docs/ARCHITECTURE.md#parity-on-the-line), with frames lost by hand.
// Groups are small, 4 + 2, so that every pattern of losses can be tried.
#include <gtest/gtest.h>

#include <bit>

#include "tests/wan/by_hand.h"
#include "wan/logic/parity_frame.h"

namespace weft::wan {
namespace {

constexpr ParityTerms kSmall{4, 2};

class ParityOnTheLine : public ::testing::Test {
 protected:
  explicit ParityOnTheLine(ParityTerms near = kSmall, ParityTerms far = kSmall)
      : boxes([&](std::uint32_t which, BoxConfig& b) {
          b.parity = which == 0 ? near : far;
          b.quiet = milliseconds(50);
        }),
        c(boxes, {11}, {21}, 0xFF'FFF0),
        d(boxes, {12}, {22}, 700) {
    boxes.heard = [this](std::uint32_t site, const ByHand::Seen& s) {
      c.hear(site, s);
      d.hear(site, s);
    };
    boxes.lose_frame = [this](std::uint32_t from, std::uint64_t n, const Frame& f) {
      if (from != 0) return false;
      sent = n + 1;
      if (is_parity(f.header) && tamper) return true;  // the test brings it
      return n >= first && n - first < 64 && (pattern >> (n - first) & 1U) != 0;
    };
  }
  // Both halves are owned, and no group is open.
  void own(bool both = false) {
    ASSERT_TRUE(c.until_owned());
    if (both) {
      ASSERT_TRUE(d.until_owned());
    }
    boxes.run(milliseconds(20));
    ASSERT_EQ(c.done(), c.sent());
  }
  // The next frames on the line are lost as the pattern says: data first, then their parity.
  void lose(std::uint64_t bits) {
    first = sent;
    pattern = bits;
  }
  std::uint64_t restored() const { return boxes.count(1, BoxCounter::restored); }
  std::uint64_t resent() const { return boxes.count(0, BoxCounter::line_resent); }

  ByHand boxes;
  Connection c;
  Connection d;
  std::uint64_t first = UINT64_MAX;
  std::uint64_t pattern = 0;
  std::uint64_t sent = 0;
  bool tamper = false;
};

// Every way to lose up to two of six: what was lost comes with the parity, half a round trip after it was
// sent and not two, and is never asked for.
TEST_F(ParityOnTheLine, WhatAGroupLosesIsRestoredAndNotAskedFor) {
  own();
  for (std::uint32_t bits = 0; bits < 64; ++bits) {
    if (std::popcount(bits) > 2) continue;
    const auto before = restored();
    lose(bits);
    c.write(4);
    boxes.run(kDelay + microseconds(10));
    EXPECT_EQ(c.taken(), c.sent()) << bits;
    EXPECT_EQ(restored() - before, static_cast<std::uint64_t>(std::popcount(bits & 15U))) << bits;
    boxes.run(milliseconds(5));
    ASSERT_EQ(c.done(), c.sent()) << bits;
  }
  EXPECT_EQ(resent(), 0U);
  EXPECT_EQ(boxes.count(1, BoxCounter::restored_wrong), 0U);
  EXPECT_EQ(boxes.count(1, BoxCounter::beyond_parity), 0U);
  for (const ByHand::Seen& s : boxes.said[1]) {
    Message m;
    ASSERT_TRUE(decode(*s.mad, Hmac(std::vector<std::uint8_t>{1, 2, 3}), m));
    EXPECT_EQ(m.ahead_count, 0U);
  }
  boxes.run(milliseconds(200));
  EXPECT_EQ(boxes.bodies(), 0U) << "what was kept to restore from is let go of";
}

// Three of six are gone: nothing can be restored, the partner is asked, and what it sends is all there.
TEST_F(ParityOnTheLine, WhatLosesMoreIsAskedFor) {
  own();
  std::uint64_t tried = 0;
  for (std::uint32_t bits = 0; bits < 64; ++bits) {
    if (std::popcount(bits) != 3 || (bits & 15U) == 0) continue;
    lose(bits);
    c.write(4);
    boxes.run(milliseconds(30));
    ASSERT_EQ(c.done(), c.sent()) << bits;
    ASSERT_EQ(c.taken(), c.sent()) << bits;
    ++tried;
  }
  EXPECT_EQ(tried, 20U);
  EXPECT_GE(resent(), 20U);
  EXPECT_GT(boxes.count(1, BoxCounter::beyond_parity), 0U);
}

// Two frames and then nothing: the group is closed after half of parity_wait, and parity counts.
TEST_F(ParityOnTheLine, AGroupThatDoesNotFillIsClosedByTime) {
  own();
  const auto short_before = boxes.count(0, BoxCounter::parity_short);
  lose(0b11);  // all of its data
  c.write(2);
  boxes.run(kDelay + microseconds(90));
  EXPECT_EQ(c.taken(), c.sent() - 2);
  boxes.run(microseconds(200));  // the line's trip is 2 ms, an eighth of that is 250 us
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_EQ(boxes.count(0, BoxCounter::parity_short), short_before + 1);
  boxes.run(milliseconds(5));
  EXPECT_EQ(resent(), 0U);
}

TEST_F(ParityOnTheLine, AGroupHasMembersOfSeveralConnections) {
  own(true);
  lose(0b0110);
  for (int i = 0; i < 2; ++i) {
    c.write(1);
    d.write(1);
  }
  boxes.run(kDelay + microseconds(10));
  EXPECT_EQ(restored(), 2U);
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_EQ(d.taken(), d.sent());
}

// A packet that went again is under parity, too; but never twice in a group, where it would count as two.
TEST_F(ParityOnTheLine, WhatIsSentAgainIsCoveredOnce) {
  own();
  const auto covered = boxes.count(0, BoxCounter::covered);
  lose(0b111111);
  c.write(4);
  boxes.run(milliseconds(60));
  EXPECT_EQ(c.done(), c.sent());
  EXPECT_GE(resent(), 4U);
  EXPECT_GE(boxes.count(0, BoxCounter::covered), covered + 8);
}

// The parity of a group comes twice, late, or before its data: nothing is delivered twice.
TEST_F(ParityOnTheLine, ParityThatComesAgainChangesNothing) {
  own();
  lose(0b0001);
  c.write(4);
  boxes.run(milliseconds(5));
  EXPECT_EQ(restored(), 1U);
  Frame f;
  f.header.opcode = kParityOpcode;
  f.header.dest_qp = {1};
  f.source = Connection::kA;
  f.destination = Connection::kB;
  for (int i = 0; i < 3; ++i) {
    for (const ByHand::Payload& p : std::vector<ByHand::Payload>(boxes.parity_seen[0])) {
      f.payload = static_cast<std::uint32_t>(p.size());
      boxes.parity_from_line(1, f, p);
    }
  }
  boxes.run(milliseconds(5));
  EXPECT_EQ(restored(), 1U);
  EXPECT_EQ(c.taken(), c.sent());
  EXPECT_EQ(boxes.count(1, BoxCounter::line_duplicate), 0U);
}

// Whatever byte of a parity frame somebody changes, nothing wrong is restored: the header is signed, and
// wrong bytes make no right packet.
TEST_F(ParityOnTheLine, ForgedParityRestoresNothing) {
  own();
  tamper = true;
  std::size_t length = 1;
  for (std::size_t at = 0; at < length; ++at) {
    const auto before = restored();
    lose(0b0001);
    c.write(4);
    boxes.run(kDelay + microseconds(10));
    ASSERT_EQ(c.taken(), c.sent() - 4);
    ByHand::Payload p = boxes.parity_seen[0].back();
    length = p.size();
    p[at] ^= 0x41;
    Frame f;
    f.header.opcode = kParityOpcode;
    f.header.dest_qp = {1};
    f.source = Connection::kA;
    f.destination = Connection::kB;
    f.payload = static_cast<std::uint32_t>(p.size());
    boxes.parity_from_line(1, f, p);
    boxes.run(microseconds(10));
    EXPECT_EQ(restored(), before) << at;
    EXPECT_EQ(c.taken(), c.sent() - 4) << at;
    boxes.run(milliseconds(20));
    ASSERT_EQ(c.done(), c.sent()) << at;
  }
  EXPECT_GT(length, parity_header_bytes(1) + 60);
}

// A group that was recorded long ago, when nothing of it was missed, is not heard: numbers on the wire wrap.
TEST_F(ParityOnTheLine, OldParityIsNotHeard) {
  own();
  lose(0);
  c.write(4);
  boxes.run(milliseconds(5));
  const ByHand::Payload old = boxes.parity_seen[0].back();
  for (int i = 0; i < 100; ++i) {
    c.write(4);
    boxes.run(milliseconds(3));
  }
  const auto unheard = boxes.count(1, BoxCounter::not_heard);
  // As if its packets were missed once more: their halves are owned anew.
  ParityHeader h;
  ASSERT_TRUE(decode(old, h));
  h.run[0].first = {(h.run[0].first.v + 404) & kPsnMask};
  ParityBytes bytes;
  const auto n = encode(h, Hmac(std::vector<std::uint8_t>{1, 2, 3}), bytes);
  ByHand::Payload again(bytes.begin(), bytes.begin() + n);
  again.insert(again.end(), old.begin() + n, old.end());
  Frame f;
  f.header.opcode = kParityOpcode;
  f.header.dest_qp = {1};
  f.payload = static_cast<std::uint32_t>(again.size());
  boxes.parity_from_line(1, f, again);
  EXPECT_EQ(boxes.count(1, BoxCounter::not_heard), unheard + 1);
  EXPECT_EQ(boxes.count(1, BoxCounter::restored_wrong), 0U);
}

class ParityAtOneEnd : public ParityOnTheLine {
 protected:
  ParityAtOneEnd() : ParityOnTheLine(kSmall, {}) {}
};

// A partner that was started without it says so, and hears none.
TEST_F(ParityAtOneEnd, IsOff) {
  own();
  lose(0b0001);
  c.write(8);
  boxes.run(milliseconds(20));
  EXPECT_EQ(c.done(), c.sent());
  EXPECT_EQ(boxes.count(0, BoxCounter::covered), 0U);
  EXPECT_EQ(boxes.count(0, BoxCounter::parity_sent), 0U);
  EXPECT_GE(resent(), 1U);
  EXPECT_FALSE(boxes.box(0).partner_parity().there());
  EXPECT_TRUE(boxes.box(1).partner_parity().there());
}

TEST(ParityHeaders, SurviveTheWire) {
  const Hmac key(std::vector<std::uint8_t>{9});
  ParityHeader h;
  h.row = 1;
  h.repair = 3;
  h.runs = 2;
  h.sender = 5;
  h.receiver = 6;
  h.number = 1ULL << 60U;
  h.run[0] = {77, {0xFF'FFFF}, 40};
  h.run[1] = {1ULL << 63U, {0}, 24};
  ParityBytes bytes{};
  const std::uint32_t n = encode(h, key, bytes);
  EXPECT_EQ(n, parity_header_bytes(2));
  ParityHeader back;
  ASSERT_TRUE(decode(std::span(bytes).first(n), back));
  EXPECT_EQ(back, h);
  EXPECT_TRUE(authentic(bytes, key));
  EXPECT_FALSE(authentic(bytes, Hmac(std::vector<std::uint8_t>{8})));
  for (std::uint32_t cut = 0; cut < n; ++cut) EXPECT_FALSE(decode(std::span(bytes).first(cut), back)) << cut;
  bytes[32 + 11] = 41;  // 65 members
  EXPECT_FALSE(decode(bytes, back));
}

}  // namespace
}  // namespace weft::wan
