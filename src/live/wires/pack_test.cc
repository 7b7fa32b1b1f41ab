// Packets into trains and back, over a real socket pair and in memory: bytes, headers, ICRC with the
// identifications the kernel gives, and every way in which a hostile frame is turned away.
#include "live/wires/pack.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "core/base/prng.h"
#include "core/wire/codec.h"
#include "live/wires/udp.h"
#include "live/wires/unpack.h"

namespace weft::live {
namespace {

const wire::Address kA = wire::Address::v4(127, 0, 0, 1);
const wire::Address kB = wire::Address::v4(127, 0, 0, 2);

WireFacts facts_of(const wire::Address& address, bool counts) {
  WireFacts f;
  f.own.first = address;
  f.port = wire::kUdpPort;
  f.max_frames = 64;
  f.max_bytes = 65507;
  f.identification_counts = counts;
  return f;
}

wire::Header write_middle(std::uint32_t psn) {
  wire::Header h;
  h.opcode = wire::kWriteMiddle;
  h.psn = {psn};
  h.dest_qp = {0x123456};
  return h;
}

std::vector<std::uint8_t> pattern(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7U + i / 251U);
  return bytes;
}

// A train in memory, as a receiver would get it.
RxTrain arrived(std::vector<std::uint8_t>& bytes, const TxTrain& sent) {
  bytes.assign(sent.bytes.begin(), sent.bytes.end());
  RxTrain t;
  t.data = bytes.data();
  t.bytes = static_cast<std::uint32_t>(bytes.size());
  t.frame_size = sent.frame_size;
  t.source = kA;
  t.source_port = wire::kUdpPort;
  return t;
}

class PackTest : public ::testing::Test {
 protected:
  // Packs `frames` frames of `payload` bytes, the last `tail` long.
  void pack(Packer& packer, std::uint32_t frames, std::uint32_t payload, std::uint32_t tail) {
    for (std::uint32_t i = 0; i < frames; ++i) {
      const std::uint32_t n = i + 1 == frames ? tail : payload;
      // Two pieces, so that append() gathers.
      const Piece pieces[] = {{bytes_.data() + i, n / 3}, {bytes_.data() + i + n / 3, n - n / 3}};
      ASSERT_TRUE(packer.fits(kB, write_middle(i), n));
      packer.append(kB, write_middle(i), pieces, n);
    }
  }
  void expect_packets(const RxBatch& batch, std::uint32_t frames, std::uint32_t payload, std::uint32_t tail) {
    ASSERT_EQ(batch.size, frames);
    for (std::uint32_t i = 0; i < frames; ++i) {
      const std::uint32_t n = i + 1 == frames ? tail : payload;
      EXPECT_EQ(batch.packets[i].header, write_middle(i));
      ASSERT_EQ(batch.packets[i].payload, n);
      EXPECT_EQ(std::memcmp(batch.payloads[i], bytes_.data() + i, n), 0) << i;
    }
  }
  std::vector<std::uint8_t> bytes_ = pattern(8192);
};

// Fifteen full frames and an odd tail survive, whether identifications count up or stay zero.
TEST_F(PackTest, ComesOutAsItWentIn) {
  for (const bool counts : {false, true}) {
    const WireFacts sender = facts_of(kA, counts);
    Packer packer(sender, true);
    pack(packer, 15, 4096, 1001);
    std::vector<std::uint8_t> memory;
    const RxTrain train = arrived(memory, packer.train());
    Unpacker unpacker(facts_of(kB, counts), true);
    RxBatch batch;
    EXPECT_EQ(unpacker.unpack(train, 0, batch), train.bytes);
    expect_packets(batch, 15, 4096, 1001);
    EXPECT_EQ(unpacker.counters().icrc_id_inferred, counts ? 0U : 1U);  // of the second frame
  }
}

// Payloads of buffers that begin where a page does are then copied without waiting for the copy's own stores.
TEST_F(PackTest, BeginsATrainInTheMiddleOfAPage) {
  const WireFacts sender = facts_of(kA, true);
  std::vector<std::unique_ptr<Packer>> packers;
  for (int i = 0; i < 8; ++i) {
    packers.push_back(std::make_unique<Packer>(sender, true));
    pack(*packers.back(), 15, 4096, 4096);
    const auto at = reinterpret_cast<std::uintptr_t>(packers.back()->train().bytes.data());
    EXPECT_EQ(at % 4096, 2048U);
  }
}

// The same through the kernel: the identifications it writes are the ones the sender computed with,
// as far as a receiver without IP headers can tell.
TEST_F(PackTest, SurvivesTheKernel) {
  const auto pid = static_cast<std::uint32_t>(getpid());
  const auto host = [&](std::uint8_t n) {
    return wire::Address::v4(127, static_cast<std::uint8_t>(1U + (pid >> 8U) % 254U),
                             static_cast<std::uint8_t>(pid), n);
  };
  const auto a = UdpWire::open(host(1), wire::kUdpPort, {.shared = false});
  const auto b = UdpWire::open(host(2), wire::kUdpPort, {.shared = false});
  ASSERT_TRUE(a && b);
  Packer packer((*a)->facts(), true);
  for (std::uint32_t i = 0; i < 20; ++i) {
    const Piece piece{bytes_.data() + i, 1024};
    packer.append(host(2), write_middle(i), {&piece, 1}, 1024);
  }
  ASSERT_EQ((*a)->send(packer.train()), SendStatus::kSent);
  Unpacker unpacker((*b)->facts(), true);
  RxBatch batch;
  while (batch.size < 20) {
    pollfd p{(*b)->descriptor(), POLLIN, 0};
    ASSERT_EQ(poll(&p, 1, 2000), 1);
    for (const RxTrain& t : (*b)->receive({})) unpacker.unpack(t, 0, batch);
  }
  expect_packets(batch, 20, 1024, 1024);
}

// The rule by which a frame joins a train: same size or one shorter at the end, same destination and IP
// header, room left.
TEST_F(PackTest, AdmitsOnlyWhatOneSegmentedSendCanCarry) {
  const WireFacts sender = facts_of(kA, true);
  Packer packer(sender, true);
  const Piece piece{bytes_.data(), 64};
  packer.append(kB, write_middle(0), {&piece, 1}, 64);
  EXPECT_TRUE(packer.fits(kB, write_middle(1), 64));
  EXPECT_TRUE(packer.fits(kB, write_middle(1), 20));
  EXPECT_FALSE(packer.fits(kB, write_middle(1), 65));
  EXPECT_FALSE(packer.fits(kA, write_middle(1), 64));
  EXPECT_FALSE(packer.fits(kB, write_middle(1), 64, {.traffic_class = 0xB8}));
  EXPECT_FALSE(packer.fits(kB, write_middle(1), 64, {.hop_limit = 1}));
  wire::Header ack;
  ack.opcode = wire::kAcknowledge;
  ack.dest_qp = {0x110001};
  EXPECT_FALSE(packer.fits(kB, ack, 0)) << "another process has that queue pair";
  ack.dest_qp = {0x120001};
  ASSERT_TRUE(packer.fits(kB, ack, 0));
  packer.append(kB, ack, {}, 0);
  EXPECT_FALSE(packer.fits(kB, ack, 0));  // behind a shorter frame nothing may come
  packer.clear();
  for (std::uint32_t i = 0; i < sender.max_frames; ++i) packer.append(kB, ack, {}, 0);
  EXPECT_FALSE(packer.fits(kB, ack, 0));
}

// One flipped bit anywhere outside BTH byte 4 (masked) is noticed; the frame is dropped and counted.
TEST_F(PackTest, RejectsAnyFlippedBit) {
  const WireFacts sender = facts_of(kA, true);
  Packer packer(sender, true);
  pack(packer, 1, 40, 40);
  std::vector<std::uint8_t> memory;
  const RxTrain train = arrived(memory, packer.train());
  Unpacker unpacker(facts_of(kB, true), true);
  RxBatch batch;
  unpacker.unpack(train, 0, batch);  // earns trust: from here on exact matches only
  ASSERT_EQ(batch.size, 1U);
  std::uint32_t accepted = 0;
  for (std::uint32_t bit = 0; bit < train.bytes * 8; ++bit) {
    if (bit / 8 == 4) continue;
    for (int i = 0; i < 16; ++i) {  // stays trusted whatever happened before
      RxBatch again;
      unpacker.unpack(train, 0, again);
    }
    memory[bit / 8] = static_cast<std::uint8_t>(memory[bit / 8] ^ (1U << (bit % 8)));
    RxBatch damaged;
    unpacker.unpack(train, 0, damaged);
    accepted += static_cast<std::uint32_t>(damaged.size);
    memory[bit / 8] = static_cast<std::uint8_t>(memory[bit / 8] ^ (1U << (bit % 8)));
  }
  EXPECT_EQ(accepted, 0U);
  EXPECT_GT(unpacker.counters().rx_icrc, 200U);
}

// A device that cannot cut trains is found out when frames are already packed: their ICRCs are computed anew,
// for identification 0.
TEST_F(PackTest, SealsAnewForFramesThatLeaveOneByOne) {
  WireFacts sender = facts_of(kA, true);
  Packer packer(sender, true);
  pack(packer, 15, 1024, 500);
  sender.identification_counts = false;
  packer.reseal();
  std::vector<std::uint8_t> memory;
  RxTrain train = arrived(memory, packer.train());
  Unpacker unpacker(facts_of(kB, true), true);
  RxBatch batch;
  for (std::uint32_t left = train.bytes; left != 0; train.data += train.bytes) {
    train.bytes = std::min(train.frame_size, left);
    left -= train.bytes;
    unpacker.unpack(train, 0, batch);
  }
  expect_packets(batch, 15, 1024, 500);
  EXPECT_EQ(unpacker.counters().icrc_id_inferred, 1U);  // the second was expected to be 1
}

// With the ICRC off nothing is computed and nothing is checked.
TEST_F(PackTest, LeavesTheIcrcOutWhenAgreed) {
  const WireFacts sender = facts_of(kA, true);
  Packer packer(sender, false);
  pack(packer, 2, 100, 100);
  EXPECT_EQ(packer.train().bytes.back(), 0U);
  std::vector<std::uint8_t> memory;
  const RxTrain train = arrived(memory, packer.train());
  Unpacker relaxed(facts_of(kB, true), false);
  RxBatch batch;
  relaxed.unpack(train, 0, batch);
  expect_packets(batch, 2, 100, 100);
}

// Random bytes in random trains: everything is counted exactly once and nothing is read out of
// bounds (the sanitizer build sees to the latter).
TEST_F(PackTest, CountsHostileFramesAndSurvives) {
  Prng prng(42);
  Unpacker unpacker(facts_of(kB, true), true);
  std::uint64_t frames = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::uint8_t> memory(prng.below(300));
    for (auto& b : memory) b = static_cast<std::uint8_t>(prng.next());
    RxTrain train;
    train.data = memory.data();
    train.bytes = static_cast<std::uint32_t>(memory.size());
    train.frame_size = train.bytes == 0 ? 0 : static_cast<std::uint32_t>(prng.between(1, train.bytes));
    train.source = kA;
    RxBatch batch;
    for (std::uint32_t at = 0;;) {
      batch.size = 0;
      at = unpacker.unpack(train, at, batch);
      if (at >= train.bytes) break;
    }
    frames += train.bytes == 0 ? 1 : (train.bytes + train.frame_size - 1) / train.frame_size;
  }
  const WireCounters& c = unpacker.counters();
  EXPECT_EQ(c.rx_frames, frames);
  EXPECT_EQ(c.rx_short + c.rx_opcode + c.rx_mode + c.rx_pad + c.rx_payload + c.rx_icrc + c.icrc_id_inferred,
            frames);
  EXPECT_GT(c.rx_icrc, 0U);
}

}  // namespace
}  // namespace weft::live
