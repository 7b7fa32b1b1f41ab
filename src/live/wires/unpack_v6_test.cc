// Frames over IPv6: there is no identification, so an ICRC is right or wrong, and no frame is believed
// because some identification would explain it.
#include <gtest/gtest.h>

#include <vector>

#include "live/wires/pack.h"
#include "live/wires/unpack.h"

namespace weft::live {
namespace {

wire::Address host(std::uint8_t n) {
  wire::Address a;
  a.bytes[0] = 0xFD;
  a.bytes[15] = n;
  return a;
}

WireFacts facts_of(const Addresses& own) {
  WireFacts f;
  f.own = own;
  f.port = wire::kUdpPort;
  f.max_frames = 64;
  f.identification_counts = true;  // of IPv4; over IPv6 it means nothing
  return f;
}

// What a Packer makes of `count` WRITE packets of 64 bytes.
std::vector<std::uint8_t> packed(const Addresses& own, const wire::Address& to, std::uint32_t count) {
  const WireFacts facts = facts_of(own);
  Packer packer(facts, true);
  const std::vector<std::uint8_t> payload(64, 0x5A);
  const Piece piece{payload.data(), 64};
  wire::Header h;
  h.opcode = wire::kWriteMiddle;
  for (std::uint32_t i = 0; i < count; ++i) {
    h.psn.v = i;
    EXPECT_TRUE(packer.fits(to, h, 64));
    EXPECT_TRUE(packer.append(to, h, {&piece, 1}, 64));
  }
  const auto bytes = packer.train().bytes;
  return {bytes.begin(), bytes.end()};
}

struct Arrived {
  std::size_t taken = 0;
  WireCounters counters;
  std::vector<wire::Address> to;  // another than the first of our addresses
};

Arrived arrive(const Addresses& own, const wire::Address& from, std::vector<std::uint8_t> frames,
               bool header_seen = false) {
  Unpacker unpacker(facts_of(own), true);
  RxTrain t;
  t.data = frames.data();
  t.bytes = static_cast<std::uint32_t>(frames.size());
  t.frame_size = 80;
  t.source = from;
  t.source_port = wire::kUdpPort;
  t.header_seen = header_seen;
  RxBatch batch;
  unpacker.unpack(t, 0, batch);
  Arrived a{batch.size, unpacker.counters(), {}};
  for (const wire::RxPacket& p : batch.view()) {
    if (p.group != nullptr) a.to.push_back(*p.group);
  }
  return a;
}

TEST(UnpackV6, TakesTheFramesOfATrainWithoutSolvingForAnything) {
  for (const bool seen : {false, true}) {
    const Arrived a = arrive({host(2)}, host(1), packed({host(1)}, host(2), 20), seen);
    EXPECT_EQ(a.taken, 20U);
    EXPECT_EQ(a.counters.icrc_id_inferred, 0U);
    EXPECT_EQ(a.counters.rx_icrc, 0U);
  }
}

// Over IPv4 one such frame in 65 536 has an identification that explains it, and each frame is solved for.
TEST(UnpackV6, RefusesEveryFrameWithABitFlipped) {
  const std::vector<std::uint8_t> good = packed({host(1)}, host(2), 1);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::vector<std::uint8_t> bad = good;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    if (bit / 8 == 4) continue;  // the congestion bits' byte, which no ICRC covers
    EXPECT_EQ(arrive({host(2)}, host(1), bad).taken, 0U) << bit;
  }
}

// The addresses are under the ICRC, all of their bytes.
TEST(UnpackV6, RefusesFramesOfAnotherHost) {
  for (std::size_t i = 0; i < 16; ++i) {
    wire::Address other = host(1);
    other.bytes[i] ^= 1;
    EXPECT_EQ(arrive({host(2)}, other, packed({host(1)}, host(2), 1)).taken, 0U) << i;
    wire::Address elsewhere = host(2);
    elsewhere.bytes[i] ^= 1;
    EXPECT_EQ(arrive({elsewhere}, host(1), packed({host(1)}, host(2), 1)).taken, 0U) << i;
  }
}

// Each packet is checked against that of our addresses that it came to, and says which, if it is not the
// first.
TEST(UnpackV6, TellsToWhichOfTwoAddressesAPacketCame) {
  const wire::Address v4 = wire::Address::v4(10, 0, 0, 2);
  const wire::Address peer_v4 = wire::Address::v4(10, 0, 0, 1);
  const Addresses peer{peer_v4, host(1)};
  const Addresses own{v4, host(2)};
  const Arrived over_v4 = arrive(own, peer_v4, packed(peer, v4, 3));
  EXPECT_EQ(over_v4.taken, 3U);
  EXPECT_TRUE(over_v4.to.empty());
  const Arrived over_v6 = arrive(own, host(1), packed(peer, host(2), 3));
  EXPECT_EQ(over_v6.taken, 3U);
  EXPECT_EQ(over_v6.to, std::vector<wire::Address>(3, host(2)));
}

}  // namespace
}  // namespace weft::live
