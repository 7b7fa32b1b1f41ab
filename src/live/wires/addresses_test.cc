#include "live/wires/addresses.h"

#include <gtest/gtest.h>

namespace weft::live {
namespace {

const wire::Address kV4 = wire::Address::v4(10, 0, 0, 1);
const wire::Address kPeerV4 = wire::Address::v4(10, 0, 0, 2);

wire::Address v6(std::uint8_t first, std::uint8_t second, std::uint8_t last) {
  wire::Address a;
  a.bytes[0] = first;
  a.bytes[1] = second;
  a.bytes[15] = last;
  return a;
}
const wire::Address kV6 = v6(0xFD, 0, 1);
const wire::Address kPeerV6 = v6(0xFD, 0, 2);

TEST(Addresses, LeadToPeersOfTheirOwnFamily) {
  for (const Addresses own : {Addresses{kV4, kV6}, Addresses{kV6, kV4}}) {
    EXPECT_EQ(own.towards(kPeerV4), kV4);
    EXPECT_EQ(own.towards(kPeerV6), kV6);
    EXPECT_TRUE(own.reach(kPeerV4) && own.reach(kPeerV6));
    EXPECT_EQ(own.at(own.index_of(kV4)), kV4);
    EXPECT_EQ(own.at(own.index_of(kV6)), kV6);
    EXPECT_EQ(own.header_bytes(), 40U);
    EXPECT_EQ(own.second_if_towards(own.second == kV6 ? kPeerV6 : kPeerV4), &own.second);
    EXPECT_EQ(own.second_if_towards(own.second == kV6 ? kPeerV4 : kPeerV6), nullptr);
  }
  const Addresses one{kV6};
  EXPECT_FALSE(one.both());
  EXPECT_FALSE(one.reach(kPeerV4));
  EXPECT_EQ(one.second_if_towards(kPeerV6), nullptr);
  EXPECT_FALSE(one.have(wire::Address{}));
  EXPECT_EQ(one.header_bytes(), 40U);
  EXPECT_EQ(Addresses{kV4}.header_bytes(), 20U);
}

TEST(Addresses, AreLinkLocalOrLoopbackByTheirFirstBits) {
  EXPECT_TRUE(is_link_local(v6(0xFE, 0x80, 1)));
  EXPECT_TRUE(is_link_local(v6(0xFE, 0xBF, 1)));
  EXPECT_FALSE(is_link_local(v6(0xFE, 0xC0, 1)));
  EXPECT_FALSE(is_link_local(kV4));
  EXPECT_TRUE(is_loopback(v6(0, 0, 1)));
  EXPECT_TRUE(is_loopback(wire::Address::v4(127, 5, 5, 5)));
  // An IPv6 address may have any byte where IPv4's first one stands.
  wire::Address looks_alike = kV6;
  looks_alike.bytes[12] = 127;
  EXPECT_FALSE(is_loopback(looks_alike));
}

}  // namespace
}  // namespace weft::live
