// The packet and xdp wires over a virtual Ethernet between two namespaces: trains and single frames, hostile
// frames, and what goes by the kernel. Skipped where namespaces, or XDP programs, may not be made.
#include "live/wires/packet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "core/wire/bytes.h"
#include "core/wire/codec.h"
#include "live/packet_io/two_hosts.h"
#include "live/wires/pack.h"
#include "live/wires/unpack.h"

namespace weft::live {
namespace {

using ::testing::HasSubstr;

constexpr std::uint16_t kPort = 4791;
constexpr std::uint32_t kQueuePair = 0x2A'0007;

class PacketWireTest : public ::testing::TestWithParam<PacketWire::Receive> {
 protected:
  void SetUp() override {
    if (!hosts_.made()) GTEST_SKIP() << "network namespaces may not be made here";
    for (std::size_t i = 0; i < 2; ++i) {
      hosts_.enter(i);
      auto wire = PacketWire::open(TwoHosts::address(i), kPort, {.shared = false}, GetParam());
      if (!wire && wire.error().message.find("lets this process attach no") != std::string::npos) {
        hosts_.leave();
        GTEST_SKIP() << wire.error().message;
      }
      ASSERT_TRUE(wire.has_value()) << wire.error().message;
      wires_[i] = std::move(*wire);
      packers_[i] = std::make_unique<Packer>(wires_[i]->facts(), true);
      unpackers_[i] = std::make_unique<Unpacker>(wires_[i]->facts(), true);
    }
    hosts_.leave();
  }

  // Whatever came to the host within this much, as packets; the wires' time moves on.
  std::size_t collect(std::size_t host, std::size_t at_least, int milliseconds_most = 1000) {
    std::size_t packets = 0;
    for (int i = 0; i < milliseconds_most && packets < at_least; ++i) {
      now_ = now_ + milliseconds(1);
      for (const RxTrain& t : wires_[host]->receive(now_)) {
        trains_.push_back(t);
        trains_.back().data = nullptr;
        for (std::uint32_t at = 0; at < t.bytes;) {
          batch_.size = 0;
          at = unpackers_[host]->unpack(t, at, batch_);
          packets += batch_.size;
        }
      }
      if (packets < at_least) usleep(1000);
    }
    return packets;
  }

  void pack(std::size_t from, std::size_t frames, std::uint32_t payload, std::uint32_t last) {
    std::vector<std::uint8_t> bytes(payload, 0x5A);
    for (std::size_t i = 0; i < frames; ++i) {
      wire::Header h;
      h.opcode = wire::kWriteMiddle;
      h.psn = {static_cast<std::uint32_t>(i)};
      h.dest_qp = {kQueuePair};
      const std::uint32_t size = i + 1 == frames ? last : payload;
      const Piece piece{bytes.data(), size};
      ASSERT_TRUE(packers_[from]->fits(TwoHosts::address(1 - from), h, size));
      ASSERT_TRUE(packers_[from]->append(TwoHosts::address(1 - from), h, {&piece, 1}, size));
    }
  }

  SendStatus send(std::size_t from) {
    now_ = now_ + milliseconds(10);
    wires_[from]->receive(now_);
    const SendStatus status = wires_[from]->send(packers_[from]->train());
    packers_[from]->clear();
    return status;
  }

  // Until the peers know each other's Ethernet address.
  void acquaint() {
    for (int i = 0; i < 50 && (counters(0)["sent_by_kernel"] == 0 || counters(1)["raw_frames"] == 0); ++i) {
      pack(0, 1, 64, 64);
      ASSERT_EQ(send(0), SendStatus::kSent);
      collect(1, 1, 20);
      pack(1, 1, 64, 64);
      ASSERT_EQ(send(1), SendStatus::kSent);
      collect(0, 1, 20);
    }
    for (int i = 0; i < 3; ++i) collect(1, 1, 5);
    trains_.clear();
  }

  std::map<std::string, std::uint64_t> counters(std::size_t host) const {
    std::map<std::string, std::uint64_t> c;
    wires_[host]->visit_counters([&](const char* name, const char*, std::uint64_t v) { c[name] = v; });
    return c;
  }

  TwoHosts hosts_;
  std::array<std::unique_ptr<PacketWire>, 2> wires_;
  std::array<std::unique_ptr<Packer>, 2> packers_;
  std::array<std::unique_ptr<Unpacker>, 2> unpackers_;
  RxBatch batch_;
  std::vector<RxTrain> trains_;  // as they came, without their bytes
  Time now_{};
};

// The first datagrams go by the kernel, which asks who has the address; then frames are ours, and every one
// of a train has the ICRC of the identification that it has.
TEST_P(PacketWireTest, CarriesTrainsAsFramesOnceThePeerIsKnown) {
  acquaint();
  const auto by_kernel = counters(0)["sent_by_kernel"];
  for (const bool cut : {false, true}) {
    hosts_.enter(0);
    if (cut) {
      ASSERT_TRUE(hosts_.run("ethtool -K eth0 tx-udp-segmentation off"));
    }
    hosts_.leave();
    for (int round = 0; round < 5; ++round) {
      pack(0, 20, 1024, 100);
      ASSERT_EQ(send(0), SendStatus::kSent);
      ASSERT_EQ(collect(1, 20), 20U) << "cut " << cut;
    }
  }
  EXPECT_LE(counters(0)["sent_by_kernel"], by_kernel + 2);  // one a second makes sure of the neighbour
  const WireCounters& c = unpackers_[1]->counters();
  EXPECT_EQ(c.rx_icrc, 0U);
  EXPECT_EQ(c.icrc_id_inferred, 0U);
  for (const auto& t : trains_) EXPECT_EQ(t.source, TwoHosts::address(0));
  EXPECT_GE(std::count_if(trains_.begin(), trains_.end(), [](const RxTrain& t) { return t.header_seen; }), 5);
}

// Traffic class and hop limit travel in the header, and are seen without being asked for.
TEST_P(PacketWireTest, TellsTheHeadersChoices) {
  acquaint();
  wire::Header h;
  h.opcode = wire::kSendOnly;
  h.dest_qp = {kQueuePair};
  ASSERT_TRUE(packers_[0]->append(TwoHosts::address(1), h, {}, 0, {.traffic_class = 0x48, .hop_limit = 9}));
  ASSERT_EQ(send(0), SendStatus::kSent);
  ASSERT_EQ(collect(1, 1), 1U);
  ASSERT_TRUE(trains_.back().header_seen);
  EXPECT_EQ(trains_.back().tos, 0x48);
  EXPECT_EQ(trains_.back().ttl, 9);
}

// Where the kernel cuts no trains every frame leaves by itself, for the identification that it was sealed
// with.
TEST_P(PacketWireTest, SendsFramesOneByOneWhereNothingCutsThem) {
  hosts_.enter(0);
  wires_[0].reset();
  auto wire =
      PacketWire::open(TwoHosts::address(0), kPort, {.segmentation = false, .shared = false}, GetParam());
  ASSERT_TRUE(wire.has_value()) << wire.error().message;
  wires_[0] = std::move(*wire);
  packers_[0] = std::make_unique<Packer>(wires_[0]->facts(), true);
  unpackers_[0] = std::make_unique<Unpacker>(wires_[0]->facts(), true);
  hosts_.leave();
  acquaint();
  pack(0, 20, 512, 512);
  ASSERT_EQ(send(0), SendStatus::kSent);
  EXPECT_EQ(collect(1, 20), 20U);
  EXPECT_EQ(trains_.size(), 20U);
  EXPECT_EQ(unpackers_[1]->counters().rx_icrc, 0U);
}

// A socket of ours sends what a stranger may: whatever is no good is refused for its reason, or never taken,
// and the wire goes on.
TEST_P(PacketWireTest, HostileFramesAreCountedAndDropped) {
  acquaint();
  hosts_.enter(0);
  auto stranger = PacketSocket::open(if_nametoindex("eth0"), {}, {.receive_buffer = 0});
  ASSERT_TRUE(stranger.has_value()) << stranger.error().message;
  const auto target = NextHops::open(*find_ethernet(TwoHosts::address(0)), TwoHosts::address(0));
  ASSERT_TRUE(target.has_value());
  hosts_.leave();
  const NextHops::Hop hop = (*target)->towards(now_, TwoHosts::address(1));
  ASSERT_EQ(hop.way, NextHops::Way::kFrame);

  const auto frame = [&](const wire::Address& source) {
    std::vector<std::uint8_t> f(kFrameHeaders + 36);
    write_frame_headers({.to = hop.to,
                         .from = hop.from,
                         .ip = {.source = source, .destination = TwoHosts::address(1), .udp_length = 44},
                         .source_port = kPort,
                         .destination_port = kPort},
                        std::span(f).first<kFrameHeaders>());
    wire::store_be32(&f[kFrameHeaders + 4], kQueuePair);
    return f;
  };
  const auto mend = [](std::vector<std::uint8_t> f) {
    wire::store_be16(&f[24], 0);
    wire::store_be16(&f[24], wire::internet_checksum(wire::internet_sum(std::span(f).subspan(14, 20))));
    return f;
  };
  const auto changed = [&](std::size_t at, std::uint8_t value) {
    auto f = frame(TwoHosts::address(0));
    f[at] = value;
    return f;
  };
  std::vector<std::vector<std::uint8_t>> hostile;
  hostile.push_back(changed(22, 99));                         // IP checksum
  hostile.push_back(mend(changed(20, 0x20)));                 // a fragment
  hostile.push_back(mend(changed(17, 0xFF)));                 // longer than it is
  hostile.push_back(mend(changed(14, 0x46)));                 // options
  hostile.push_back(changed(39, 9));                          // UDP length
  hostile.push_back(changed(40, 0x77));                       // UDP checksum
  hostile.push_back(frame(TwoHosts::address(1)));             // from ourselves
  hostile.push_back(frame(wire::Address::v4(127, 0, 0, 1)));  // from a loopback
  hostile.push_back(frame(wire::Address::v4(224, 0, 0, 1)));  // from a group
  hostile.push_back(frame(TwoHosts::address(0)));             // good but for its ICRC
  for (const std::size_t cut : {15U, 34U, 42U, 47U, 50U}) {
    auto f = frame(TwoHosts::address(0));
    f.resize(cut);
    hostile.push_back(f);
  }
  auto tagged = frame(TwoHosts::address(0));
  tagged.insert(tagged.begin() + 12, {0x81, 0x00, 0x00, 0x05});
  hostile.push_back(tagged);

  for (const auto& f : hostile) {
    ASSERT_EQ((*stranger)->send(std::span(f).first(14), std::span(f).subspan(14)), PacketSocket::Sent::kYes);
    EXPECT_EQ(collect(1, 1, 5), 0U);
  }
  auto c = counters(1);
  EXPECT_EQ(c["raw_ip_checksum"], 1U);
  EXPECT_EQ(c["raw_udp_length"], 1U);
  // Nobody has looked at a checksum where XDP takes frames, so the ICRC says it.
  const bool looks = GetParam() == PacketWire::Receive::kPacket;
  EXPECT_EQ(c["raw_udp_checksum"], looks ? 1U : 0U);
  EXPECT_EQ(c["raw_source"], 3U);
  EXPECT_GE(c["raw_short"], 1U);
  EXPECT_GE(unpackers_[1]->counters().rx_icrc, looks ? 1U : 2U);
  pack(0, 3, 64, 64);
  ASSERT_EQ(send(0), SendStatus::kSent);
  EXPECT_EQ(collect(1, 3), 3U);
}

// A peer on the same host is reached by the kernel, and so are the host's services.
TEST_P(PacketWireTest, WhatIsLocalOrForServicesGoesByTheKernel) {
  acquaint();
  hosts_.enter(0);
  ASSERT_TRUE(hosts_.run("ip addr add 10.77.0.9/24 dev eth0"));
  const wire::Address beside = wire::Address::v4(10, 77, 0, 9);
  auto neighbour = UdpWire::open(beside, kPort, {.shared = false});
  ASSERT_TRUE(neighbour.has_value()) << neighbour.error().message;
  hosts_.leave();
  Packer packer((*neighbour)->facts(), true);
  wire::Header h;
  h.opcode = wire::kSendOnly;
  h.dest_qp = {kQueuePair};
  ASSERT_TRUE(packer.append(TwoHosts::address(0), h, {}, 0));
  ASSERT_EQ((*neighbour)->send(packer.train()), SendStatus::kSent);
  EXPECT_EQ(collect(0, 1), 1U);

  h.dest_qp = {1};
  ASSERT_TRUE(packers_[0]->append(TwoHosts::address(1), h, {}, 0));
  ASSERT_EQ(send(0), SendStatus::kSent);
  EXPECT_EQ(collect(1, 1), 1U);
  EXPECT_FALSE(trains_.back().header_seen);
}

// Without the right, and where there is no Ethernet.
TEST_P(PacketWireTest, SaysWhatItNeeds) {
  hosts_.enter(0);
  const auto loopback =
      PacketWire::open(wire::Address::v4(127, 0, 0, 1), kPort, {.shared = false}, GetParam());
  ASSERT_FALSE(loopback.has_value());
  EXPECT_THAT(loopback.error().message, HasSubstr("no frames leave a loopback address"));
  wires_[0].reset();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (setresuid(65534, 65534, 65534) != 0) _exit(2);
    const auto wire = PacketWire::open(TwoHosts::address(0), kPort, {.shared = false}, GetParam());
    _exit(!wire.has_value() && wire.error().message.find("CAP_NET_RAW") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  hosts_.leave();
}

// XDP has its interface for itself, and says who is in the way.
TEST_P(PacketWireTest, ASecondProcessOfAnAddressGetsAnAnswer) {
  if (GetParam() != PacketWire::Receive::kXdp) return;
  hosts_.enter(0);
  const auto second = PacketWire::open(TwoHosts::address(0), kPort + 1, {.shared = false}, GetParam());
  hosts_.leave();
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message, HasSubstr("take --wire packet"));
}

INSTANTIATE_TEST_SUITE_P(Wires, PacketWireTest,
                         ::testing::Values(PacketWire::Receive::kPacket, PacketWire::Receive::kXdp),
                         [](const auto& one) {
                           return one.param == PacketWire::Receive::kXdp ? "Xdp" : "Packet";
                         });

}  // namespace
}  // namespace weft::live
