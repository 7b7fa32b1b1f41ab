// The UDP wire on loopback: trains keep their frames through segmentation and reassembly. Every test
// takes addresses of its own below 127.0.0.0/8, derived from the process, so that runs in parallel do
// not meet on port 4791.
#include "live/wires/udp.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace weft::live {
namespace {

using ::testing::HasSubstr;

constexpr std::uint16_t kPort = 4791;

// Host n of this process: 127.x.y.n.
wire::Address host(std::uint8_t n) {
  const auto pid = static_cast<std::uint32_t>(getpid());
  return wire::Address::v4(127, static_cast<std::uint8_t>(1U + (pid >> 8U) % 254U),
                           static_cast<std::uint8_t>(pid), n);
}

// Alone on its address: the bytes of these frames name no process.
std::unique_ptr<UdpWire> open_wire(std::uint8_t n, UdpOptions options = {}) {
  options.shared = false;
  auto wire = UdpWire::open(host(n), kPort, options);
  EXPECT_TRUE(wire.has_value()) << wire.error().message;
  return std::move(*wire);
}

// Frames received within two seconds, as byte strings, until `count` have come.
std::vector<std::vector<std::uint8_t>> collect(Wire& wire, std::size_t count) {
  std::vector<std::vector<std::uint8_t>> frames;
  while (frames.size() < count) {
    pollfd p{wire.descriptor(), POLLIN, 0};
    if (poll(&p, 1, 2000) <= 0) break;
    for (const RxTrain& t : wire.receive({})) {
      for (std::uint32_t at = 0; at < t.bytes; at += t.frame_size) {
        const std::uint32_t n = std::min(t.frame_size, t.bytes - at);
        frames.emplace_back(t.data + at, t.data + at + n);
      }
    }
  }
  return frames;
}

// `frames` frames of `size` bytes, the last `tail` bytes long; byte k of frame i is i + k.
std::vector<std::uint8_t> make_train(std::size_t frames, std::size_t size, std::size_t tail) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < frames; ++i) {
    for (std::size_t k = 0; k < (i + 1 == frames ? tail : size); ++k) {
      bytes.push_back(static_cast<std::uint8_t>(i + k));
    }
  }
  return bytes;
}

void expect_frames(const std::vector<std::vector<std::uint8_t>>& got, std::size_t frames, std::size_t size,
                   std::size_t tail) {
  ASSERT_EQ(got.size(), frames);
  for (std::size_t i = 0; i < frames; ++i) {
    ASSERT_EQ(got[i].size(), i + 1 == frames ? tail : size);
    for (std::size_t k = 0; k < got[i].size(); ++k) ASSERT_EQ(got[i][k], static_cast<std::uint8_t>(i + k));
  }
}

// A full train of MTU-sized frames with a shorter last one arrives frame by frame as it was sent, and
// tells who sent it.
TEST(UdpWire, CarriesATrainWithAShorterLastFrame) {
  const auto a = open_wire(1);
  const auto b = open_wire(2);
  const auto bytes = make_train(15, 4156, 100);
  ASSERT_EQ(a->send({bytes, 4156, host(2)}), SendStatus::kSent);
  expect_frames(collect(*b, 15), 15, 4156, 100);
  ASSERT_EQ(b->send({std::span(bytes).first(50), 50, host(1)}), SendStatus::kSent);
  pollfd p{a->descriptor(), POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, 2000), 1);
  const auto trains = a->receive({});
  ASSERT_EQ(trains.size(), 1U);
  EXPECT_EQ(trains[0].source, host(2));
  EXPECT_EQ(trains[0].source_port, kPort);
  EXPECT_EQ(trains[0].bytes, 50U);
  EXPECT_TRUE(a->receive({}).empty());
}

// As many small frames as the probe promised in one send; one more would be refused by the kernel.
TEST(UdpWire, SendsAsManySegmentsAsItProbed) {
  const auto a = open_wire(1);
  const auto b = open_wire(2);
  const std::uint32_t most = a->facts().max_frames;
  ASSERT_GE(most, 64U);
  const auto bytes = make_train(most, 80, 80);
  ASSERT_EQ(a->send({bytes, 80, host(2)}), SendStatus::kSent);
  expect_frames(collect(*b, most), most, 80, 80);
}

// Without UDP_SEGMENT and UDP_GRO (an old kernel) the same train arrives, one datagram per frame.
TEST(UdpWire, FallsBackToSingleDatagrams) {
  const UdpOptions plain{.segmentation = false};
  const auto a = open_wire(1, plain);
  const auto b = open_wire(2, plain);
  EXPECT_FALSE(a->facts().identification_counts);
  const auto bytes = make_train(40, 200, 13);
  ASSERT_EQ(a->send({bytes, 200, host(2)}), SendStatus::kSent);
  expect_frames(collect(*b, 40), 40, 200, 13);
}

// Far more datagrams than one receive call takes all come out, in order.
TEST(UdpWire, DrainsManySmallDatagrams) {
  const auto a = open_wire(1);
  const auto b = open_wire(2);
  for (std::uint8_t i = 0; i < 100; ++i) {
    ASSERT_EQ(a->send({std::span(&i, 1), 1, host(2)}), SendStatus::kSent);
  }
  const auto frames = collect(*b, 100);
  ASSERT_EQ(frames.size(), 100U);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(frames[i].at(0), i);
}

// What the rest of the engine sizes itself by.
TEST(UdpWire, TellsMtuAndGrantedBuffer) {
  const auto a = open_wire(1);
  EXPECT_GE(a->facts().mtu, 1500U);
  EXPECT_GE(a->facts().receive_buffer, 100'000U);
}

// Processes of one user share an address (neighbours_test.cc). A socket that is not ours to share it with, as
// another user's is, leads to a sentence that names a way out.
TEST(UdpWire, RefusesAnAddressThatIsNotShared) {
  const auto a = open_wire(1);
  const auto second = UdpWire::open(host(1), kPort);
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message, HasSubstr("in use by another user's process"));
  EXPECT_THAT(second.error().message, HasSubstr("--addr"));
}

// An address that another host has is refused with one sentence.
TEST(UdpWire, RefusesAddressesThatAreNotLocal) {
  const auto foreign = UdpWire::open(wire::Address::v4(192, 0, 2, 1), kPort);
  ASSERT_FALSE(foreign.has_value());
  EXPECT_THAT(foreign.error().message, HasSubstr("192.0.2.1 does not belong to this machine"));
}

// Linux binds the broadcast address of a network for any program, so the wire refuses it by itself.
TEST(UdpWire, RefusesABroadcastAddress) {
  const auto all = UdpWire::open(wire::Address::v4(127, 255, 255, 255), kPort);
  ASSERT_FALSE(all.has_value());
  EXPECT_THAT(all.error().message, HasSubstr("127.255.255.255 is the broadcast address"));
}

// A train too long for the path is refused without harm, and the wire goes on.
TEST(UdpWire, ReportsWhatTheNetworkRefuses) {
  const auto a = open_wire(1);
  const std::vector<std::uint8_t> one(100, 7);
  EXPECT_EQ(a->send({one, 100, wire::Address::v4(255, 255, 255, 255)}), SendStatus::kFailed);
  const auto b = open_wire(2);
  EXPECT_EQ(a->send({one, 100, host(2)}), SendStatus::kSent);
  EXPECT_EQ(collect(*b, 1).size(), 1U);
}

// What a program chose for one train is in its packets, and only in these: the first choice, another, the
// system's, the first again, each as a train that the kernel cuts; then without segmentation.
TEST(UdpWire, WritesTrafficClassAndHopLimitOfEachTrain) {
  for (const bool segmentation : {true, false}) {
    const UdpOptions options{.segmentation = segmentation};
    const auto a = open_wire(1, options);
    const auto b = open_wire(2, options);
    b->show_headers();
    const auto bytes = make_train(3, 200, 200);
    const IpChoice choices[] = {{0xB8, 17}, {0x20, 3}, {}, {0xB8, 17}};
    for (const IpChoice& choice : choices) {
      ASSERT_EQ(a->send({bytes, 200, host(2), choice}), SendStatus::kSent);
      for (std::uint32_t got = 0; got < 600;) {
        pollfd p{b->descriptor(), POLLIN, 0};
        ASSERT_EQ(poll(&p, 1, 2000), 1);
        for (const RxTrain& t : b->receive({})) {
          EXPECT_EQ(t.tos, choice.traffic_class);
          EXPECT_EQ(t.ttl, choice.hop_limit);
          got += t.bytes;
        }
      }
    }
  }
}

// A train from another program of this host is told by its port, because all soft NICs use the same one. The
// address of another host may use any port.
TEST(UdpWire, CallsATrainFromAnotherPortOfThisHostAStray) {
  const auto a = open_wire(1);
  const auto peer = open_wire(2);
  const auto stranger = *UdpWire::open(host(2), kPort + 1, {.shared = false});
  const std::vector<std::uint8_t> one(100, 7);
  ASSERT_EQ(peer->send({one, 100, host(1)}), SendStatus::kSent);
  pollfd p{a->descriptor(), POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, 2000), 1);
  EXPECT_FALSE(a->receive({})[0].stray);
  // A wire sends to its own port only, so this datagram is sent by hand.
  const wire::Address to = host(1);
  sockaddr_in sa{};
  sa.sin_family = AF_INET;
  sa.sin_port = htons(kPort);
  std::memcpy(&sa.sin_addr, &to.bytes[12], 4);
  ASSERT_EQ(sendto(stranger->descriptor(), one.data(), one.size(), 0, reinterpret_cast<const sockaddr*>(&sa),
                   sizeof sa),
            100);
  ASSERT_EQ(poll(&p, 1, 2000), 1);
  const auto trains = a->receive({});
  ASSERT_EQ(trains.size(), 1U);
  EXPECT_EQ(trains[0].source, host(2));
  EXPECT_TRUE(trains[0].stray);
}

}  // namespace
}  // namespace weft::live
