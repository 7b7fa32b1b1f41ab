// Whoever means ill to a wire that takes rings from others, or leaves it without what it needs.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "live/wires/local_sockets.h"
#include "live/wires/shm_test.h"

namespace weft::live {
namespace {

class HostileShm : public Shm {
 protected:
  // A connection to the wire's name, as any program of this user can make one.
  int connect_to(const Wire& wire) {
    const int fd = open_local_socket();
    const LocalName name(names_of(to_text(wire.facts().own.first), kPort) + "shared/" +
                         std::to_string(wire.facts().slot));
    EXPECT_EQ(connect(fd, name.generic(), name.size), 0) << std::strerror(errno);
    return fd;
  }
  // What a hello looks like (shared_links.cc).
  struct Hello {
    std::uint32_t form = 0x7765'6602;
    wire::Address source;
    std::uint64_t bytes = ring::kBytes;
  };
  static void give(int to, const Hello& hello, const std::vector<int>& memories) {
    Hello copy = hello;
    iovec part{&copy, sizeof copy};
    alignas(cmsghdr) std::array<char, 256> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!memories.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(memories.size() * sizeof(int));
      cmsghdr* const c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(memories.size() * sizeof(int));
      std::memcpy(CMSG_DATA(c), memories.data(), memories.size() * sizeof(int));
    }
    ASSERT_GT(sendmsg(to, &message, MSG_NOSIGNAL), 0);
  }
  static int memory_of(std::size_t bytes, int seals) {
    const int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes)), 0);
    EXPECT_TRUE(seals == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
  }
  // Whether the wire has closed the connection.
  static bool closed(int fd) {
    pollfd p{fd, POLLIN, 0};
    char byte = 0;
    return ::poll(&p, 1, 1000) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
  }
  static std::size_t descriptors() {
    std::size_t n = 0;
    for (int fd = 0; fd < 1024; ++fd) n += fcntl(fd, F_GETFD) >= 0 ? 1U : 0U;
    return n;
  }
};

TEST_F(HostileShm, WhatIsNoRingIsNotTaken) {
  const auto b = open_at(host(2));
  const std::size_t before = descriptors();
  const int good_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  const std::array<int, 4> memories{
      memory_of(ring::kBytes, 0),               // may shrink under our hands
      memory_of(ring::kBytes - 1, good_seals),  // too short
      memory_of(ring::kBytes, good_seals),
      ::open("/dev/zero", O_RDWR | O_CLOEXEC),
  };
  Hello hello;
  hello.source = host(1);
  Hello stranger = hello;
  stranger.source = wire::Address::v4(192, 0, 2, 1);
  Hello other_build = hello;
  other_build.form += 1;
  Hello other_size = hello;
  other_size.bytes *= 2;
  const struct {
    const char* what;
    Hello hello;
    std::vector<int> memories;
  } tries[] = {
      {"memory that may shrink", hello, {memories[0]}},
      {"too little memory", hello, {memories[1]}},
      {"no memory", hello, {}},
      {"a file", hello, {memories[3]}},
      {"another host's address", stranger, {memories[2]}},
      {"another build", other_build, {memories[2]}},
      {"another size", other_size, {memories[2]}},
  };
  for (const auto& t : tries) {
    const int fd = connect_to(*b);
    give(fd, t.hello, t.memories);
    receive(*b);
    EXPECT_TRUE(closed(fd)) << t.what;
    close(fd);
  }
  // The last of several descriptors counts, and none is kept.
  const int fd = connect_to(*b);
  give(fd, hello, {memories[0], memories[1], memories[2]});
  receive(*b);
  char byte = 0;
  EXPECT_EQ(recv(fd, &byte, 1, MSG_DONTWAIT), -1) << "closed";
  close(fd);
  receive(*b);
  for (const int memory : memories) close(memory);
  EXPECT_EQ(descriptors(), before);
}

TEST_F(HostileShm, ARingThatLiesIsGivenUpAndOthersAreNot) {
  const auto a = open_at(host(1));
  const auto b = open_at(host(2));
  const int memory = memory_of(ring::kBytes, F_SEAL_SHRINK);
  const SharedMemory mine(memory, ring::kBytes);
  const int fd = connect_to(*b);
  Hello hello;
  hello.source = host(1);
  give(fd, hello, {memory});
  receive(*b);
  send(*a, *b, 1);
  const std::uint64_t far = ~std::uint64_t{0};
  std::memcpy(mine.data(), &far, sizeof far);
  EXPECT_EQ(receive(*b), Numbers{1});
  EXPECT_EQ(counter(*b, "shared_broken"), 1U);
  EXPECT_TRUE(closed(fd));
  send(*a, *b, 2);
  EXPECT_EQ(receive(*b), Numbers{2});
  close(fd);
  close(memory);
}

// Names have no permissions: another user may have taken ours. They are all taken here.
TEST_F(HostileShm, WithoutItsNameAWireGoesByUdp) {
  std::vector<int> taken;
  for (unsigned slot = 1; slot < Neighbours::kSlots; ++slot) {
    taken.push_back(open_local_socket());
    const LocalName name(names_of(to_text(host(2)), kPort) + "shared/" + std::to_string(slot));
    ASSERT_EQ(bind(taken.back(), name.generic(), name.size), 0);
  }
  const auto a = open_at(host(1));
  const auto b = open_at(host(2));
  send(*a, *b, 5);
  send(*b, *a, 6);
  EXPECT_EQ(receive(*b), Numbers{5});
  EXPECT_EQ(receive(*a), Numbers{6});
  EXPECT_EQ(counter(*a, "shared_sent"), 0U);
  for (const int fd : taken) close(fd);
}

// A listener whose connections nobody can take would be readable for ever.
TEST_F(HostileShm, WithoutDescriptorsConnectionsAreTurnedAway) {
  const auto a = open_at(host(1));
  const auto b = open_at(host(2));
  receive(*b);  // a sanitizer needs descriptors to look at an object for the first time
  EXPECT_FALSE(rings(*b, 0));
  const int other = connect_to(*b);
  std::vector<int> all;
  for (int fd = 0; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) all.push_back(fd);
  receive(*b);
  EXPECT_FALSE(rings(*b, 0));
  for (const int fd : all) close(fd);
  close(other);
  // The next is let in again.
  send(*a, *b, 1);
  EXPECT_EQ(receive(*b), Numbers{1});
  EXPECT_EQ(counter(*a, "shared_sent"), 1U);
}

TEST_F(HostileShm, StrangersOfTheNetworkAreForgottenAndNeighboursAreNot) {
  const auto beside = open_at(host(2));
  const std::uint8_t slot = beside->facts().slot;
  const auto is_beside = [](const void*, const wire::Address& a) { return a == host(2); };
  const auto links = SharedLinks::open(host(1), kPort, slot, is_beside, nullptr);
  ASSERT_TRUE(links.has_value()) << links.error().message;
  const LinkOut* const before = (*links)->towards(now, host(2), slot);
  ASSERT_NE(before, nullptr);
  std::size_t most = 0;
  for (std::uint32_t n = 0; n < 20'000; ++n) {
    wire::Address stranger = host(1);
    std::memcpy(stranger.bytes.data(), &n, sizeof n);
    EXPECT_EQ((*links)->towards(now, stranger, 1), nullptr);
    most = std::max(most, (*links)->remembered());
  }
  EXPECT_LE(most, 5'000);
  EXPECT_EQ((*links)->towards(now, host(2), slot), before);
}

TEST_F(HostileShm, SilentConnectionsDoNotKeepAThreadAwake) {
  const auto b = open_at(host(2));
  std::vector<int> fds;
  for (int i = 0; i < 20; ++i) fds.push_back(connect_to(*b));
  receive(*b);
  EXPECT_FALSE(rings(*b, 0));
  for (const int fd : fds) close(fd);
  receive(*b);
  EXPECT_FALSE(rings(*b, 0));
}

}  // namespace
}  // namespace weft::live
