#include "wan/logic/message.h"

#include <gtest/gtest.h>

namespace weft::wan {
namespace {

constexpr std::array<std::uint8_t, 4> kSecret = {1, 2, 3, 4};

Message some() {
  Message m;
  m.say = Say::kReport;
  m.refused = true;
  m.syndrome = 0x62;
  m.ahead_count = 2;
  m.sender = 0x0123'4567'89AB'CDEFULL;
  m.receiver = 42;
  m.number = 1ULL << 40U;
  m.lease = 7;
  m.from = {0xFF'FFFF};
  m.stored = {1};
  m.delivered = {0xABCDEF};
  m.half = {wire::Address::v4(10, 0, 0, 1), wire::Address::v4(10, 0, 1, 2), {0x112233}};
  m.requester_qpn = {0x445566};
  m.mode = wire::Mode::kSrnic;
  m.ahead[0] = {9};
  m.ahead[1] = {0xFF'FFFE};
  m.asked_at = 1ULL << 63U;
  m.patience_ns = 5;
  return m;
}

TEST(Message, ComesBackAsItWasWritten) {
  const Hmac key(kSecret);
  wire::Mad mad;
  encode(some(), key, mad);
  Message back;
  ASSERT_TRUE(decode(mad, key, back));
  EXPECT_EQ(back, some());
}

// No bit of it may change, and no other secret signs it.
TEST(Message, IsRefusedUnlessEveryBitIsSigned) {
  const Hmac key(kSecret);
  wire::Mad mad;
  encode(some(), key, mad);
  Message back;
  for (std::size_t bit = 0; bit < mad.size() * 8; ++bit) {
    mad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    EXPECT_FALSE(decode(mad, key, back)) << bit;
    mad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
  }
  constexpr std::array<std::uint8_t, 4> kWrong = {1, 2, 3, 5};
  EXPECT_FALSE(decode(mad, Hmac(kWrong), back));
  EXPECT_FALSE(decode(std::span(mad).first(255), key, back));
}

TEST(Message, ThatMakesNoSenseIsRefusedThoughItIsSigned) {
  const Hmac key(kSecret);
  wire::Mad mad;
  Message back;
  Message m = some();
  m.ahead_count = kMostAhead + 1;
  encode(m, key, mad);
  EXPECT_FALSE(decode(mad, key, back));
  m = some();
  m.say = static_cast<Say>(10);
  encode(m, key, mad);
  EXPECT_FALSE(decode(mad, key, back));
  m = some();
  m.sender = 0;
  encode(m, key, mad);
  EXPECT_FALSE(decode(mad, key, back));
  m = some();
  m.mode = static_cast<wire::Mode>(3);
  encode(m, key, mad);
  EXPECT_FALSE(decode(mad, key, back));
}

// Discovery's datagrams are of the same class, and not ours.
TEST(Message, IsNoneOfDiscoverys) {
  wire::Mad mad{};
  encode(wire::Capability{}, mad);
  EXPECT_FALSE(is_message(mad));
}

}  // namespace
}  // namespace weft::wan
