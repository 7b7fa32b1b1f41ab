// The ICRC's short cuts against the plain definition, computed here one bit at a time: all piece-wise
// ways give one value, masked bits do not matter, all others do, and an identification is found again.
#include "core/wire/icrc.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/prng.h"
#include "core/wire/bytes.h"
#include "core/wire/codec.h"

namespace weft::wire {
namespace {

using Packet = std::vector<std::uint8_t>;

// docs/protocol/icrc.md#the-algorithm, word for word: CRC-32 of eight 0xFF bytes and the masked headers.
std::uint32_t by_definition(const IpFacts& ip, const Packet& bth_to_pad) {
  Packet bytes(8, 0xFF);
  const auto be16 = [&](unsigned v) {
    bytes.push_back(static_cast<std::uint8_t>(v >> 8U));
    bytes.push_back(static_cast<std::uint8_t>(v));
  };
  const bool v4 = ip.is_v4();
  if (v4) {
    be16(0x45FF);
    be16(20U + ip.udp_length);
    be16(ip.identification);
    be16(ip.dont_fragment ? 0x4000U : 0U);
    be16(0xFF11);
    be16(0xFFFF);
  } else {
    be16(0x6FFF);
    be16(0xFFFF);
    be16(ip.udp_length);
    be16(0x11FF);
  }
  bytes.insert(bytes.end(), ip.source.bytes.begin() + (v4 ? 12 : 0), ip.source.bytes.end());
  bytes.insert(bytes.end(), ip.destination.bytes.begin() + (v4 ? 12 : 0), ip.destination.bytes.end());
  be16(ip.source_port);
  be16(kUdpPort);
  be16(ip.udp_length);
  be16(0xFFFF);
  const std::size_t bth = bytes.size();
  bytes.insert(bytes.end(), bth_to_pad.begin(), bth_to_pad.end());
  bytes[bth + 4] = 0xFF;
  std::uint32_t r = 0xFFFF'FFFF;
  for (const std::uint8_t b : bytes) {
    r ^= b;
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1U) ^ ((r & 1U) != 0 ? 0xEDB8'8320U : 0U);
  }
  return ~r;
}

Packet random_packet(std::size_t size, Prng& prng) {
  Packet p(size);
  for (std::uint8_t& b : p) b = static_cast<std::uint8_t>(prng.next());
  return p;
}

IpFacts facts(bool v4, std::size_t bth_to_pad, std::uint16_t identification) {
  IpFacts ip;
  ip.source = Address::v4(10, 0, 0, 1);
  ip.destination = Address::v4(192, 168, 7, 200);
  if (!v4) ip.source.bytes[0] = ip.destination.bytes[0] = 0xFD;
  ip.source_port = 0xC0DE;
  ip.udp_length = static_cast<std::uint16_t>(8 + bth_to_pad + kIcrcBytes);
  ip.identification = identification;
  return ip;
}

TEST(IcrcTest, AnyLengthInAnyPiecesGivesTheValueOfTheDefinition) {
  Prng prng(1);
  for (std::size_t size = 12; size < 400; ++size) {
    const Packet p = random_packet(size, prng);
    const IpFacts ip = facts(size % 3 != 0, size, static_cast<std::uint16_t>(prng.next()));
    const std::uint32_t expected = by_definition(ip, p);
    Icrc whole(ip);
    whole.packet(p);
    ASSERT_EQ(whole.value(), expected) << size;
    const std::span<const std::uint8_t> bytes(p);
    Icrc pieces(ip);
    pieces.bth(bytes.first<12>());
    const std::size_t cut = 12 + prng.below(size - 11);
    pieces.update(bytes.subspan(12, cut - 12));
    pieces.update(bytes.subspan(cut));
    ASSERT_EQ(pieces.value(), expected) << size;
  }
}

TEST(IcrcTest, AnIdentificationCanBeSetAfterTheHeadersWereCovered) {
  Prng prng(2);
  const Packet p = random_packet(60, prng);
  const Icrc base(facts(true, p.size(), 0));
  for (std::uint32_t id = 0; id < 65536; id += 251) {
    Icrc i = base.with_identification(static_cast<std::uint16_t>(id));
    i.packet(p);
    ASSERT_EQ(i.value(), by_definition(facts(true, p.size(), static_cast<std::uint16_t>(id)), p)) << id;
  }
}

TEST(IcrcTest, BthByteFourDoesNotCountAndEveryOtherBitDoes) {
  Prng prng(3);
  Packet p = random_packet(40, prng);
  const IpFacts ip = facts(true, p.size(), 0);
  Icrc original(ip);
  original.packet(p);
  for (std::size_t i = 0; i < p.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      p[i] = static_cast<std::uint8_t>(p[i] ^ (1U << bit));
      Icrc flipped(ip);
      flipped.packet(p);
      ASSERT_EQ(flipped.value() == original.value(), i == 4) << "byte " << i;
      p[i] = static_cast<std::uint8_t>(p[i] ^ (1U << bit));
    }
  }
}

TEST(IcrcTest, TheDontFragmentFlagIsCovered) {
  IpFacts ip = facts(true, 20, 0);
  const Icrc set(ip);
  ip.dont_fragment = false;
  const Icrc clear(ip);
  EXPECT_NE(set.value(), clear.value());
}

// Captured headers can be cut anywhere; nothing may be read behind the cut.
TEST(IcrcTest, ACapturedHeaderOfAnyLengthIsSafe) {
  Prng prng(4);
  for (const unsigned first : {0x45U, 0x4FU, 0x40U, 0x60U, 0x00U, 0xFFU}) {
    for (std::size_t size = 0; size < 100; ++size) {
      Packet headers = random_packet(size, prng);
      if (size > 0) headers[0] = static_cast<std::uint8_t>(first);
      Icrc i{std::span<const std::uint8_t>(headers)};
      for (std::size_t n = 0; n < 16; ++n)
        i.packet(std::span<const std::uint8_t>(headers).first(std::min(n, size)));
    }
  }
}

// IPv4 options shift the UDP header; the raw constructor must follow the header length. The options' own
// bytes are covered, so changing one changes the value, and changing the TTL does not.
TEST(IcrcTest, ACapturedHeaderWithOptionsHasItsUdpChecksumMaskedInTheRightPlace) {
  Packet headers(24 + 8, 0x11);
  headers[0] = 0x46;
  const auto value = [&] { return Icrc{std::span<const std::uint8_t>(headers)}.value(); };
  const std::uint32_t original = value();
  headers[8] ^= 0x40U;       // TTL
  headers[24 + 7] ^= 0x40U;  // UDP checksum
  EXPECT_EQ(value(), original);
  headers[20 + 6] ^= 0x40U;  // would be masked if options were ignored: the destination port
  EXPECT_NE(value(), original);
}

TEST(SolveIdentification, FindsEveryIdentificationAtEveryKindOfLength) {
  Prng prng(5);
  for (const std::size_t size :
       {std::size_t{12}, std::size_t{16}, std::size_t{92}, std::size_t{254}, std::size_t{1040},
        std::size_t{4152}, std::size_t{9000}, std::size_t{65000}}) {
    const Packet p = random_packet(size, prng);
    const IpFacts ip = facts(true, size, 0);
    const Icrc base(ip);
    Icrc zero = base;
    zero.packet(p);
    for (int i = 0; i < 500; ++i) {
      const auto id = static_cast<std::uint16_t>(prng.next());
      Icrc sent = base.with_identification(id);
      sent.packet(p);
      std::uint16_t found = 0;
      ASSERT_TRUE(
          solve_identification(zero.value(), sent.value(), bytes_after_identification(ip.udp_length), found));
      ASSERT_EQ(found, id);
    }
  }
}

// One random difference in 65 536 is a possible identification. Of 20 000 tries none or one should be; more
// than five happen for one seed in a hundred million.
TEST(SolveIdentification, RefusesADifferenceThatNoIdentificationExplains) {
  Prng prng(6);
  int explained = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::uint16_t id = 0;
    explained += solve_identification(0, static_cast<std::uint32_t>(prng.next()), 1000, id);
  }
  EXPECT_LE(explained, 5);
}

TEST(SolveIdentification, RefusesLengthsBeyondAnIpPacket) {
  std::uint16_t id = 0;
  EXPECT_TRUE(solve_identification(0, 0, 65'545, id));
  EXPECT_FALSE(solve_identification(0, 0, 70'000, id));
  EXPECT_FALSE(solve_identification(0, 0, 0xFFFF'FFFF, id));
}

}  // namespace
}  // namespace weft::wire
