// AF_XDP over a virtual Ethernet between two namespaces: what comes to the socket, what passes, and that the
// interface is as before when its owner is gone. Skipped where namespaces or XDP are not to be had.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "core/wire/bytes.h"
#include "live/packet_io/next_hop.h"
#include "live/packet_io/packet_socket.h"
#include "live/packet_io/two_hosts.h"
#include "live/packet_io/xdp_program.h"
#include "live/packet_io/xdp_socket.h"

namespace weft::live {
namespace {

using ::testing::HasSubstr;

constexpr std::uint16_t kPort = 4791;

class XdpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!hosts_.made()) GTEST_SKIP() << "network namespaces may not be made here";
    for (std::size_t i = 0; i < 2; ++i) {
      hosts_.enter(i);
      const auto found = find_ethernet(TwoHosts::address(i));
      ASSERT_TRUE(found.has_value()) << found.error().message;
      interfaces_[i] = *found;
    }
    hosts_.enter(0);
    auto sender = PacketSocket::open(interfaces_[0].index, {}, {.receive_buffer = 0});
    ASSERT_TRUE(sender.has_value()) << sender.error().message;
    sender_ = std::move(*sender);
    hosts_.enter(1);
  }
  void TearDown() override {
    if (hosts_.made()) hosts_.leave();
  }

  // Of host 1; skips the test where the kernel has no AF_XDP, or does not let us.
  void open(const std::optional<Wanted>& wanted, const XdpOptions& options = {}) {
    auto socket = XdpSocket::open(interfaces_[1].index, 0, options);
    if (!socket && errno == EAFNOSUPPORT) GTEST_SKIP() << socket.error().message;
    ASSERT_TRUE(socket.has_value()) << socket.error().message;
    socket_ = std::move(*socket);
    const XdpQueue queue{0, socket_->descriptor()};
    auto program = XdpProgram::attach(interfaces_[1].index, {&queue, 1}, wanted, interfaces_[1].address);
    if (!program && program.error().message.find("lets this process attach no") != std::string::npos)
      GTEST_SKIP() << program.error().message;
    ASSERT_TRUE(program.has_value()) << program.error().message;
    program_ = std::move(*program);
  }

  std::vector<std::uint8_t> frame(std::uint32_t qpn, std::size_t payload, std::uint16_t port = kPort) const {
    std::vector<std::uint8_t> f(kFrameHeaders + payload);
    write_frame_headers({.to = interfaces_[1].address,
                         .from = interfaces_[0].address,
                         .ip = {.source = TwoHosts::address(0),
                                .destination = TwoHosts::address(1),
                                .udp_length = static_cast<std::uint16_t>(wire::kUdpBytes + payload)},
                         .source_port = kPort,
                         .destination_port = port},
                        std::span(f).first<kFrameHeaders>());
    for (std::size_t i = 8; i < payload; ++i) f[kFrameHeaders + i] = static_cast<std::uint8_t>(i + qpn);
    if (payload >= 8) wire::store_be32(&f[kFrameHeaders + 4], qpn);
    return f;
  }
  void send(const std::vector<std::uint8_t>& f) {
    ASSERT_EQ(sender_->send(std::span(f).first(14), std::span(f).subspan(14)), PacketSocket::Sent::kYes);
  }
  std::vector<std::vector<std::uint8_t>> collect(std::size_t count) {
    std::vector<std::vector<std::uint8_t>> got;
    for (int i = 0; i < 300 && got.size() < count; ++i) {
      for (const RawFrame& f : socket_->receive()) got.emplace_back(f.data, f.data + f.bytes);
      if (got.size() < count) usleep(1000);
    }
    return got;
  }

  TwoHosts hosts_;
  std::array<EthernetInterface, 2> interfaces_;
  std::unique_ptr<PacketSocket> sender_;
  std::unique_ptr<XdpSocket> socket_;
  std::unique_ptr<XdpProgram> program_;
};

// More frames than there are chunks: each goes back and is filled again.
TEST_F(XdpTest, WantedFramesComeWholeAndInOrder) {
  open(Wanted{TwoHosts::address(1), kPort, 7}, {.chunks = 64});
  if (program_ == nullptr) return;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const auto sent = frame(0x07'0000 + i, 100 + i * 5);
    send(sent);
    const auto got = collect(1);
    ASSERT_EQ(got.size(), 1U) << i;
    ASSERT_EQ(got[0], sent);
  }
  EXPECT_EQ(socket_->lost(), 0U);
}

// Services, other processes, other ports, fragments, tags: the kernel sees them as ever.
TEST_F(XdpTest, OtherFramesPass) {
  open(Wanted{TwoHosts::address(1), kPort, 7});
  if (program_ == nullptr) return;
  const int udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(kPort);
  ASSERT_EQ(bind(udp, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  for (const std::uint32_t qpn : {1U, 0xFF'FFFFU, 0x08'0001U}) send(frame(qpn, 64));
  send(frame(0x07'0001, 64, kPort + 1));
  auto fragment = frame(0x07'0001, 64);
  fragment[20] = 0x20;
  send(fragment);
  auto tagged = frame(0x07'0001, 64);
  tagged.insert(tagged.begin() + 12, {0x81, 0, 0, 5});
  send(tagged);
  auto elsewhere = frame(0x07'0001, 64);
  elsewhere[5] ^= 1U;
  send(elsewhere);
  send(frame(0x07'0001, 7));  // ends before the number of its queue pair does
  EXPECT_EQ(collect(1).size(), 0U);
  std::array<char, 128> bytes{};
  int got = 0;
  while (recv(udp, bytes.data(), bytes.size(), 0) > 0) ++got;
  EXPECT_EQ(got, 4) << "two services, another process, one too short";
  close(udp);
}

// A process that has its address for itself takes every queue pair but the well-known ones.
TEST_F(XdpTest, WithoutASlotEveryQueuePairIsWanted) {
  open(Wanted{TwoHosts::address(1), kPort, 0});
  if (program_ == nullptr) return;
  for (const std::uint32_t qpn : {0U, 1U, 0xFF'FFFFU}) send(frame(qpn, 64));
  EXPECT_EQ(collect(1).size(), 0U);
  for (const std::uint32_t qpn : {2U, 0x0100U, 0xFF'FFFEU}) send(frame(qpn, 64));
  EXPECT_EQ(collect(3).size(), 3U);
}

TEST_F(XdpTest, FramesLongerThanAChunkAreJoined) {
  hosts_.enter(0);
  ASSERT_TRUE(hosts_.run("ip link set eth0 mtu 9000"));
  hosts_.enter(1);
  ASSERT_TRUE(hosts_.run("ip link set eth0 mtu 9000"));
  open(Wanted{TwoHosts::address(1), kPort, 7});
  if (program_ == nullptr) return;
  if (!socket_->long_frames()) GTEST_SKIP() << "this kernel cannot";
  for (const std::size_t payload : {4100U, 100U, 8900U, 4100U}) {
    const auto sent = frame(0x07'0003, payload);
    send(sent);
    const auto got = collect(1);
    ASSERT_EQ(got.size(), 1U) << payload;
    EXPECT_EQ(got[0], sent) << payload;
  }
}

// For a box: every frame comes, and what is sent arrives as it is.
TEST_F(XdpTest, WithoutAWishEveryFrameComesAndOursLeave) {
  open(std::nullopt, {.chunks = 64, .transmit = true});
  if (program_ == nullptr) return;
  hosts_.enter(0);
  const std::vector<sock_filter> all{{BPF_RET | BPF_K, 0, 0, 0xFFFF}};
  const auto far = PacketSocket::open(interfaces_[0].index, all);
  ASSERT_TRUE(far.has_value()) << far.error().message;
  hosts_.enter(1);
  send(frame(1, 64, 9));
  EXPECT_GE(collect(1).size(), 1U);
  for (std::uint32_t i = 0; i < 300; ++i) {  // more than there are chunks for sending
    auto out = frame(i, 200);
    std::swap_ranges(out.begin(), out.begin() + 6, out.begin() + 6);
    ASSERT_TRUE(socket_->transmit(out)) << i;
    socket_->ring();
    std::size_t got = 0;
    for (int look = 0; look < 200 && got == 0; ++look) {
      for (const RawFrame& f : (*far)->receive()) {
        if (f.bytes != out.size()) continue;
        EXPECT_EQ(std::vector<std::uint8_t>(f.data, f.data + f.bytes), out);
        ++got;
      }
      if (got == 0) usleep(500);
    }
    ASSERT_EQ(got, 1U) << i;
  }
}

// A second program is refused in a sentence; when the first is gone, or its process was killed, the interface
// is free.
TEST_F(XdpTest, TheInterfaceIsFreeWhenItsOwnerIsGone) {
  open(Wanted{TwoHosts::address(1), kPort, 7});
  if (program_ == nullptr) return;
  const XdpQueue queue{0, socket_->descriptor()};
  const auto second = XdpProgram::attach(interfaces_[1].index, {&queue, 1}, std::nullopt);
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error().message, HasSubstr("already has an XDP program"));
  program_.reset();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto own = XdpProgram::attach(interfaces_[1].index, {&queue, 1}, std::nullopt);
    const char done = own.has_value() ? 'y' : 'n';
    if (write(ready[1], &done, 1) != 1) _exit(1);
    pause();
  }
  char attached = 0;
  ASSERT_EQ(read(ready[0], &attached, 1), 1);
  EXPECT_EQ(attached, 'y');
  EXPECT_TRUE(hosts_.run("ip link show eth0 | grep -q xdp"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (int i = 0; i < 100 && hosts_.run("ip link show eth0 | grep -q xdp"); ++i) usleep(10'000);
  EXPECT_FALSE(hosts_.run("ip link show eth0 | grep -q xdp"));
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace weft::live
