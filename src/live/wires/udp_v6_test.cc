// UDP wires over IPv6: on ::1, where two of this process are neighbours with slots of their own, and in a
// namespaces with and without IPv6. The port is this process's own, so that runs in parallel do not meet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "live/packet_io/two_hosts.h"
#include "live/wires/both.h"
#include "live/wires/open.h"
#include "live/wires/sockets.h"

namespace weft::live {
namespace {

using ::testing::HasSubstr;

std::uint16_t port() { return static_cast<std::uint16_t>(20'000 + getpid() % 20'000); }

wire::Address loopback() {
  wire::Address a;
  a.bytes[15] = 1;
  return a;
}
wire::Address loopback_v4() {
  const auto pid = static_cast<std::uint32_t>(getpid());
  return wire::Address::v4(127, static_cast<std::uint8_t>(1U + (pid >> 8U) % 254U),
                           static_cast<std::uint8_t>(pid), 66);
}

// Where a host has none there is nothing to be seen.
#define NEEDS_V6()                                                  \
  if (const auto probe = UdpWire::open(loopback(), port()); !probe) \
  GTEST_SKIP() << "no IPv6 on this machine: " << probe.error().message

std::unique_ptr<UdpWire> open_wire(const wire::Address& address = loopback()) {
  auto wire = UdpWire::open(address, port());
  EXPECT_TRUE(wire.has_value()) << wire.error().message;
  return std::move(*wire);
}

// A frame for a queue pair of the slot.
std::vector<std::uint8_t> frame_for(std::uint8_t slot, std::uint8_t mark, std::size_t size = 64) {
  std::vector<std::uint8_t> f(size, mark);
  f[0] = 0x0A;
  f[kSlotOffset] = slot;
  return f;
}

// What has come after a while: trains' first frames, with what is known of them.
struct Came {
  std::vector<std::uint8_t> bytes;
  RxTrain train;
};
std::vector<Came> collect(Wire& wire, std::size_t count, int most_looks = 2000) {
  std::vector<Came> all;
  for (int looks = 0; looks < most_looks && all.size() < count; ++looks) {
    for (const RxTrain& t : wire.receive(Time{} + milliseconds(looks))) {
      for (std::uint32_t at = 0; at < t.bytes; at += t.frame_size)
        all.push_back({{t.data + at, t.data + std::min(at + t.frame_size, t.bytes)}, t});
    }
    if (all.size() >= count) break;
    pollfd p[3] = {{wire.descriptor(), POLLIN, 0}, {wire.aside(), POLLIN, 0}, {wire.groups(), POLLIN, 0}};
    poll(p, 3, 5);
  }
  return all;
}

TEST(UdpV6, CarriesTrainsToTheProcessWhoseSlotTheyName) {
  NEEDS_V6();
  const auto a = open_wire();
  const auto b = open_wire();
  ASSERT_NE(a->facts().slot, b->facts().slot);
  EXPECT_GE(a->facts().max_frames, 64U);
  EXPECT_LE(a->facts().max_bytes, 65535U - 48U);
  a->show_headers();  // it may receive for b, and hand over what it saw
  b->show_headers();
  std::vector<std::uint8_t> bytes;
  for (std::uint8_t i = 0; i < 40; ++i) {
    const auto f = frame_for(b->facts().slot, i, 1064);
    bytes.insert(bytes.end(), f.begin(), f.end());
  }
  TxTrain train{bytes, 1064, loopback()};
  train.ip = {.traffic_class = 0x2A, .hop_limit = 7};
  std::vector<Came> came;
  // Until the sender's process knows the other's place, the trains take a detour through a mailbox.
  for (int tries = 0; tries < 50 && came.size() < 40; ++tries) {
    ASSERT_EQ(a->send(train), SendStatus::kSent);
    for (int looks = 0; looks < 20 && came.size() < 40; ++looks) {
      static_cast<void>(a->receive(Time{} + milliseconds(20 * tries + looks)));
      const auto some = collect(*b, 40, 2);
      came.insert(came.end(), some.begin(), some.end());
    }
  }
  ASSERT_GE(came.size(), 40U);
  for (std::uint8_t i = 0; i < 40; ++i) EXPECT_EQ(came[i].bytes, frame_for(b->facts().slot, i, 1064));
  EXPECT_EQ(came[0].train.source, loopback());
  EXPECT_EQ(came[0].train.source_port, port());
  EXPECT_EQ(came[0].train.tos, 0x2A);
  EXPECT_EQ(came[0].train.ttl, 7);
  EXPECT_FALSE(came[0].train.stray);
}

// A choice of traffic class and hop limit that is not the socket's own goes with its train alone.
TEST(UdpV6, SendsEachTrainWithItsOwnTrafficClassAndHopLimit) {
  NEEDS_V6();
  const auto a = open_wire();
  a->show_headers();
  const auto bytes = frame_for(a->facts().slot, 1);
  for (const IpChoice choice :
       {IpChoice{0x08, 64}, IpChoice{0x10, 3}, IpChoice{0x08, 64}, IpChoice{0x00, 255}}) {
    TxTrain train{bytes, 64, loopback()};
    train.ip = choice;
    ASSERT_EQ(a->send(train), SendStatus::kSent);
    const auto came = collect(*a, 1);
    ASSERT_EQ(came.size(), 1U);
    EXPECT_EQ(came[0].train.tos, choice.traffic_class);
    EXPECT_EQ(came[0].train.ttl, choice.hop_limit);
  }
}

// Another program of this host, and not a soft NIC.
TEST(UdpV6, CallsAnotherProgramsDatagramAStray) {
  NEEDS_V6();
  const auto a = open_wire();
  const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  const SocketAddress to = to_sockaddr(loopback(), port());
  const auto bytes = frame_for(a->facts().slot, 9);
  ASSERT_EQ(sendto(fd, bytes.data(), bytes.size(), 0, to.generic(), to.size()), 64);
  const auto came = collect(*a, 1);
  close(fd);
  ASSERT_EQ(came.size(), 1U);
  EXPECT_TRUE(came[0].train.stray);
}

TEST(UdpV6, SaysWhyAnAddressCannotBeTaken) {
  NEEDS_V6();
  wire::Address other;
  other.bytes[0] = 0x20;
  other.bytes[1] = 0x01;
  other.bytes[2] = 0x0D;
  other.bytes[3] = 0xB8;
  const auto wire = UdpWire::open(other, port());
  ASSERT_FALSE(wire.has_value());
  EXPECT_THAT(wire.error().message, HasSubstr("address 2001:db8:: does not belong to this machine"));
  const auto raw = open_wire(WireKind::kPacket, {loopback()});
  ASSERT_FALSE(raw.has_value());
  EXPECT_THAT(raw.error().message, HasSubstr("IPv4 only"));
  for (const WireKind kind : {WireKind::kShm, WireKind::kPacket, WireKind::kXdp}) {
    const auto both = open_wire(kind, {loopback_v4(), loopback()});
    ASSERT_FALSE(both.has_value());
    EXPECT_THAT(both.error().message, HasSubstr("has one address"));
  }
}

// What a user gets who chose nothing: never refused where UDP is there.
TEST(UdpV6, TheWireThatNobodyChoseTakesTwoAddresses) {
  const auto two = open_wire(WireKind::kAuto, {loopback_v4(), loopback()});
  ASSERT_TRUE(two.has_value()) << two.error().message;
  EXPECT_TRUE((*two)->facts().own.both());
  for (const wire::Address& one : {loopback_v4(), loopback()}) {
    const auto wire = open_wire(WireKind::kAuto, {one});
    ASSERT_TRUE(wire.has_value()) << wire.error().message;
    bool shares = false;
    (*wire)->visit_counters([&](const char* name, const char*, std::uint64_t) {
      shares = shares || std::string_view(name) == "shared_sent";
    });
    EXPECT_TRUE(shares);
  }
}

TEST(UdpV6, SaysThatIpv6IsSwitchedOff) {
  const TwoHosts hosts;
  if (!hosts.made()) GTEST_SKIP() << "network namespaces may not be made here";
  hosts.enter(0);
  if (!hosts.run("sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6'"))
    GTEST_SKIP() << "no IPv6 to switch off";
  const auto wire = UdpWire::open(loopback(), port());
  hosts.leave();
  ASSERT_FALSE(wire.has_value());
  EXPECT_THAT(wire.error().message, HasSubstr("IPv6 is switched off here"));
}

// The kernel has no way to groups by the loopback interface, unless somebody has made one.
TEST(UdpV6, RefusesAGroupThatItsInterfaceDoesNotLeadTo) {
  NEEDS_V6();
  const auto a = open_wire();
  wire::Address group;
  group.bytes[0] = 0xFF;
  group.bytes[1] = 0x15;
  group.bytes[15] = 9;
  EXPECT_EQ(a->join(wire::Address::v4(239, 1, 2, 3)).error(), Errc::kInvalid);
  EXPECT_EQ(a->join(loopback()).error(), Errc::kInvalid);
  const bool joined = a->join(group).has_value();
  const auto bytes = frame_for(0xFF, 3);
  EXPECT_EQ(a->send({bytes, 64, group}) == SendStatus::kSent, joined);
}

// By an interface that leads to groups; a host hears itself.
TEST(UdpV6, ReceivesWhatIsSentToAGroupItJoined) {
  const TwoHosts hosts;
  if (!hosts.made()) GTEST_SKIP() << "network namespaces may not be made here";
  hosts.enter(0);
  if (!hosts.run("ip addr add fd00::1/64 dev eth0 nodad")) GTEST_SKIP() << "no IPv6 on this machine";
  wire::Address own;
  own.bytes[0] = 0xFD;
  own.bytes[15] = 1;
  const auto a = open_wire(own);
  wire::Address group;
  group.bytes[0] = 0xFF;
  group.bytes[1] = 0x15;
  group.bytes[14] = static_cast<std::uint8_t>(getpid() >> 8);
  group.bytes[15] = static_cast<std::uint8_t>(getpid());
  ASSERT_TRUE(a->join(group).has_value());
  EXPECT_EQ(a->join(group).error(), Errc::kBusy);
  const auto bytes = frame_for(0xFF, 3);
  ASSERT_EQ(a->send({bytes, 64, group}), SendStatus::kSent);
  const auto came = collect(*a, 1);
  ASSERT_EQ(came.size(), 1U);
  EXPECT_EQ(came[0].train.group, group);
  EXPECT_EQ(came[0].train.source, own);
  EXPECT_EQ(came[0].bytes, bytes);
  a->leave(group);
  ASSERT_EQ(a->send({bytes, 64, group}), SendStatus::kSent);
  EXPECT_TRUE(collect(*a, 1, 20).empty());
  hosts.leave();
}

// --- addresses of both families ---

TEST(BothWire, TakesEachWayByTheFamilyOfItsPeer) {
  NEEDS_V6();
  auto opened = BothWire::open({loopback_v4(), loopback()}, port());
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  BothWire& both = **opened;
  EXPECT_EQ(both.facts().own.count(), 2U);
  const std::uint8_t slot = both.facts().slot;
  for (const wire::Address& to : {loopback_v4(), loopback()}) {
    const auto bytes = frame_for(slot, 5);
    ASSERT_EQ(both.send({bytes, 64, to}), SendStatus::kSent);
    const auto came = collect(both, 1);
    ASSERT_EQ(came.size(), 1U);
    EXPECT_EQ(came[0].train.source, to);
    EXPECT_EQ(came[0].bytes, bytes);
  }
}

// Neither socket hides the other: a process that is flooded over one family hears the other.
TEST(BothWire, ReadsBothSocketsInTurns) {
  NEEDS_V6();
  auto opened = BothWire::open({loopback_v4(), loopback()}, port());
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  BothWire& both = **opened;
  const std::uint8_t slot = both.facts().slot;
  for (const wire::Address& flooded : {loopback_v4(), loopback()}) {
    const wire::Address& other = flooded == loopback() ? loopback_v4() : loopback();
    for (int i = 0; i < 500; ++i) ASSERT_EQ(both.send({frame_for(slot, 1), 64, flooded}), SendStatus::kSent);
    both.mark();
    EXPECT_FALSE(both.passed());
    ASSERT_EQ(both.send({frame_for(slot, 2), 64, other}), SendStatus::kSent);
    bool heard = false;
    for (int reads = 0; reads < 4 && !heard; ++reads) {
      for (const RxTrain& t : both.receive(Time{})) heard = heard || t.source == other;
    }
    EXPECT_TRUE(heard);
    for (int reads = 0; reads < 4000 && !both.receive(Time{}).empty(); ++reads) {
    }
    EXPECT_TRUE(both.passed());
  }
}

// A process is one process under both of its addresses: it has the same slot, and a service that it claims
// is claimed under both.
TEST(BothWire, IsOneProcessUnderBothAddresses) {
  NEEDS_V6();
  constexpr std::uint32_t kService = 0x0106'1234;
  auto opened = BothWire::open({loopback_v4(), loopback()}, port());
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  BothWire& both = **opened;
  const auto v6 = open_wire();
  const auto v4 = open_wire(loopback_v4());
  EXPECT_THAT(v6->neighbours()->others(), ::testing::Contains(both.facts().slot));
  EXPECT_THAT(v4->neighbours()->others(), ::testing::Contains(both.facts().slot));
  ASSERT_TRUE(both.neighbours()->claim(kService).has_value());
  EXPECT_EQ(v4->neighbours()->claim(kService).error(), Errc::kBusy);
  EXPECT_EQ(v6->neighbours()->claim(kService).error(), Errc::kBusy);
  both.neighbours()->give_back(kService, Time{});
  both.neighbours()->forget_services(Time{} + seconds(1));
  EXPECT_TRUE(v4->neighbours()->claim(kService).has_value());
  v4->neighbours()->give_back(kService, Time{});
  v4->neighbours()->forget_services(Time{} + seconds(1));
  // What one of the two refuses is claimed under neither.
  ASSERT_TRUE(v6->neighbours()->claim(kService + 1).has_value());
  EXPECT_EQ(both.neighbours()->claim(kService + 1).error(), Errc::kBusy);
  EXPECT_TRUE(v4->neighbours()->claim(kService + 1).has_value());
}

// What comes to the wrong process over IPv6 is handed to the right one under that address.
TEST(BothWire, HandsOverUnderTheAddressThatATrainCameTo) {
  NEEDS_V6();
  auto opened = BothWire::open({loopback_v4(), loopback()}, port());
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  const auto v6 = open_wire();
  auto bytes = frame_for(v6->facts().slot, 4);
  RxTrain train;
  train.data = bytes.data();
  train.bytes = train.frame_size = 64;
  train.source = loopback();
  train.source_port = port();
  (*opened)->neighbours()->hand_to_slot(v6->facts().slot, train);
  std::span<const RxTrain> mail;
  for (int looks = 0; looks < 2000 && mail.empty(); ++looks) {
    pollfd p{v6->mailbox(), POLLIN, 0};
    poll(&p, 1, 5);
    mail = v6->neighbours()->receive();
  }
  ASSERT_EQ(mail.size(), 1U);
  EXPECT_EQ(mail[0].source, loopback());
}

}  // namespace
}  // namespace weft::live
