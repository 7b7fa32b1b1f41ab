// Streams as programs see them: what arrives, what is ready, how they end, and what is refused.
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/wait.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "live/engine/sleepers.h"
#include "live/rsockets/streams.h"

namespace weft::live::rsockets {
namespace {

TEST(Stream, CarriesBytesBothWaysAndKnowsItsNames) {
  Streams s(7301);
  EXPECT_EQ(rsend(s.a, "there", 5, 0), 5);
  EXPECT_EQ(rwrite(s.b, "and back", 8), 8);
  EXPECT_EQ(taken(s.b), "there");
  EXPECT_EQ(taken(s.a), "and back");
  sockaddr_in name{};
  sockaddr_in other{};
  socklen_t length = sizeof name;
  ASSERT_EQ(rgetsockname(s.b, generic(name), &length), 0);
  EXPECT_EQ(ntohs(name.sin_port), 7301);
  length = sizeof name;
  ASSERT_EQ(rgetsockname(s.a, generic(name), &length), 0);
  length = sizeof other;
  ASSERT_EQ(rgetpeername(s.b, generic(other), &length), 0);
  EXPECT_EQ(length, sizeof other);
  EXPECT_EQ(name.sin_port, other.sin_port);
  EXPECT_EQ(name.sin_addr.s_addr, other.sin_addr.s_addr);
}

// More than both rings hold, in writes and reads of odd sizes, both ways at once and a thread for each: so
// targets and credits of both ends turn over many times.
TEST(Stream, CarriesMoreThanItsRingsBothWaysAtOnce) {
  Streams s(7302);
  constexpr std::size_t kBytes = 3'000'001;
  std::vector<std::uint8_t> bytes(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  const auto write = [&](int fd, std::size_t step) {
    for (std::size_t at = 0; at < kBytes;) {
      const ssize_t n = rsend(fd, bytes.data() + at, std::min(step, kBytes - at), 0);
      if (n <= 0) return;
      at += static_cast<std::size_t>(n);
    }
  };
  const auto read = [&](int fd, std::size_t step, std::vector<std::uint8_t>& to) {
    to.resize(kBytes);
    for (std::size_t at = 0; at < kBytes;) {
      const ssize_t n = rrecv(fd, to.data() + at, std::min(step, kBytes - at), 0);
      if (n <= 0) return;
      at += static_cast<std::size_t>(n);
    }
  };
  std::vector<std::uint8_t> at_a;
  std::vector<std::uint8_t> at_b;
  std::thread threads[] = {std::thread([&] { write(s.a, 99'991); }), std::thread([&] { write(s.b, 1'777); }),
                           std::thread([&] { read(s.a, 8'191, at_a); }),
                           std::thread([&] { read(s.b, 70'001, at_b); })};
  for (std::thread& t : threads) t.join();
  EXPECT_TRUE(at_a == bytes);
  EXPECT_TRUE(at_b == bytes);
}

TEST(Stream, GathersAndScattersParts) {
  Streams s(7303);
  char one[] = "ab";
  char two[] = "";
  char three[] = "cde";
  const iovec out[] = {{one, 2}, {two, 0}, {three, 3}};
  EXPECT_EQ(rwritev(s.a, out, 3), 5);
  EXPECT_EQ(poll_one(s.b, POLLIN), POLLIN);
  EXPECT_EQ(taken(s.b, 4, MSG_PEEK), "abcd");
  char x[1];
  char y[9];
  iovec in[] = {{x, 1}, {y, 9}};
  msghdr m{};
  m.msg_iov = in;
  m.msg_iovlen = 2;
  EXPECT_EQ(rrecvmsg(s.b, &m, 0), 5);
  EXPECT_EQ(x[0], 'a');
  EXPECT_EQ(std::string(y, 4), "bcde");
  EXPECT_EQ(rrecv(s.b, y, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(Stream, WaitsForAllBytesIfAsked) {
  Streams s(7304);
  std::string got;
  std::thread reader([&] { got = taken(s.b, 6, MSG_WAITALL); });
  EXPECT_EQ(rsend(s.a, "abc", 3, 0), 3);
  EXPECT_EQ(rsend(s.a, "def", 3, 0), 3);
  reader.join();
  EXPECT_EQ(got, "abcdef");
}

// A peer that does not read stops the sender, who is told so, or waits.
TEST(Stream, IsNotWritableBeyondWhatThePeerHasRoomFor) {
  Streams s(7305);
  const std::vector<char> bytes(1 << 16, 'x');
  constexpr std::size_t kRing = std::size_t{1} << 17U;  // the peer's, whole
  std::size_t sent = 0;
  while (sent < kRing) {
    const ssize_t n = rsend(s.a, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n > 0) sent += static_cast<std::size_t>(n);
    if (n < 0) {
      ASSERT_EQ(poll_one(s.a, POLLOUT), POLLOUT);
    }
  }
  EXPECT_EQ(sent, kRing);
  EXPECT_EQ(rsend(s.a, bytes.data(), 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(poll_one(s.a, POLLOUT, 0), 0);
  std::atomic<int> thread{0};
  std::atomic<bool> done{false};
  std::thread writer([&] {
    thread = gettid();
    EXPECT_EQ(rsend(s.a, "y", 1, 0), 1);
    done = true;
  });
  EXPECT_TRUE(stays([&] { return done || (thread != 0 && asleep(thread)); }));
  EXPECT_FALSE(done);
  std::vector<char> back(sent);
  EXPECT_EQ(rrecv(s.b, back.data(), sent, MSG_WAITALL), static_cast<ssize_t>(sent));
  writer.join();
  EXPECT_EQ(taken(s.b), "y");
}

// One thread sleeps in rrecv, one in rpoll for the same bytes, and one sends: all are told.
TEST(Stream, WakesEverybodyWhoSleepsAboutIt) {
  Streams s(7306);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> reader_thread{0};
    std::atomic<int> poller_thread{0};
    int ready = 0;
    std::string got;
    std::thread reader([&] {
      reader_thread = gettid();
      got = taken(s.b, 2, MSG_WAITALL);
    });
    std::thread poller([&] {
      poller_thread = gettid();
      ready = poll_one(s.b, POLLIN);
    });
    EXPECT_TRUE(stays([&] {
      return reader_thread != 0 && poller_thread != 0 && asleep(reader_thread) && asleep(poller_thread);
    }));
    EXPECT_EQ(rsend(s.a, "1", 1, 0), 1);
    // The reader may take the first byte before the other one looks; then that is told with the next.
    EXPECT_EQ(rsend(s.a, "2", 1, 0), 1);
    reader.join();
    EXPECT_EQ(rsend(s.a, "3", 1, 0), 1);
    poller.join();
    EXPECT_EQ(got, "12");
    EXPECT_EQ(ready, POLLIN);
    EXPECT_EQ(taken(s.b, 1), "3");
  }
}

TEST(Stream, EndsOneWayAtATime) {
  Streams s(7307);
  EXPECT_EQ(rsend(s.a, "last", 4, 0), 4);
  EXPECT_EQ(rshutdown(s.a, SHUT_WR), 0);
  EXPECT_EQ(rsend(s.a, "x", 1, 0), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(taken(s.b), "last");
  char c = 0;
  EXPECT_EQ(rrecv(s.b, &c, 1, 0), 0);
  EXPECT_EQ(rsend(s.b, "still", 5, 0), 5);
  EXPECT_EQ(taken(s.a), "still");
  EXPECT_EQ(rshutdown(s.b, SHUT_WR), 0);
  EXPECT_EQ(rrecv(s.a, &c, 1, 0), 0);
}

// The second end hears only within its own rshutdown that the first is done, and is heard all the same.
TEST(Stream, EndsIfBothAreShutAndNobodyHasReadTheEnd) {
  Streams s(7317);
  EXPECT_EQ(rshutdown(s.a, SHUT_WR), 0);
  EXPECT_EQ(rshutdown(s.b, SHUT_WR), 0);
  ASSERT_EQ(poll_one(s.a, POLLIN) & POLLIN, POLLIN);
  char c = 0;
  EXPECT_EQ(rrecv(s.a, &c, 1, 0), 0);
  EXPECT_EQ(rrecv(s.b, &c, 1, 0), 0);
}

TEST(Stream, ThatIsClosedBeforeItHasReadTheEndIsNoFailureToThePeer) {
  Streams s(7318);
  EXPECT_EQ(rshutdown(s.a, SHUT_WR), 0);
  EXPECT_EQ(rclose(std::exchange(s.b, -1)), 0);
  char c = 0;
  EXPECT_EQ(rrecv(s.a, &c, 1, 0), 0);
}

// Nobody will answer those that asked: they are told, also if somebody looks at the listener in between.
TEST(Stream, IsRefusedByAListenerThatWasShut) {
  const int server = listener(7319);
  const int clients[] = {begin_connect(7319), begin_connect(7319)};
  ASSERT_EQ(poll_one(server, POLLIN), POLLIN);
  EXPECT_EQ(rshutdown(server, SHUT_RD), 0);
  EXPECT_NE(poll_one(server, POLLIN, 0), 0);
  EXPECT_EQ(rclose(server), 0);
  for (const int fd : clients) {
    EXPECT_NE(poll_one(fd, POLLOUT), 0);
    EXPECT_EQ(pending_error(fd), ECONNREFUSED);
    EXPECT_EQ(rclose(fd), 0);
  }
}

// Whoever asks again while it connects is told that it does; after that, why it did not.
TEST(Stream, ThatIsAskedToConnectAgainSaysHowItGoes) {
  const int server = listener(7320);
  sockaddr_in at = socket_address(7320);
  const int fd = begin_connect(7320);
  ASSERT_EQ(poll_one(server, POLLIN), POLLIN);
  EXPECT_EQ(rconnect(fd, generic(at), sizeof at), -1);
  EXPECT_EQ(errno, EINPROGRESS);
  EXPECT_EQ(rclose(server), 0);
  EXPECT_NE(poll_one(fd, POLLOUT), 0);
  EXPECT_EQ(rconnect(fd, generic(at), sizeof at), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  EXPECT_EQ(rconnect(fd, generic(at), sizeof at), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rclose(fd), 0);
}

TEST(Stream, ThatThePeerClosedGivesWhatHasComeAndThenEnds) {
  Streams s(7308);
  EXPECT_EQ(rsend(s.a, "goodbye", 7, 0), 7);
  EXPECT_EQ(rclose(std::exchange(s.a, -1)), 0);
  EXPECT_EQ(poll_one(s.b, POLLIN), POLLIN);  // hung up it is when nothing more is to be read
  EXPECT_EQ(taken(s.b, 4), "good");
  EXPECT_EQ(taken(s.b), "bye");
  char c = 0;
  EXPECT_EQ(rrecv(s.b, &c, 1, 0), 0);
  EXPECT_EQ(rsend(s.b, &c, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(poll_one(s.b, POLLIN), POLLIN | POLLHUP);
}

// Closed with a linger time of zero: the peer is told that it was not the end, but a failure.
TEST(Stream, ThatThePeerAbandonedIsReset) {
  Streams s(7309);
  const linger none{1, 0};
  ASSERT_EQ(rsetsockopt(s.a, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
  EXPECT_EQ(rclose(std::exchange(s.a, -1)), 0);
  char c = 0;
  EXPECT_EQ(rrecv(s.b, &c, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(rrecv(s.b, &c, 1, 0), 0);  // it is told once
}

TEST(Stream, TellsAWaitingReaderThatItWasShut) {
  Streams s(7310);
  std::atomic<int> thread{0};
  ssize_t got = -1;
  std::thread reader([&] {
    thread = gettid();
    char c = 0;
    got = rrecv(s.b, &c, 1, 0);
  });
  EXPECT_TRUE(stays([&] { return thread != 0 && asleep(thread); }));
  EXPECT_EQ(rshutdown(s.b, SHUT_RD), 0);
  reader.join();
  EXPECT_EQ(got, 0);
}

TEST(Stream, IsRefusedWhereNobodyListens) {
  const int other = listener(7311);  // so the process answers for its address
  const int fd = begin_connect(7312);
  EXPECT_EQ(poll_one(fd, POLLOUT) & (POLLOUT | POLLERR), POLLOUT | POLLERR);
  EXPECT_EQ(pending_error(fd), ECONNREFUSED);
  EXPECT_EQ(pending_error(fd), 0);
  EXPECT_EQ(rclose(fd), 0);
  EXPECT_EQ(rclose(other), 0);
}

// The least of everything: rings of two halves of 2 KB, 16 requests, no inline data.
TEST(Stream, WorksWithTheSmallestSizes) {
  const int server = listener(7313);
  const auto shrink = [](int fd) {
    const int least = 0;
    for (const int name : {SO_RCVBUF, SO_SNDBUF}) rsetsockopt(fd, SOL_SOCKET, name, &least, sizeof least);
    for (const int name : {int{RDMA_SQSIZE}, int{RDMA_RQSIZE}, int{RDMA_INLINE}})
      rsetsockopt(fd, SOL_RDMA, name, &least, sizeof least);
  };
  shrink(server);
  const int a = rsocket(AF_INET, SOCK_STREAM, 0);
  shrink(a);
  sockaddr_in at = socket_address(7313);
  std::vector<std::uint8_t> sent(200'000);
  std::iota(sent.begin(), sent.end(), std::uint8_t{0});
  std::thread client([&] {
    EXPECT_EQ(rconnect(a, generic(at), sizeof at), 0);
    for (std::size_t i = 0; i < sent.size();) {
      const ssize_t n = rsend(a, sent.data() + i, std::min<std::size_t>(sent.size() - i, 777), 0);
      if (n <= 0) break;
      i += static_cast<std::size_t>(n);
    }
    EXPECT_EQ(rclose(a), 0);
  });
  const int b = raccept(server, nullptr, nullptr);
  ASSERT_GE(b, 0);
  std::vector<std::uint8_t> got(sent.size());
  EXPECT_EQ(rrecv(b, got.data(), got.size(), MSG_WAITALL), static_cast<ssize_t>(got.size()));
  EXPECT_TRUE(got == sent);
  client.join();
  EXPECT_EQ(rclose(b), 0);
  EXPECT_EQ(rclose(server), 0);
}

TEST(Waiting, TakesDescriptorsOfAnyKind) {
  Streams s(7314);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  pollfd fds[] = {{pipe_ends[0], POLLIN, 0}, {s.b, POLLIN, 0}, {-1, POLLIN, 0}, {s.server, POLLIN, 0}};
  EXPECT_EQ(rpoll(fds, 4, 0), 0);
  std::thread writer([&] { EXPECT_EQ(write(pipe_ends[1], "x", 1), 1); });
  EXPECT_EQ(rpoll(fds, 4, kLong), 1);
  EXPECT_EQ(fds[0].revents, POLLIN);
  writer.join();
  EXPECT_EQ(rsend(s.a, "x", 1, 0), 1);
  fd_set reads;
  fd_set writes;
  FD_ZERO(&reads);
  FD_ZERO(&writes);
  for (const int fd : {pipe_ends[0], s.b, s.server}) FD_SET(fd, &reads);
  FD_SET(s.a, &writes);
  const int most = std::max({pipe_ends[0], s.a, s.b, s.server}) + 1;
  EXPECT_EQ(poll_one(s.b, POLLIN), POLLIN);
  timeval limit{20, 0};
  EXPECT_EQ(rselect(most, &reads, &writes, nullptr, &limit), 3);
  EXPECT_TRUE(FD_ISSET(s.b, &reads) && FD_ISSET(s.a, &writes) && FD_ISSET(pipe_ends[0], &reads));
  EXPECT_FALSE(FD_ISSET(s.server, &reads));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(Calls, RefuseWhatIsNoRsocket) {
  socket_address(0);
  char c = 0;
  EXPECT_EQ(rrecv(0, &c, 1, 0), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(rclose(-1), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(rsocket(AF_UNIX, SOCK_STREAM, 0), -1);
  EXPECT_EQ(errno, EAFNOSUPPORT);
  EXPECT_EQ(rsocket(AF_INET, SOCK_RAW, 0), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  const int fd = rsocket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(rsend(fd, &c, 1, 0), -1);
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_EQ(raccept(fd, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(poll_one(fd, POLLIN), POLLHUP);
  EXPECT_EQ(rclose(fd), 0);
}

// In a child the parent's rsockets are none; closing them there changes nothing for the parent.
TEST(Calls, OfAForkedChildFindNoRsockets) {
  Streams s(7315);
  const pid_t child = fork();
  if (child == 0) {
    char c = 0;
    const bool none = rrecv(s.b, &c, 1, 0) == -1 && errno == EBADF;
    const bool closed = rclose(s.b) == 0 && rclose(s.a) == 0;
    _exit(none && closed ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(rsend(s.a, "on", 2, 0), 2);
  EXPECT_EQ(taken(s.b), "on");
}

TEST(Maps, LetThePeerWriteWhereNobodyReads) {
  const int server = listener(7316);
  const int one = 1;
  const int a = rsocket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(rsetsockopt(a, SOL_RDMA, RDMA_IOMAPSIZE, &one, sizeof one), 0);
  sockaddr_in at = socket_address(7316);
  ASSERT_EQ(rfcntl(a, F_SETFL, O_NONBLOCK), 0);
  rconnect(a, generic(at), sizeof at);
  const int b = raccept(server, nullptr, nullptr);
  ASSERT_EQ(poll_one(a, POLLOUT), POLLOUT);
  std::vector<char> memory(100'000, '.');
  EXPECT_EQ(riomap(a, memory.data(), memory.size(), PROT_WRITE, 0, 0), -1);  // b has no table
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(riomap(b, memory.data(), memory.size(), PROT_WRITE, 0, 5000), 5000);
  EXPECT_EQ(rsend(b, "mapped", 6, 0), 6);
  EXPECT_EQ(poll_one(a, POLLIN), POLLIN);
  EXPECT_EQ(taken(a), "mapped");
  EXPECT_EQ(static_cast<ssize_t>(riowrite(a, "x", 1, 4999, 0)), -1);
  EXPECT_EQ(errno, EFAULT);
  const std::vector<char> bytes(90'000, 'w');
  EXPECT_EQ(rfcntl(a, F_SETFL, 0), 0);
  EXPECT_EQ(riowrite(a, bytes.data(), bytes.size(), 5010, 0), bytes.size());
  EXPECT_EQ(riowrite(a, "end", 3, 5000 + 99'998, 0), 2U);  // as far as the memory reaches
  EXPECT_EQ(rsend(a, "written", 7, 0), 7);
  EXPECT_EQ(taken(b), "written");
  EXPECT_EQ(std::string(memory.data() + 8, 4), "..ww");
  EXPECT_EQ(std::string(memory.data() + 90'008, 4), "ww..");
  EXPECT_EQ(std::string(memory.data() + 99'997, 3), ".en");
  EXPECT_EQ(riounmap(b, memory.data(), memory.size()), 0);
  EXPECT_EQ(riounmap(b, memory.data(), memory.size()), -1);
  EXPECT_EQ(errno, EINVAL);
  for (const int fd : {a, b, server}) EXPECT_EQ(rclose(fd), 0);
}

}  // namespace
}  // namespace weft::live::rsockets
