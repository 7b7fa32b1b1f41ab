// IP headers against the hand-made frames of data/vectors (V1, V10) and against themselves as a GRH.
#include "core/wire/ip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/prng.h"

namespace weft::wire {
namespace {

using Grh = std::array<std::uint8_t, kGrhBytes>;

Address v6(std::uint8_t last) {
  Address a;
  a.bytes[0] = 0xFD;
  a.bytes[15] = last;
  return a;
}

// The 20 bytes of vector V1: ECT(0), don't fragment, checksum 26a5.
TEST(IpHeaders, AnIpv4HeaderIsTheOneOfVectorV1) {
  const IpHeader h{.source = Address::v4(10, 0, 0, 1),
                   .destination = Address::v4(10, 0, 0, 2),
                   .udp_length = 0x30,
                   .tos = 2};
  std::array<std::uint8_t, 20> got{};
  EXPECT_EQ(write_ip_header(h, got), 20U);
  const std::array<std::uint8_t, 20> want = {0x45, 0x02, 0x00, 0x44, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                                             0x26, 0xa5, 0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00, 0x02};
  EXPECT_EQ(got, want);
}

// Vector V10: traffic class 0x6A, flow label 0x12345.
TEST(IpHeaders, AnIpv6HeaderIsTheOneOfVectorV10) {
  const IpHeader h{.source = v6(1),
                   .destination = v6(2),
                   .udp_length = 0x30,
                   .tos = 0x6A,
                   .ttl = 1,
                   .flow_label = 0x12345};
  std::array<std::uint8_t, 40> got{};
  EXPECT_EQ(write_ip_header(h, got), 40U);
  const std::array<std::uint8_t, 8> want = {0x66, 0xa1, 0x23, 0x45, 0x00, 0x30, 0x11, 0x01};
  EXPECT_TRUE(std::equal(want.begin(), want.end(), got.begin()));
  EXPECT_EQ(got[8], 0xFD);
  EXPECT_EQ(got[23], 1);
  EXPECT_EQ(got[39], 2);
}

TEST(Grh, AnIpv4HeaderFillsTheSecondHalfAndTheFirstIsZero) {
  Grh grh;
  grh.fill(0xEE);
  write_grh({.source = Address::v4(1, 2, 3, 4), .destination = Address::v4(5, 6, 7, 8), .udp_length = 296},
            grh);
  EXPECT_TRUE(std::all_of(grh.begin(), grh.begin() + 20, [](std::uint8_t b) { return b == 0; }));
  EXPECT_EQ(grh[20], 0x45);
  EXPECT_EQ(grh[32], 1);
  EXPECT_EQ(grh[39], 8);
}

TEST(Grh, WhatWasWrittenIsReadBack) {
  Prng prng(7);
  for (int i = 0; i < 2000; ++i) {
    IpHeader h;
    const bool is_v4 = i % 2 == 0;
    for (Address* a : {&h.source, &h.destination}) {
      *a = Address::v4(0, 0, 0, 0);
      for (std::size_t b = is_v4 ? 12 : 0; b < 16; ++b) a->bytes[b] = static_cast<std::uint8_t>(prng.next());
    }
    h.udp_length = static_cast<std::uint16_t>(prng.below(4200));
    h.tos = static_cast<std::uint8_t>(prng.next());
    h.ttl = static_cast<std::uint8_t>(prng.next());
    if (is_v4) h.identification = static_cast<std::uint16_t>(prng.next());
    if (!is_v4) h.flow_label = static_cast<std::uint32_t>(prng.below(1U << 20U));
    Grh grh;
    write_grh(h, grh);
    IpHeader got;
    ASSERT_TRUE(read_grh(grh, got));
    ASSERT_EQ(got, h);
  }
}

// Without this a program that builds an address handle would read the wrong half as a header.
TEST(Grh, AnIpv4HeaderWithAWrongChecksumIsNone) {
  Grh grh;
  write_grh({.source = Address::v4(1, 2, 3, 4), .destination = Address::v4(5, 6, 7, 8), .udp_length = 296},
            grh);
  grh[39] ^= 1U;
  IpHeader got;
  EXPECT_FALSE(read_grh(grh, got));
  grh.fill(0);
  EXPECT_FALSE(read_grh(grh, got));
}

}  // namespace
}  // namespace weft::wire
