// Which frame is believed, when all that a socket shows of it is what lies behind the UDP header
// (docs/protocol/icrc.md#the-ipv4-identification). Frames are made one by one, with the identification that
// each is to have.
#include "live/wires/unpack.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/prng.h"
#include "core/wire/icrc.h"

namespace weft::live {
namespace {

const wire::Address kPeer = wire::Address::v4(10, 0, 0, 1);
const wire::Address kUs = wire::Address::v4(10, 0, 0, 2);

using Frame = std::vector<std::uint8_t>;

// A WRITE's middle packet of 64 bytes, from `source`.
Frame frame_with(std::uint16_t identification, const wire::Address& source = kPeer,
                 bool dont_fragment = true) {
  Frame f(12 + 64 + 4);
  wire::Header h;
  h.opcode = wire::kWriteMiddle;
  EXPECT_EQ(wire::encode(h, 64, f), 12U);
  for (std::size_t i = 12; i < 76; ++i) f[i] = static_cast<std::uint8_t>(i * 7U);
  wire::Icrc icrc({.source = source,
                   .destination = kUs,
                   .source_port = wire::kUdpPort,
                   .udp_length = static_cast<std::uint16_t>(8 + f.size()),
                   .identification = identification,
                   .dont_fragment = dont_fragment});
  icrc.packet(std::span(f).first(76));
  for (std::size_t i = 0; i < 4; ++i) f[76 + i] = static_cast<std::uint8_t>(icrc.value() >> (8 * i));
  return f;
}

class UnpackTest : public ::testing::Test {
 protected:
  // Unpacks frames that arrive as one train, and returns how many were accepted.
  std::size_t arrive(Frame frames, std::uint32_t size = 80, const wire::Address& source = kPeer) {
    RxTrain t;
    t.data = frames.data();
    t.bytes = static_cast<std::uint32_t>(frames.size());
    t.frame_size = size;
    t.source = source;
    t.source_port = wire::kUdpPort;
    RxBatch batch;
    unpacker_.unpack(t, 0, batch);
    return batch.size;
  }
  // The same from a wire that saw the header of the first.
  std::size_t arrive_seen(Frame frames, std::uint16_t identification, bool dont_fragment = true) {
    RxTrain t;
    t.data = frames.data();
    t.bytes = static_cast<std::uint32_t>(frames.size());
    t.frame_size = 80;
    t.source = kPeer;
    t.source_port = wire::kUdpPort;
    t.header_seen = true;
    t.dont_fragment = dont_fragment;
    t.identification = t.first = identification;
    RxBatch batch;
    unpacker_.unpack(t, 0, batch);
    return batch.size;
  }
  static Frame joined(std::initializer_list<std::uint16_t> identifications) {
    Frame all;
    for (const std::uint16_t i : identifications) {
      const Frame f = frame_with(i);
      all.insert(all.end(), f.begin(), f.end());
    }
    return all;
  }
  bool accepts(std::uint16_t identification) { return arrive(frame_with(identification)) == 1; }
  void corrupt() {
    Frame f = frame_with(0);
    f[40] ^= 0x10;
    EXPECT_EQ(arrive(f), 0U);
  }
  // The peer has shown that it sends trains.
  void see_trains() {
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(accepts(0));
  }
  const WireCounters& counters() const { return unpacker_.counters(); }

  Unpacker unpacker_{[] {
                       WireFacts f;
                       f.own.first = kUs;
                       return f;
                     }(),
                     true};
};

// A network without receive offload hands over the frames of each train alone: 64 of them, then an
// acknowledgement, then a train of the longest kind.
TEST_F(UnpackTest, AcceptsTheFramesOfATrainThatArriveOneByOne) {
  for (int train = 0; train < 20; ++train) {
    for (std::uint16_t i = 0; i < 64; ++i) EXPECT_TRUE(accepts(i)) << i;
    EXPECT_TRUE(accepts(0));
    for (std::uint16_t i = 0; i < kMostTrainFrames; ++i) EXPECT_TRUE(accepts(i)) << i;
  }
  EXPECT_EQ(counters().rx_icrc, 0U);
  EXPECT_LE(counters().icrc_id_inferred,
            20U * 4);  // at and behind the begin of a train, and at the acknowledgement
  EXPECT_EQ(counters().icrc_id_numbered, 0U);
}

// Receive offload joins what came, wherever the sender's trains began, whatever was lost between.
TEST_F(UnpackTest, AcceptsTheFramesOfTrainsThatWereJoinedAnew) {
  see_trains();
  Frame joined;
  constexpr std::uint16_t kIdentifications[] = {14, 15, 0, 1, 2, 5, 6, 0, 0, 1};
  for (const std::uint16_t identification : kIdentifications) {
    const Frame f = frame_with(identification);
    joined.insert(joined.end(), f.begin(), f.end());
  }
  EXPECT_EQ(arrive(joined), 10U);
}

// Reordering and loss: any frame of a train may follow any other.
TEST_F(UnpackTest, AcceptsTheFramesOfATrainInAnyOrder) {
  see_trains();
  Prng prng(1);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(accepts(static_cast<std::uint16_t>(prng.below(64))));
}

// What a source of trains cannot have sent is corrupt, although an identification explains it: 25 bits of the
// CRC remain.
TEST_F(UnpackTest, BelievesNoNumbersOfASourceOfTrains) {
  see_trains();
  for (std::uint32_t id = kMostTrainFrames; id < 65'536; id += 257) {
    EXPECT_FALSE(accepts(static_cast<std::uint16_t>(id))) << id;
    for (std::uint16_t i = 0; i < 64; ++i) ASSERT_TRUE(accepts(i)) << id;
  }
  EXPECT_EQ(counters().icrc_id_numbered, 0U);
}

// Hardware numbers its packets, and every other flow of the host moves the numbers on; they wrap. On a clean
// path every packet is accepted, also after a pause that moved them far.
TEST_F(UnpackTest, FollowsASourceThatNumbers) {
  Prng prng(2);
  std::uint16_t id = 0xBEEF;
  for (int i = 0; i < 20'000; ++i) {
    id = static_cast<std::uint16_t>(id + 1 + prng.below(i % 1000 == 999 ? 60'000 : 40));
    EXPECT_TRUE(accepts(id)) << i;
    if (id < 0x100) id = 0x100;  // the next test wraps
  }
  EXPECT_EQ(counters().rx_icrc, 0U);
}

// A source that numbers passes the identifications of trains when it wraps. Those behind are in sequence.
TEST_F(UnpackTest, LosesNothingWhenTheNumbersWrap) {
  for (std::uint32_t i = 65'000; i < 65'536 + 1000; ++i)
    EXPECT_TRUE(accepts(static_cast<std::uint16_t>(i))) << i;
  EXPECT_EQ(counters().icrc_id_inferred, 1U);  // the first
}

// A sender without segmentation writes 0 always; whether its frames arrive alone or joined, the second tells.
TEST_F(UnpackTest, ExpectsZeroOfASourceThatWritesNothingElse) {
  Frame joined;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(accepts(0));
    const Frame f = frame_with(0);
    joined.insert(joined.end(), f.begin(), f.end());
  }
  EXPECT_EQ(arrive(joined), 10U);
  EXPECT_EQ(counters().icrc_id_inferred, 2U);
}

// A host that draws its identifications at random loses a few packets at most.
TEST_F(UnpackTest, AcceptsASourceThatDrawsItsNumbers) {
  Prng prng(3);
  std::uint32_t refused = 0;
  for (int i = 0; i < 20'000; ++i) refused += accepts(static_cast<std::uint16_t>(prng.next())) ? 0 : 1;
  // One in 512 is below 128, and closes the source to one leap.
  EXPECT_LE(refused, 100U);
}

// A path that corrupts is no place to believe leaps: the first is refused, and the next number confirms it.
TEST_F(UnpackTest, ALeapCostsOnePacketOnAPathThatCorrupts) {
  for (std::uint16_t id = 1000; id < 1100; ++id) ASSERT_TRUE(accepts(id));
  corrupt();
  EXPECT_TRUE(accepts(1101));
  EXPECT_FALSE(accepts(40'000));
  EXPECT_TRUE(accepts(40'001));
  EXPECT_TRUE(accepts(40'002));
}

// A peer's address may come to belong to a host of another kind: its first packets confirm each other.
TEST_F(UnpackTest, ASourceOfTrainsMayBecomeOneThatNumbers) {
  see_trains();
  EXPECT_FALSE(accepts(30'000));
  for (std::uint16_t id = 30'001; id < 30'300; ++id) EXPECT_TRUE(accepts(id));
}

// Frames whose last four bytes are random, on a path that does nothing else: of a million, one in 65 536 is
// explained by some identification, and one in 33 million by one that a train has.
TEST_F(UnpackTest, AcceptsHardlyAnyCorruptFrameOfAStrictSource) {
  see_trains();
  Prng prng(4);
  Frame f = frame_with(0);
  std::size_t accepted = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    for (std::size_t k = 76; k < 80; ++k) f[k] = static_cast<std::uint8_t>(prng.next());
    accepted += arrive(f);
  }
  EXPECT_LE(accepted, 1U);
  EXPECT_GT(counters().rx_icrc, 999'990U);
}

// What one source has shown says nothing about another.
TEST_F(UnpackTest, JudgesEverySourceByItself) {
  see_trains();
  const wire::Address other = wire::Address::v4(10, 0, 0, 3);
  EXPECT_EQ(arrive(frame_with(0xBEEF, other), 80, other), 1U);
  EXPECT_FALSE(accepts(0xBEEF));
}

// No other source wears its evidence away: not one, and not all of a large network.
TEST_F(UnpackTest, RemembersASourceOfTrainsAmongManyOthers) {
  std::uint32_t others = 1;
  for (const std::uint32_t more : {100U, 30'000U}) {
    see_trains();
    for (const std::uint32_t end = others + more; others < end; ++others) {
      const wire::Address other = wire::Address::v4(10, static_cast<std::uint8_t>(1 + (others >> 14U)),
                                                    static_cast<std::uint8_t>((others >> 6U) & 0xFFU),
                                                    static_cast<std::uint8_t>((others & 63U) * 4 + 1));
      arrive(frame_with(0, other), 80, other);
    }
    EXPECT_FALSE(accepts(30'000)) << more;
  }
}

// In a network of more sources than are remembered, one that numbers its packets loses the first of them.
TEST_F(UnpackTest, ANewSourceThatNumbersLosesOnePacketWhereAllPlacesAreTaken) {
  for (std::uint32_t i = 0; i < 30'000; ++i) {
    const wire::Address other =
        wire::Address::v4(10, 1, static_cast<std::uint8_t>(i >> 8U), static_cast<std::uint8_t>(i));
    arrive(frame_with(0, other), 80, other);
  }
  EXPECT_FALSE(accepts(30'000));
  for (std::uint16_t id = 30'001; id < 30'300; ++id) EXPECT_TRUE(accepts(id));
}

// A damaged payload is explained by no identification.
TEST_F(UnpackTest, RefusesANumberedFrameWithADamagedPayload) {
  Frame f = frame_with(0xBEEF);
  EXPECT_EQ(arrive(f), 1U);
  EXPECT_EQ(counters().icrc_id_inferred, 1U);
  f[40] ^= 0x10;
  EXPECT_EQ(arrive(f), 0U);
  EXPECT_EQ(counters().rx_icrc, 1U);
}

// A forger on this host has everything right, the ICRC for its own port included, but not the port.
TEST_F(UnpackTest, DropsAndCountsStrays) {
  Frame f = frame_with(0);
  RxTrain t;
  t.data = f.data();
  t.bytes = t.frame_size = static_cast<std::uint32_t>(f.size());
  t.source = kPeer;
  t.source_port = wire::kUdpPort;
  RxBatch batch;
  t.stray = true;
  EXPECT_EQ(unpacker_.unpack(t, 0, batch), t.bytes);
  EXPECT_EQ(batch.size, 0U);
  EXPECT_EQ(counters().rx_port, 1U);
  t.stray = false;
  unpacker_.unpack(t, 0, batch);
  EXPECT_EQ(batch.size, 1U);
}

// Where the header was seen a frame has the identification that it has, and no other explains its ICRC.
TEST_F(UnpackTest, SolvesForNothingWhereTheHeaderWasSeen) {
  EXPECT_EQ(arrive_seen(frame_with(0xBEEF), 0xBEEF), 1U);
  EXPECT_EQ(arrive_seen(frame_with(0xBEEF), 0xBEEE), 0U);
  EXPECT_EQ(arrive_seen(frame_with(0), 1), 0U);
  EXPECT_EQ(counters().rx_icrc, 2U);
  EXPECT_EQ(counters().icrc_id_inferred, 0U);
}

// The kernel joins frames that are numbered one by one, and frames of a sender that numbers nothing.
TEST_F(UnpackTest, FramesThatTheKernelJoinedAreNumberedOnOrAllAlike) {
  EXPECT_EQ(arrive_seen(joined({0xFFFE, 0xFFFF, 0, 1}), 0xFFFE), 4U);
  EXPECT_EQ(arrive_seen(joined({5, 5, 5}), 5), 3U);
  EXPECT_EQ(arrive_seen(joined({5, 6, 9}), 5), 2U);
  EXPECT_EQ(counters().rx_icrc, 1U);
}

// A sender may let its packets be fragmented, and the ICRC covers that bit.
TEST_F(UnpackTest, TheHeadersDontFragmentBitCounts) {
  EXPECT_EQ(arrive_seen(frame_with(3, kPeer, false), 3, false), 1U);
  EXPECT_EQ(arrive_seen(frame_with(3, kPeer, false), 3, true), 0U);
  EXPECT_EQ(arrive_seen(frame_with(3), 3, false), 0U);
}

// What the wire shows of the IP header goes to the transport, for the 40 bytes in front of a datagram.
TEST_F(UnpackTest, PassesTrafficClassAndHopLimitOn) {
  Frame f = frame_with(0);
  RxTrain t;
  t.data = f.data();
  t.bytes = t.frame_size = static_cast<std::uint32_t>(f.size());
  t.source = kPeer;
  t.source_port = wire::kUdpPort;
  t.tos = 0xB8;
  t.ttl = 17;
  RxBatch batch;
  unpacker_.unpack(t, 0, batch);
  ASSERT_EQ(batch.size, 1U);
  EXPECT_EQ(batch.packets[0].tos, 0xB8);
  EXPECT_EQ(batch.packets[0].ttl, 17);
}

}  // namespace
}  // namespace weft::live
