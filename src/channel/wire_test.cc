// The bytes of docs/protocol/channel.md, by hand.
#include "channel/wire.h"

#include <gtest/gtest.h>

#include "channel/trace.h"

namespace weft::channel {
namespace {

TEST(ChannelWire, AnImmediateHasTheBitsOfThePage) {
  const Immediate i{0xABC, 0x123, true, false, Role::kResponse, Kind::kAnnouncement};
  EXPECT_EQ(pack(i), 0xABC123A1U);
  Immediate back;
  ASSERT_TRUE(unpack(0xABC123A1U, back));
  EXPECT_EQ(pack(back), 0xABC123A1U);
  for (const std::uint32_t bad : {6U, 7U, 8U}) EXPECT_FALSE(unpack(bad, back)) << bad;
}

TEST(ChannelWire, NumbersWidenAroundWhatIsKnown) {
  EXPECT_EQ(widen(0, 0), 0U);
  EXPECT_EQ(widen(5, 4095), 4101U);
  EXPECT_EQ(widen(4095, 4096), 4095U);
  EXPECT_EQ(widen(0, 8191), 8192U);
  EXPECT_GT(widen(4095, 0), std::uint64_t{1} << 60U);  // before the beginning
}

TEST(ChannelWire, AMeetingHasTheBytesOfThePage) {
  Hello h;
  h.continues = true;
  h.session = 0x0102030405060708;
  h.depth = 32;
  h.frame = 4128;
  h.largest = 0x04000000;
  h.received = 9;
  h.taken = 8;
  h.reconnect_ms = 1000;
  h.alive_ms = 3000;
  h.moves = true;
  h.tcp_port = 0x1234;
  const ConnectData d = write_hello(h);
  const std::uint8_t expected[52] = {
      'w', 'c', 1, 3, 1, 2, 3, 4, 5, 6, 7, 8, 0, 32, 0x12, 0x34, 0, 0,    0x10, 0x20, 4,    0,    0, 0, 0, 0,
      0,   0,   0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 8,  0,    0,    3, 0xE8, 0,    0,    0x0B, 0xB8, 0, 0, 0, 0};
  ASSERT_EQ(d.size, sizeof expected);
  EXPECT_TRUE(std::equal(expected, expected + sizeof expected, d.bytes.begin()));
  Hello back;
  ASSERT_EQ(read_hello(d, back), Refusal::kNone);
  EXPECT_EQ(back.session, h.session);
  EXPECT_EQ(back.received, 9U);
  EXPECT_EQ(back.taken, 8U);
  EXPECT_TRUE(back.moves);
  EXPECT_EQ(back.tcp_port, 0x1234);
}

TEST(ChannelWire, APrefixHasTheBytesOfThePage) {
  std::uint8_t bytes[Prefix::kBytes];
  write_prefix({0x01020304, 0xABC123A1U}, bytes);
  const std::uint8_t expected[8] = {1, 2, 3, 4, 0xAB, 0xC1, 0x23, 0xA1};
  EXPECT_TRUE(std::equal(expected, expected + sizeof expected, bytes));
  EXPECT_EQ(read_prefix(bytes).length, 0x01020304U);
  EXPECT_EQ(read_prefix(bytes).immediate, 0xABC123A1U);
}

TEST(ChannelWire, AnAnnouncementAndAHeadHaveTheBytesOfThePage) {
  Announcement a;
  a.length = 300;
  a.count = 2;
  a.pieces[0] = {0x1000, 100, {0xAABBCCDD}};
  a.pieces[1] = {0x2000, 200, {1}};
  std::uint8_t bytes[Announcement::kMostBytes];
  ASSERT_EQ(write_announcement(a, bytes), 48U);
  const std::uint8_t expected[32] = {0, 0, 0, 0, 0, 0, 1,    0x2C, 0,    2,    0,    0,    0, 0, 0, 0,
                                     0, 0, 0, 0, 0, 0, 0x10, 0,    0xAA, 0xBB, 0xCC, 0xDD, 0, 0, 0, 100};
  EXPECT_TRUE(std::equal(expected, expected + sizeof expected, bytes));
  Announcement back;
  EXPECT_TRUE(read_announcement({bytes, 48}, 300, back));
  EXPECT_EQ(back.pieces[1].address, 0x2000U);
  EXPECT_FALSE(read_announcement({bytes, 48}, 299, back));
  for (std::size_t n = 0; n < 48; ++n) EXPECT_FALSE(read_announcement({bytes, n}, 300, back)) << n;
  write_head({1, 2, 3, 4}, bytes);
  EXPECT_EQ(bytes[3] + bytes[7] + bytes[15] + bytes[23], 10);
  const Head h = read_head(bytes);
  EXPECT_EQ(h.call, 1U);
  EXPECT_EQ(h.left_at, 4U);
}

// A peer may answer what it likes. The compiler evaluates this, and refuses an overflow of a signed number.
constexpr PeerClock asked_a_liar() {
  constexpr std::uint64_t kAsked = 1'000;
  constexpr std::uint64_t kSaid = kAsked + (1ULL << 63U) + 1;
  PeerClock c;
  c.sample(kAsked, kSaid, kSaid, kAsked + 1'000);
  return c;
}

TEST(PeerClocks, TakeAnAnswerHalfTheRangeAway) {
  constexpr PeerClock c = asked_a_liar();
  EXPECT_EQ(c.samples, 1U);
  EXPECT_EQ(c.offset_ns, INT64_MIN + 499);  // round the end
}

}  // namespace
}  // namespace weft::channel
