// Frames written and read back, and every way in which a hostile one is turned away.
#include "live/packet_io/frame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/prng.h"
#include "core/wire/bytes.h"

namespace weft::live {
namespace {

const wire::Address kA = wire::Address::v4(10, 0, 0, 1);
const wire::Address kB = wire::Address::v4(10, 0, 0, 2);
constexpr std::size_t kIp = kEthernetBytes;
constexpr std::size_t kUdp = kIp + wire::kIpv4Bytes;

FrameHeaders headers(std::size_t payload) {
  return {.to = {2, 0, 0, 0, 0, 2},
          .from = {2, 0, 0, 0, 0, 1},
          .ip = {.source = kA,
                 .destination = kB,
                 .udp_length = static_cast<std::uint16_t>(wire::kUdpBytes + payload),
                 .identification = 0x1234,
                 .tos = 0x69,
                 .ttl = 7,
                 .flow_label = 0},
          .source_port = 49153,
          .destination_port = 4791};
}

std::vector<std::uint8_t> frame_of(std::size_t payload) {
  std::vector<std::uint8_t> bytes(kFrameHeaders + payload);
  write_frame_headers(headers(payload), std::span(bytes).first<kFrameHeaders>());
  for (std::size_t i = 0; i < payload; ++i) bytes[kFrameHeaders + i] = static_cast<std::uint8_t>(i * 7);
  return bytes;
}

void mend_ip(std::vector<std::uint8_t>& f) {
  wire::store_be16(&f[kIp + 10], 0);
  wire::store_be16(&f[kIp + 10], wire::internet_checksum(wire::internet_sum(std::span(f).subspan(kIp, 20))));
}

// As the sender of a checksum computes it; a sum of zero is written as ones.
void mend_udp(std::vector<std::uint8_t>& f) {
  const std::uint16_t length = wire::load_be16(&f[kUdp + 4]);
  wire::store_be16(&f[kUdp + 6], 0);
  const std::uint64_t pseudo = wire::internet_sum(std::span(f).subspan(kIp + 12, 8)) + 17 + length;
  const std::uint16_t sum =
      wire::internet_checksum(wire::internet_sum(std::span(f).subspan(kUdp, length), pseudo));
  wire::store_be16(&f[kUdp + 6], sum == 0 ? std::uint16_t{0xFFFF} : sum);
}

std::string refusal(const std::vector<std::uint8_t>& f, UdpChecksum checksum = UdpChecksum::kLook) {
  Datagram d;
  FrameError error{};
  return read_frame(f, checksum, d, error) ? "read" : kFrameErrorTexts[static_cast<std::size_t>(error)];
}

std::string text(FrameError e) { return kFrameErrorTexts[static_cast<std::size_t>(e)]; }

TEST(Frame, IsReadAsItWasWritten) {
  const auto f = frame_of(100);
  Datagram d;
  FrameError error{};
  ASSERT_TRUE(read_frame(f, UdpChecksum::kLook, d, error));
  EXPECT_EQ(d.ip, headers(100).ip);
  EXPECT_TRUE(d.dont_fragment);
  EXPECT_EQ(d.source_port, 49153);
  EXPECT_EQ(d.destination_port, 4791);
  EXPECT_EQ(d.payload_offset, kFrameHeaders);
  EXPECT_EQ(d.payload, 100U);
}

// An Ethernet frame has at least 60 bytes: what the link adds is no payload.
TEST(Frame, PaddingOfTheLinkIsNoPayload) {
  auto f = frame_of(4);
  f.resize(60, 0xEE);
  Datagram d;
  FrameError error{};
  ASSERT_TRUE(read_frame(f, UdpChecksum::kLook, d, error));
  EXPECT_EQ(d.payload, 4U);
}

// What a device that cuts a train starts from: with the sum of the data on top, the checksum is right.
TEST(Frame, ATrainsChecksumIsThatOfItsPseudoHeader) {
  auto f = frame_of(64);
  write_train_headers(headers(64), std::span(f).first<kFrameHeaders>());
  const std::uint16_t sum = wire::internet_checksum(wire::internet_sum(std::span(f).subspan(kUdp)));
  wire::store_be16(&f[kUdp + 6], sum);
  EXPECT_EQ(refusal(f), "read");
  f.back() ^= 1U;
  EXPECT_EQ(refusal(f), text(FrameError::kUdpChecksum));
}

TEST(Frame, WhatIsNoneIsRefusedForItsReason) {
  const auto good = frame_of(32);
  const auto with = [&](std::size_t at, std::uint8_t value, bool mend = true) {
    auto f = good;
    f[at] = value;
    if (mend) mend_ip(f);
    return f;
  };
  EXPECT_EQ(refusal({}), text(FrameError::kShort));
  EXPECT_EQ(refusal({good.begin(), good.begin() + kFrameHeaders - 1}), text(FrameError::kShort));
  EXPECT_EQ(refusal(with(12, 0x86)), text(FrameError::kEthertype));
  EXPECT_EQ(refusal(with(kIp, 0x65)), text(FrameError::kVersion));
  EXPECT_EQ(refusal(with(kIp, 0x44)), text(FrameError::kVersion));
  EXPECT_EQ(refusal(with(kIp, 0x46)), text(FrameError::kOptions));
  EXPECT_EQ(refusal(with(kIp + 6, 0x20)), text(FrameError::kFragment)) << "more follow";
  EXPECT_EQ(refusal(with(kIp + 7, 1)), text(FrameError::kFragment)) << "not the first";
  EXPECT_EQ(refusal(with(kIp + 8, 99, false)), text(FrameError::kIpChecksum));
  EXPECT_EQ(refusal(with(kIp + 9, 6)), text(FrameError::kProtocol));
  EXPECT_EQ(refusal(with(kIp + 2, 0xFF)), text(FrameError::kShort)) << "longer than it is";
  EXPECT_EQ(refusal(with(kIp + 3, 27)), text(FrameError::kShort)) << "shorter than its headers";
  EXPECT_EQ(refusal(with(kUdp + 5, 39)), text(FrameError::kUdpLength));
  EXPECT_EQ(refusal(with(kUdp + 5, 41)), text(FrameError::kUdpLength));
  for (const int first : {0, 127, 224, 255})
    EXPECT_EQ(refusal(with(kIp + 12, static_cast<std::uint8_t>(first))), text(FrameError::kSource)) << first;
}

// A tag stands where the type of what it carries would.
TEST(Frame, AVlanTagIsRefused) {
  auto f = frame_of(32);
  f.insert(f.begin() + 12, {0x81, 0x00, 0x00, 0x05});
  EXPECT_EQ(refusal(f), text(FrameError::kEthertype));
}

// Zero means that there is none. What the kernel has looked at is not looked at again.
TEST(Frame, AUdpChecksumIsLookedAtUnlessItIsVouchedFor) {
  auto f = frame_of(33);
  EXPECT_EQ(refusal(f), "read");
  mend_udp(f);
  EXPECT_EQ(refusal(f), "read");
  f[kFrameHeaders + 5] ^= 0x40U;
  EXPECT_EQ(refusal(f), text(FrameError::kUdpChecksum));
  EXPECT_EQ(refusal(f, UdpChecksum::kVouched), "read");
}

// Any bytes, and good frames with bytes changed or cut off: read or refused, and never a payload outside.
TEST(Frame, AnyBytesAreReadOrRefused) {
  Prng prng(1);
  std::size_t read = 0;
  for (int i = 0; i < 200'000; ++i) {
    auto f = frame_of(prng.below(80));
    for (std::uint64_t k = prng.below(3); k != 0; --k)
      f[prng.below(f.size())] = static_cast<std::uint8_t>(prng.below(256));
    if (prng.below(3) == 0) f.resize(prng.below(f.size() + 20));
    if (f.size() >= kFrameHeaders && prng.below(2) == 0) mend_ip(f);
    f.shrink_to_fit();
    Datagram d;
    FrameError error{};
    if (!read_frame(f, UdpChecksum::kLook, d, error)) continue;
    ++read;
    ASSERT_LE(std::size_t{d.payload_offset} + d.payload, f.size());
  }
  EXPECT_GT(read, 10'000U);
}

}  // namespace
}  // namespace weft::live
