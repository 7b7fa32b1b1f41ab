// Options of streams: those that mean something, those that are only remembered, and IPV6_V6ONLY.
#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include "live/engine/sleepers.h"
#include "live/rsockets/streams.h"

namespace weft::live::rsockets {
namespace {

TEST(Stream, HasTheOptionsThatMeanSomething) {
  socket_address(0);
  const int fd = rsocket(AF_INET, SOCK_STREAM, 0);
  const auto set = [&](int level, int name, int value) {
    return rsetsockopt(fd, level, name, &value, sizeof value) == 0 ? 0 : errno;
  };
  const auto get = [&](int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return rgetsockopt(fd, level, name, &value, &length) == 0 ? value : -errno;
  };
  EXPECT_EQ(get(SOL_SOCKET, SO_TYPE), SOCK_STREAM);
  EXPECT_EQ(set(SOL_SOCKET, SO_RCVBUF, 100'000), 0);
  EXPECT_EQ(get(SOL_SOCKET, SO_RCVBUF), 200'000);
  EXPECT_EQ(set(SOL_SOCKET, SO_SNDBUF, INT32_MAX), 0);
  EXPECT_EQ(get(SOL_SOCKET, SO_SNDBUF), 1 << 28);
  EXPECT_EQ(set(SOL_RDMA, RDMA_SQSIZE, 1), 0);
  EXPECT_EQ(get(SOL_RDMA, RDMA_SQSIZE), 16);
  EXPECT_EQ(set(SOL_RDMA, RDMA_INLINE, 0), 0);
  EXPECT_EQ(get(SOL_RDMA, RDMA_INLINE), 0);
  EXPECT_EQ(set(SOL_RDMA, RDMA_IOMAPSIZE, 129), 0);
  EXPECT_EQ(get(SOL_RDMA, RDMA_IOMAPSIZE), 128);  // as the offer will say it
  EXPECT_EQ(set(SOL_RDMA, RDMA_ROUTE, 0), EOPNOTSUPP);
  EXPECT_EQ(set(SOL_RDMA, RDMA_RQSIZE, -1), EINVAL);
  EXPECT_EQ(set(IPPROTO_TCP, TCP_NODELAY, 1), 0);
  EXPECT_EQ(get(IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(set(IPPROTO_TCP, TCP_CORK, 1), ENOPROTOOPT);
  EXPECT_EQ(rclose(fd), 0);
}

// What rsocket(7) lists and librdmacm takes without doing more for it than to remember it.
TEST(Stream, TakesTheOptionsThatNeedNothingOfAReliableConnection) {
  Streams s(7331);
  const int server = listener(7332);
  const auto set = [](int fd, int level, int name, int value) {
    return rsetsockopt(fd, level, name, &value, sizeof value) == 0 ? 0 : errno;
  };
  const auto get = [](int fd, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return rgetsockopt(fd, level, name, &value, &length) == 0 ? value : -errno;
  };
  const int fresh = rsocket(AF_INET, SOCK_STREAM, 0);
  for (const int fd : {fresh, server, s.a, s.b}) {  // whatever state it is in
    EXPECT_EQ(get(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
    EXPECT_EQ(set(fd, SOL_SOCKET, SO_KEEPALIVE, 1), 0);
    EXPECT_EQ(get(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(get(fd, SOL_SOCKET, SO_OOBINLINE), 0);
    EXPECT_EQ(set(fd, SOL_SOCKET, SO_OOBINLINE, 7), 0);
    EXPECT_EQ(get(fd, SOL_SOCKET, SO_OOBINLINE), 1);
    EXPECT_EQ(set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60), 0);
    EXPECT_EQ(get(fd, IPPROTO_TCP, TCP_KEEPIDLE), 60);
    EXPECT_EQ(set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 0), EINVAL);
    EXPECT_EQ(set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5), 0);
    EXPECT_EQ(set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3), 0);
    EXPECT_EQ(get(fd, IPPROTO_TCP, TCP_KEEPINTVL), 5);
    EXPECT_EQ(get(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
    const int before = get(fd, IPPROTO_TCP, TCP_MAXSEG);
    EXPECT_EQ(set(fd, IPPROTO_TCP, TCP_MAXSEG, 536), 0);
    EXPECT_EQ(get(fd, IPPROTO_TCP, TCP_MAXSEG), before);  // the path's, as ever
  }
  EXPECT_EQ(rsend(s.a, "goes on", 7, 0), 7);
  EXPECT_EQ(taken(s.b), "goes on");
  // Those that a listener takes have its answers.
  const int client = begin_connect(7332);
  const int taken_in = raccept(server, nullptr, nullptr);
  ASSERT_GE(taken_in, 0);
  EXPECT_EQ(get(taken_in, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(get(taken_in, IPPROTO_TCP, TCP_KEEPIDLE), 60);
  EXPECT_EQ(poll_one(client, POLLOUT), POLLOUT);
  for (const int fd : {fresh, server, client, taken_in}) EXPECT_EQ(rclose(fd), 0);
}

// Both ends of IPv4 alone: a listener that is IPv6's alone turns it away, and a client is refused at once.
TEST(Stream, OfIpv6AloneTakesNoIpv4) {
  socket_address(0);
  const int on = 1;
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(7333);
  const int server = rsocket(AF_INET6, SOCK_STREAM, 0);
  ASSERT_EQ(rsetsockopt(server, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on), 0);
  int only = 0;
  socklen_t length = sizeof only;
  EXPECT_EQ(rgetsockopt(server, IPPROTO_IPV6, IPV6_V6ONLY, &only, &length), 0);
  EXPECT_EQ(only, 1);
  ASSERT_EQ(rbind(server, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(rlisten(server, 8), 0);
  EXPECT_EQ(rsetsockopt(server, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on), -1);
  EXPECT_EQ(errno, EINVAL);
  const int client = begin_connect(7333);
  ASSERT_EQ(rfcntl(server, F_SETFL, O_NONBLOCK), 0);
  EXPECT_TRUE(
      stays([&] { return raccept(server, nullptr, nullptr) != -1 || poll_one(client, POLLOUT, 0) != 0; }));
  EXPECT_EQ(pending_error(client), ECONNREFUSED);
  const int other = rsocket(AF_INET6, SOCK_STREAM, 0);
  ASSERT_EQ(rsetsockopt(other, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on), 0);
  sockaddr_in at = socket_address(7333);
  EXPECT_EQ(rconnect(other, generic(at), sizeof at), -1);
  EXPECT_EQ(errno, ENETUNREACH);
  for (const int fd : {server, client, other}) EXPECT_EQ(rclose(fd), 0);
}

}  // namespace
}  // namespace weft::live::rsockets
