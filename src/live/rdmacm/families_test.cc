// Connections over IPv6, by a device that has an address of each family. It is a program of its own, because
// a process has one device for as long as it lives (host.h).
#include <gtest/gtest.h>

#include <string>

#define WEFT_PARTY_MORE ",::1"
#include "live/rdmacm/party.h"

namespace weft::live::rdmacm {
namespace {

sockaddr_in6 v6_address(std::uint16_t port, bool any = false) {
  sockaddr_in6 a{};
  a.sin6_family = AF_INET6;
  a.sin6_port = htons(port);
  if (!any) a.sin6_addr = in6addr_loopback;
  return a;
}

bool has_v6() {
  const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 at = v6_address(0);
  const bool bound = fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  if (fd >= 0) close(fd);
  return bound;
}

struct Ends {
  Ends() {
    listener = server.create();
    active = client.create();
  }
  ~Ends() {
    for (rdma_cm_id* id : {passive, active, listener}) {
      if (id == nullptr) continue;
      rdma_destroy_qp(id);
      rdma_destroy_id(id);
    }
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  void listen(sockaddr* at) const {
    ASSERT_EQ(rdma_bind_addr(listener, at), 0) << errno;
    ASSERT_EQ(rdma_listen(listener, 4), 0) << errno;
  }
  void connect(sockaddr* to) {
    ASSERT_EQ(rdma_resolve_addr(active, nullptr, to, 1000), 0) << errno;
    client.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_EQ(rdma_resolve_route(active, 1000), 0);
    client.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    ASSERT_EQ(make_queue_pair(active), 0);
    rdma_conn_param p{};
    p.responder_resources = p.initiator_depth = 1;
    p.retry_count = p.rnr_retry_count = 7;
    ASSERT_EQ(rdma_connect(active, &p), 0);
    passive = server.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
    ASSERT_EQ(make_queue_pair(passive), 0);
    ASSERT_EQ(rdma_accept(passive, nullptr), 0);
    client.expect(RDMA_CM_EVENT_ESTABLISHED);
    server.expect(RDMA_CM_EVENT_ESTABLISHED);
  }
  // The GID table's entry that a connected queue pair sends from.
  static int entry(rdma_cm_id* id) {
    ibv_qp_attr a{};
    ibv_qp_init_attr init{};
    return ibv_query_qp(id->qp, &a, IBV_QP_AV, &init) == 0 ? a.ah_attr.grh.sgid_index : -1;
  }

  Listening server;
  Listening client;
  rdma_cm_id* listener = nullptr;
  rdma_cm_id* active = nullptr;
  rdma_cm_id* passive = nullptr;
};

bool is_loopback(const sockaddr* a) {
  const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(a);
  return a->sa_family == AF_INET6 && std::memcmp(&v6->sin6_addr, &in6addr_loopback, 16) == 0;
}

// Both ends' addresses, and those of the route, are IPv6's, and the packets go from the second GID.
TEST(Families, AConnectionOverIpv6ShowsItsAddressesAtBothEnds) {
  if (!has_v6()) GTEST_SKIP() << "no IPv6 on this machine";
  Ends e;
  sockaddr_in6 at = v6_address(7201);
  e.listen(reinterpret_cast<sockaddr*>(&at));
  e.connect(reinterpret_cast<sockaddr*>(&at));
  for (rdma_cm_id* id : {e.active, e.passive}) {
    EXPECT_TRUE(is_loopback(rdma_get_local_addr(id)));
    EXPECT_TRUE(is_loopback(rdma_get_peer_addr(id)));
    EXPECT_EQ(id->route.addr.addr.ibaddr.sgid.raw[15], 1);
    EXPECT_EQ(id->route.addr.addr.ibaddr.sgid.raw[10], 0);
    EXPECT_EQ(Ends::entry(id), 1);
  }
  EXPECT_EQ(ntohs(rdma_get_dst_port(e.active)), 7201);
  EXPECT_EQ(ntohs(rdma_get_src_port(e.passive)), 7201);
}

// Whichever family the server names "any" in, both lead to it.
TEST(Families, AServerAtAnyAddressIsReachedOverBoth) {
  if (!has_v6()) GTEST_SKIP() << "no IPv6 on this machine";
  for (const bool any_v6 : {false, true}) {
    for (const bool over_v6 : {false, true}) {
      Ends e;
      const auto port = static_cast<std::uint16_t>(7210 + 2 * any_v6 + over_v6);
      sockaddr_in any{};
      any.sin_family = AF_INET;
      any.sin_port = htons(port);
      sockaddr_in6 any6 = v6_address(port, true);
      e.listen(any_v6 ? reinterpret_cast<sockaddr*>(&any6) : reinterpret_cast<sockaddr*>(&any));
      sockaddr_in to = any;
      inet_pton(AF_INET, own_address().c_str(), &to.sin_addr);
      sockaddr_in6 to6 = v6_address(port);
      e.connect(over_v6 ? reinterpret_cast<sockaddr*>(&to6) : reinterpret_cast<sockaddr*>(&to));
      EXPECT_EQ(rdma_get_peer_addr(e.passive)->sa_family == AF_INET6, over_v6 || any_v6);
      EXPECT_EQ(Ends::entry(e.active), over_v6 ? 1 : 0);
      EXPECT_EQ(Ends::entry(e.passive), over_v6 ? 1 : 0);
    }
  }
}

// A listener at one of the two addresses is none at the other.
TEST(Families, AServerAtOneAddressIsNotAtTheOther) {
  if (!has_v6()) GTEST_SKIP() << "no IPv6 on this machine";
  Ends e;
  sockaddr_in6 at = v6_address(7220);
  e.listen(reinterpret_cast<sockaddr*>(&at));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(7220);
  inet_pton(AF_INET, own_address().c_str(), &to.sin_addr);
  ASSERT_EQ(rdma_resolve_addr(e.active, nullptr, generic(to), 1000), 0);
  e.client.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(rdma_resolve_route(e.active, 1000), 0);
  e.client.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  ASSERT_EQ(make_queue_pair(e.active), 0);
  rdma_conn_param p{};
  ASSERT_EQ(rdma_connect(e.active, &p), 0);
  EXPECT_EQ(e.client.expect(RDMA_CM_EVENT_REJECTED).status, 8);
}

TEST(Families, NamesAreFoundInTheFamilyThatIsAskedFor) {
  if (!has_v6()) GTEST_SKIP() << "no IPv6 on this machine";
  Ends e;
  for (const int family : {AF_UNSPEC, AF_INET6}) {
    rdma_addrinfo hints{};
    hints.ai_family = family;
    hints.ai_port_space = RDMA_PS_TCP;
    rdma_addrinfo* found = nullptr;
    ASSERT_EQ(rdma_getaddrinfo("::1", "7230", &hints, &found), 0) << family;
    EXPECT_EQ(found->ai_family, AF_INET6);
    EXPECT_TRUE(is_loopback(found->ai_dst_addr));
    EXPECT_TRUE(is_loopback(found->ai_src_addr));
    EXPECT_EQ(found->ai_src_len, sizeof(sockaddr_in6));
    rdma_freeaddrinfo(found);
  }
}

}  // namespace
}  // namespace weft::live::rdmacm
