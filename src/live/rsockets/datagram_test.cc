// Datagrams: by UDP first and by queue pair then, headers as the protocol has them, and what is refused.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <thread>

#include "live/engine/sleepers.h"
#include "live/rsockets/streams.h"

namespace weft::live::rsockets {
namespace {

// So many datagrams find the kernel's buffer full: loopback empties it faster than a test can fill it.
std::atomic<int> full_for{0};

}  // namespace
}  // namespace weft::live::rsockets

// In the place of libc's, for the program and the libraries that it loads.
extern "C" __attribute__((visibility("default"))) ssize_t sendto(int fd, const void* from, std::size_t length,
                                                                 int flags, const sockaddr* to,
                                                                 socklen_t to_length) {
  if (weft::live::rsockets::full_for > 0) {
    --weft::live::rsockets::full_for;
    errno = EAGAIN;
    return -1;
  }
  return syscall(SYS_sendto, fd, from, length, flags, to, to_length);
}

namespace weft::live::rsockets {
namespace {

sockaddr_in name_of(int fd) {
  sockaddr_in name{};
  socklen_t length = sizeof name;
  if (rgetsockname(fd, generic(name), &length) != 0) std::abort();
  return name;
}

int datagrams(std::uint16_t port) {
  sockaddr_in at = socket_address(port);
  const int fd = rsocket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0 || rbind(fd, generic(at), sizeof at) != 0) std::abort();
  return fd;
}

struct Two {
  ~Two() {
    rclose(a);
    rclose(b);
  }
  int a = datagrams(0);
  int b = datagrams(0);
};

// A socket of the kernel that speaks as the UDP side of a peer does, at the same address.
struct Plain {
  Plain() : fd(socket(AF_INET, SOCK_DGRAM, 0)) {
    name = socket_address(0);
    socklen_t length = sizeof name;
    if (bind(fd, generic(name), length) != 0 || getsockname(fd, generic(name), &length) != 0) std::abort();
  }
  ~Plain() { close(fd); }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;
  void send(sockaddr_in to, const std::string& bytes) const {
    EXPECT_EQ(sendto(fd, bytes.data(), bytes.size(), 0, generic(to), sizeof to),
              static_cast<ssize_t>(bytes.size()));
  }
  // Empty: nothing comes.
  std::string receive(int milliseconds = kLong) const {
    pollfd p{fd, POLLIN, 0};
    if (poll(&p, 1, milliseconds) != 1) return {};
    std::string bytes(4096, '\0');
    const ssize_t n = recv(fd, bytes.data(), bytes.size(), 0);
    bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return bytes;
  }
  int fd;
  sockaddr_in name{};
};

std::string header(std::uint8_t kind, std::uint32_t qpn, std::uint32_t address) {
  std::string h{'U', 'U', 'U', 'U', 4, static_cast<char>(kind), 16, 0};
  const std::uint32_t number = htonl(qpn);
  h.append(reinterpret_cast<const char*>(&number), 4);
  h.append(reinterpret_cast<const char*>(&address), 4);
  return h;
}

TEST(Datagrams, TellWhoSentThemWhicheverWayTheyCome) {
  Two t;
  sockaddr_in a = name_of(t.a);
  sockaddr_in b = name_of(t.b);
  for (int i = 0; i < 20; ++i) {
    const std::string out = "datagram " + std::to_string(i);
    ASSERT_EQ(rsendto(t.a, out.data(), out.size(), 0, generic(b), sizeof b),
              static_cast<ssize_t>(out.size()));
    char in[64];
    sockaddr_in from{};
    socklen_t length = sizeof from;
    ASSERT_EQ(rrecvfrom(t.b, in, sizeof in, 0, generic(from), &length), static_cast<ssize_t>(out.size()));
    EXPECT_EQ(std::string(in, out.size()), out);
    EXPECT_EQ(from.sin_port, a.sin_port);
    EXPECT_EQ(from.sin_addr.s_addr, a.sin_addr.s_addr);
    ASSERT_EQ(rsendto(t.b, "ok", 2, 0, generic(from), length), 2);
    ASSERT_EQ(taken(t.a), "ok");
  }
}

TEST(Datagrams, AreWholeOrCutAndNoLongerThanTheyMayBe) {
  Two t;
  sockaddr_in b = name_of(t.b);
  ASSERT_EQ(rconnect(t.a, generic(b), sizeof b), 0);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1500}, std::size_t{2032}}) {
    for (int i = 0; i < 3; ++i) {
      const std::string out(size, static_cast<char>('a' + i));
      ASSERT_EQ(rsend(t.a, out.data(), size, 0), static_cast<ssize_t>(size));
      char in[4096];
      ASSERT_EQ(rrecv(t.b, in, sizeof in, 0), static_cast<ssize_t>(size));
      ASSERT_EQ(std::string(in, size), out);
      ASSERT_EQ(rsend(t.a, nullptr, 0, 0), 0);  // so that the answer to the first is seen
      ASSERT_EQ(rrecv(t.b, in, sizeof in, 0), 0);
    }
  }
  const std::string long_one(2033, 'x');
  EXPECT_EQ(rsend(t.a, long_one.data(), long_one.size(), 0), -1);
  EXPECT_EQ(errno, EMSGSIZE);
  EXPECT_EQ(rsend(t.a, "abcdef", 6, 0), 6);
  char in[4];
  iovec part{in, 4};
  msghdr m{};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  EXPECT_EQ(rrecvmsg(t.b, &m, 0), 4);
  EXPECT_EQ(m.msg_flags, MSG_TRUNC);
  EXPECT_EQ(rrecv(t.b, in, 4, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
}

// The bytes by UDP, and the change to the queue pair: after the answer nothing more comes that way.
TEST(Datagrams, BeginByUdpAndGoOnByQueuePair) {
  const int fd = datagrams(0);
  Plain peer;
  ASSERT_EQ(rsendto(fd, "first", 5, 0, generic(peer.name), sizeof peer.name), 5);
  const std::string first = peer.receive();
  ASSERT_EQ(first.size(), 21U);
  EXPECT_EQ(first.substr(0, 8), header(0, 0, 0).substr(0, 8));
  EXPECT_EQ(first.substr(12, 4), header(0, 0, name_of(fd).sin_addr.s_addr).substr(12));
  EXPECT_EQ(first.substr(16), "first");
  // Its datagram is answered with a queue pair's number, and given to the program. On a machine that is so
  // busy that a second passes before the program sends, it goes by UDP: then all is said again.
  std::string second = "not sent";
  for (int i = 0; i < 10 && !second.empty(); ++i) {
    peer.send(name_of(fd), header(0, 0x4711, peer.name.sin_addr.s_addr) + "hello");
    EXPECT_EQ(taken(fd), "hello");
    const std::string answer = peer.receive();
    EXPECT_EQ(answer, first.substr(0, 5) + '\7' + first.substr(6, 10));
    ASSERT_EQ(rsendto(fd, "second", 6, 0, generic(peer.name), sizeof peer.name), 6);
    second = peer.receive(100);
  }
  EXPECT_EQ(second, "");
  EXPECT_EQ(rclose(fd), 0);
}

// What no peer says is as if it had not come.
TEST(Datagrams, WithHeadersThatNobodyWritesAreDropped) {
  const int fd = datagrams(0);
  Plain peer;
  const std::string good = header(0, 0x4711, peer.name.sin_addr.s_addr);
  const std::size_t places[][2] = {{0, 0}, {4, 6}, {5, 1}, {6, 28}, {6, 255}};
  for (const auto& p : places) {
    std::string bad = good + "bad";
    bad[p[0]] = static_cast<char>(p[1]);
    peer.send(name_of(fd), bad);
  }
  for (std::size_t length = 0; length < good.size(); ++length) peer.send(name_of(fd), good.substr(0, length));
  peer.send(name_of(fd), good + "good");
  EXPECT_EQ(taken(fd), "good");
  EXPECT_EQ(rrecv(fd, nullptr, 0, MSG_DONTWAIT), -1);
  EXPECT_EQ(rclose(fd), 0);
}

// Anybody may send a datagram and get a place in the table of peers, which has 1024.
TEST(Datagrams, OfMorePeersThanTheTableHoldsAllArrive) {
  const int fd = datagrams(0);
  const sockaddr_in to = name_of(fd);
  for (int i = 0; i < 1100; ++i) {
    const Plain peer;
    peer.send(to, header(0, 1, peer.name.sin_addr.s_addr) + std::to_string(i));
    ASSERT_EQ(taken(fd), std::to_string(i));
  }
  EXPECT_EQ(rclose(fd), 0);
}

TEST(Datagrams, ComeFromTheConnectedPeerOnly) {
  Two t;
  const int other = datagrams(0);
  sockaddr_in a = name_of(t.a);
  sockaddr_in b = name_of(t.b);
  ASSERT_EQ(rconnect(t.a, generic(b), sizeof b), 0);
  EXPECT_EQ(rsendto(other, "stranger", 8, 0, generic(a), sizeof a), 8);
  EXPECT_EQ(rsendto(t.b, "friend", 6, 0, generic(a), sizeof a), 6);
  EXPECT_EQ(taken(t.a), "friend");
  EXPECT_EQ(rrecv(t.a, nullptr, 0, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(rclose(other), 0);
}

TEST(Datagrams, WakeWhoSleeps) {
  Two t;
  sockaddr_in b = name_of(t.b);
  for (int i = 0; i < 3; ++i) {
    std::atomic<int> thread{0};
    int ready = 0;
    std::thread sleeper([&] {
      thread = gettid();
      ready = poll_one(t.b, POLLIN);
    });
    EXPECT_TRUE(stays([&] { return thread != 0 && asleep(thread); }));
    EXPECT_EQ(rsendto(t.a, "x", 1, 0, generic(b), sizeof b), 1);
    sleeper.join();
    EXPECT_EQ(ready, POLLIN);
    EXPECT_EQ(taken(t.b), "x");
    EXPECT_EQ(rsendto(t.a, "y", 1, 0, generic(b), sizeof b), 1);  // a has looked for the answer
    EXPECT_EQ(taken(t.b), "y");
  }
}

// Nothing comes, and a receive that has a time-out ends with it.
TEST(Datagrams, AreWaitedForNoLongerThanTheirOptionSays) {
  Two t;
  const timeval set{0, 50'000};
  ASSERT_EQ(rsetsockopt(t.a, SOL_SOCKET, SO_RCVTIMEO, &set, sizeof set), 0);
  const int early = eventfd(0, EFD_CLOEXEC);
  sockaddr_in a = name_of(t.a);
  std::thread guard([&] {  // so that a wait without end is a failure, and no hanging test
    pollfd p{early, POLLIN, 0};
    if (poll(&p, 1, kLong) == 0) rsendto(t.b, "late", 4, 0, generic(a), sizeof a);
  });
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(rrecv(t.a, nullptr, 0, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(50));
  eventfd_write(early, 1);
  guard.join();
  close(early);
  timeval got{};
  socklen_t length = sizeof got;
  EXPECT_EQ(rgetsockopt(t.a, SOL_SOCKET, SO_RCVTIMEO, &got, &length), 0);
  EXPECT_GE(got.tv_usec, 50'000);
}

// The kernel has no room for the datagram at first: a socket that blocks waits for it, for as long as
// SO_SNDTIMEO says, and one that does not says EAGAIN.
TEST(Datagrams, WaitUntilTheKernelHasRoom) {
  Two t;
  Plain peer;
  sockaddr_in to = peer.name;
  full_for = 3;
  EXPECT_EQ(rsendto(t.a, "waited", 6, 0, generic(to), sizeof to), 6);
  EXPECT_EQ(full_for, 0);
  EXPECT_EQ(peer.receive().substr(16), "waited");
  full_for = 1;
  EXPECT_EQ(rsendto(t.a, "at once", 7, MSG_DONTWAIT, generic(to), sizeof to), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(full_for, 0);
  const timeval set{0, 50'000};
  ASSERT_EQ(rsetsockopt(t.a, SOL_SOCKET, SO_SNDTIMEO, &set, sizeof set), 0);
  full_for = INT_MAX;
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(rsendto(t.a, "too long", 8, 0, generic(to), sizeof to), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(50));
  full_for = 0;
  EXPECT_EQ(peer.receive(0), "");
}

// IP's options of one byte are the kernel's, as are those of four.
TEST(Datagrams, TakeOptionsOfOneByte) {
  const int fd = datagrams(0);
  const unsigned char hops = 7;
  EXPECT_EQ(rsetsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops), 0);
  int got = 0;
  socklen_t length = sizeof got;
  EXPECT_EQ(rgetsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &got, &length), 0);
  EXPECT_EQ(got, 7);
  EXPECT_EQ(rsetsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &hops, sizeof hops), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rclose(fd), 0);
}

// The new socket at the old one's port has another queue pair, and is asked for its number after a while.
TEST(Datagrams, ReachAPeerThatBeganAnew) {
  Two t;
  sockaddr_in b = name_of(t.b);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(rsendto(t.a, "x", 1, 0, generic(b), sizeof b), 1);
    ASSERT_EQ(taken(t.b), "x");
  }
  ASSERT_EQ(rclose(t.b), 0);
  t.b = datagrams(ntohs(b.sin_port));
  short came = 0;
  for (int i = 0; i < kLong / 50 && came == 0; ++i) {
    ASSERT_EQ(rsendto(t.a, "y", 1, 0, generic(b), sizeof b), 1);
    came = static_cast<short>(poll_one(t.b, POLLIN, 50));
  }
  EXPECT_EQ(came, POLLIN);
}

TEST(Datagrams, RefuseWhatTheyCannot) {
  socket_address(0);
  EXPECT_EQ(rsocket(AF_INET6, SOCK_DGRAM, 0), -1);
  EXPECT_EQ(errno, EAFNOSUPPORT);
  const int fd = rsocket(AF_INET, SOCK_DGRAM, 0);
  char c = 0;
  EXPECT_EQ(rsend(fd, &c, 1, 0), -1);
  EXPECT_EQ(errno, EDESTADDRREQ);
  EXPECT_EQ(rlisten(fd, 1), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  sockaddr_in other = socket_address(0);
  inet_pton(AF_INET, "127.255.255.1", &other.sin_addr);
  EXPECT_EQ(rbind(fd, generic(other), sizeof other), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  EXPECT_EQ(rclose(fd), 0);
}

}  // namespace
}  // namespace weft::live::rsockets
