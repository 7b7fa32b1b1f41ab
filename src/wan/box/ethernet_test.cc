#include "wan/box/ethernet.h"

#include <gtest/gtest.h>

#include "core/base/prng.h"
#include "core/wire/bytes.h"
#include "wan/box/fake_port.h"
#include "wan/box/senders.h"
#include "wan/box/trains.h"

namespace weft::wan {
namespace {

Stranger reason_of(const FakePort::Bytes& frame) {
  Frame f;
  std::span<const std::uint8_t> mad;
  Stranger reason = Stranger::kCount;
  return understand(frame, f, mad, reason) ? Stranger::kCount : reason;
}

TEST(EthernetFrame, ThatABoxWroteIsUnderstood) {
  for (const std::uint32_t payload : {1U, 64U, 255U, 256U}) {
    const FakePort::Bytes bytes = packet(wire::kWriteOnly, 7, payload);
    Frame f;
    std::span<const std::uint8_t> mad;
    Stranger reason{};
    ASSERT_TRUE(understand(bytes, f, mad, reason));
    EXPECT_EQ(f.header.psn.v, 7U);
    EXPECT_EQ(f.payload, payload);
    EXPECT_EQ(f.source, kHere);
    EXPECT_EQ(f.destination, kThere);
    EXPECT_TRUE(mad.empty());
  }
}

// Everything that differs from RoCEv2 in one thing is no RoCEv2, for the reason that it is.
TEST(EthernetFrame, IsStrangeForOneReason) {
  const FakePort::Bytes good = packet(wire::kWriteOnly, 7, 64);
  ASSERT_EQ(reason_of(good), Stranger::kCount);
  const auto with = [&](std::size_t at, std::uint8_t value) {
    FakePort::Bytes b = good;
    b[at] = value;
    return b;
  };
  EXPECT_EQ(reason_of(with(12, 0x86)), Stranger::other);
  EXPECT_EQ(reason_of(with(14 + 9, 6)), Stranger::other);
  EXPECT_EQ(reason_of(with(14 + 20 + 3, 1)), Stranger::other);
  EXPECT_EQ(reason_of(with(14, 0x46)), Stranger::fragment);
  EXPECT_EQ(reason_of(with(14 + 6, 0x20)), Stranger::fragment);
  EXPECT_EQ(reason_of(with(14 + 3, 0xFF)), Stranger::fragment);  // longer than the frame
  EXPECT_EQ(reason_of(with(14 + 20 + 5, 9)), Stranger::malformed);
  EXPECT_EQ(reason_of(with(42, 0x3F)), Stranger::malformed);
  EXPECT_EQ(reason_of(with(42 + 30, 0x55)), Stranger::bad_icrc);
  EXPECT_EQ(reason_of({}), Stranger::other);
  FakePort::Bytes padded = good;
  padded.resize(padded.size() + 20);
  EXPECT_EQ(reason_of(padded), Stranger::kCount);
}

// Any bytes and any length: an answer, and nothing is read outside (the sanitizers look).
TEST(EthernetFrame, OfAnyBytesHasAReason) {
  Prng random(1);
  for (int i = 0; i < 20'000; ++i) {
    FakePort::Bytes b = packet(wire::kWriteOnly, 7, 64);
    for (std::uint64_t n = random.below(4); n > 0; --n)
      b[random.below(b.size())] = static_cast<std::uint8_t>(random.next());
    b.resize(random.below(b.size() + 1));
    b.shrink_to_fit();
    static_cast<void>(reason_of(b));
  }
}

TEST(EthernetFrame, HasNoUdpChecksumAfterItWasCleared) {
  FakePort::Bytes b = packet(wire::kWriteOnly, 7, 64);
  b[40] = b[41] = 0x77;
  clear_udp_checksum(b.data());
  EXPECT_EQ(wire::load_be16(b.data() + 40), 0U);
  EXPECT_EQ(reason_of(b), Stranger::kCount);
}

// A device numbers the frames of a train, and the ICRC covers that number.
TEST(Train, IsCutIntoFramesWithRightLengthsNumbersAndChecksums) {
  RxFrame t;
  FakePort::Bytes bytes(kHeadersBytes + 250);
  const FakePort::Bytes some = packet(wire::kWriteOnly, 7, 64);
  std::copy_n(some.begin(), kHeadersBytes, bytes.begin());
  for (std::size_t i = 0; i < 250; ++i) bytes[kHeadersBytes + i] = static_cast<std::uint8_t>(i);
  wire::store_be16(bytes.data() + 14 + 4, 500);
  t.data = bytes.data();
  t.bytes = static_cast<std::uint32_t>(bytes.size());
  EXPECT_FALSE(can_be_cut(t));
  t.offload.cut_as = Offload::kUdpTrain;
  t.offload.piece = 100;
  ASSERT_TRUE(can_be_cut(t));
  ASSERT_EQ(frames_of(t), 3U);
  std::vector<std::uint8_t> out(longest_of(t));
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::uint32_t n = cut_frame(t, i, out.data());
    EXPECT_EQ(n, kHeadersBytes + (i < 2 ? 100 : 50));
    EXPECT_EQ(wire::load_be16(out.data() + 16), n - 14);
    EXPECT_EQ(wire::load_be16(out.data() + 18), 500 + i);
    EXPECT_EQ(wire::load_be16(out.data() + 38), n - 34);
    std::uint32_t sum = 0;
    for (std::size_t k = 14; k < 34; k += 2) sum += wire::load_be16(out.data() + k);
    EXPECT_EQ((sum & 0xFFFFU) + (sum >> 16U), 0xFFFFU);
    for (std::size_t k = kHeadersBytes; k < n; ++k) EXPECT_EQ(out[k], static_cast<std::uint8_t>(at++));
  }
}

TEST(Senders, KnowBothDirectionsFromOne) {
  Senders s;
  EthernetHeader e;
  std::uint16_t port = 0;
  EXPECT_FALSE(s.header(kHere, kThere, e, port));
  s.saw(kHere, kThere, kOutward.data(), 5000);
  ASSERT_TRUE(s.header(kThere, kHere, e, port));
  EXPECT_EQ(e, kHomeward);
  EthernetHeader other = kHomeward;
  other[11] = 9;  // another router on the way home
  s.saw(kThere, kHere, other.data(), 6000);
  ASSERT_TRUE(s.header(kThere, kHere, e, port));
  EXPECT_EQ(e, other);
  EXPECT_EQ(port, 6000);
  // A station that moves is found where it is now, and many strangers push nobody out for good.
  for (std::uint32_t i = 0; i < 100'000; ++i)
    s.saw(wire::Address::v4(1, static_cast<std::uint8_t>(i >> 16U), static_cast<std::uint8_t>(i >> 8U),
                            static_cast<std::uint8_t>(i)),
          kThere, kOutward.data(), 1);
  s.saw(kHere, kThere, kOutward.data(), 5000);
  ASSERT_TRUE(s.header(kHere, kThere, e, port));
  EXPECT_EQ(e, kOutward);
}

}  // namespace
}  // namespace weft::wan
