// Identifiers and channels: addresses and ports, accounts of events, migration, calls without a channel.
#include <gtest/gtest.h>
#include <netdb.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "live/engine/sleepers.h"
#include "live/rdmacm/party.h"

namespace weft::live::rdmacm {
namespace {

TEST(Id, BindsOnceToItsOwnAddressAndToAFreePort) {
  Listening l;
  rdma_cm_id* const a = l.create();
  rdma_cm_id* const b = l.create();
  sockaddr_in other = socket_address(0);
  inet_pton(AF_INET, "127.255.255.1", &other.sin_addr);
  EXPECT_EQ(rdma_bind_addr(a, generic(other)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  sockaddr_in free = socket_address(0);
  EXPECT_EQ(rdma_bind_addr(a, generic(free)), 0);
  EXPECT_NE(a->verbs, nullptr);
  const std::uint16_t port = ntohs(rdma_get_src_port(a));
  EXPECT_NE(port, 0);
  EXPECT_EQ(rdma_bind_addr(a, generic(free)), -1);
  EXPECT_EQ(errno, EINVAL);
  sockaddr_in taken = socket_address(port);
  EXPECT_EQ(rdma_bind_addr(b, generic(taken)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_EQ(rdma_destroy_id(a), 0);
  EXPECT_EQ(rdma_bind_addr(b, generic(taken)), 0);
  EXPECT_EQ(rdma_destroy_id(b), 0);
}

// As long as it has a device, whether it has a queue pair or not.
TEST(Id, WithADeviceHasItsDefaultDomain) {
  Listening l;
  rdma_cm_id* const bound = l.create();
  EXPECT_EQ(bound->pd, nullptr);
  sockaddr_in at = socket_address(0);
  ASSERT_EQ(rdma_bind_addr(bound, generic(at)), 0);
  ASSERT_NE(bound->pd, nullptr);
  EXPECT_EQ(bound->pd->context, bound->verbs);
  EXPECT_EQ(rdma_destroy_id(bound), 0);
  Pair p(7172);
  p.request();
  EXPECT_EQ(p.active->pd, p.passive->pd);
  rdma_destroy_qp(p.passive);
  EXPECT_NE(p.passive->pd, nullptr);
}

TEST(Id, BoundToAnyAddressHasNoDeviceAndListensOnIt) {
  Listening l;
  rdma_cm_id* const id = l.create();
  sockaddr_in any = socket_address(7101, true);
  ASSERT_EQ(rdma_bind_addr(id, generic(any)), 0);
  EXPECT_EQ(id->verbs, nullptr);
  EXPECT_EQ(rdma_listen(id, 1), 0);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

// Another process of the address serves the port that would be next; the program asked for any.
TEST(Id, ListensAtAnotherPortThanItsNeighbours) {
  Listening l;
  rdma_cm_id* const before = l.create();
  sockaddr_in any = socket_address(0, true);
  ASSERT_EQ(rdma_bind_addr(before, generic(any)), 0);
  const unsigned port = ntohs(rdma_get_src_port(before));
  std::vector<int> neighbours;
  for (unsigned p = port + 1; p < port + 4; ++p) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const int n = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "weft/%s:4791/service/%d:%u",
                                own_address().c_str(), static_cast<int>(RDMA_PS_TCP), p);
    neighbours.push_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(neighbours.back(), reinterpret_cast<const sockaddr*>(&name),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(n))),
              0);
  }
  rdma_cm_id* const id = l.create();
  EXPECT_EQ(rdma_listen(id, 1), 0) << std::strerror(errno);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  EXPECT_EQ(rdma_destroy_id(before), 0);
  for (const int fd : neighbours) close(fd);
}

TEST(Id, GoesOnlyWhenItsEventsAreAcknowledged) {
  Listening l;
  rdma_cm_id* const id = l.create();
  sockaddr_in to = socket_address(7102);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, generic(to), 100), 0);
  rdma_cm_event* const e = l.next();
  ASSERT_NE(e, nullptr);
  std::atomic<int> thread{0};
  std::atomic<bool> gone{false};
  std::thread destroyer([&] {
    thread = gettid();
    rdma_destroy_id(id);
    gone = true;
  });
  EXPECT_TRUE(stays([&] { return gone || (thread != 0 && asleep(thread)); }));
  EXPECT_FALSE(gone);
  rdma_ack_cm_event(e);
  destroyer.join();
}

TEST(Id, TakesItsUnseenEventsAlong) {
  Listening l;
  rdma_cm_id* const id = l.create();
  sockaddr_in to = socket_address(7103);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, generic(to), 100), 0);
  pollfd p{l.channel->fd, POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 0), 1);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  EXPECT_EQ(poll(&p, 1, 0), 0);
  rdma_cm_event* e = nullptr;
  EXPECT_EQ(rdma_get_cm_event(l.channel, &e), -1);
  EXPECT_EQ(errno, EAGAIN);
}

// rping's thread for events is told of the end, acknowledges it and comes again; meanwhile the others have
// cleaned up.
TEST(Id, WhoComesToAChannelThatIsDestroyedWaits) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  ASSERT_NE(channel, nullptr);
  rdma_destroy_event_channel(channel);
  std::atomic<bool> came = false;
  std::atomic<bool> left = false;
  std::thread late([&] {
    rdma_cm_event* e = nullptr;
    came = true;
    (void)rdma_get_cm_event(channel, &e);
    left = true;
  });
  while (!came) std::this_thread::yield();
  Listening other;  // what was given back is used again
  usleep(20'000);
  EXPECT_FALSE(left);
  pthread_cancel(late.native_handle());
  late.join();
  EXPECT_FALSE(left);
}

TEST(Id, WhoWaitsInAChannelThatIsDestroyedReadsNobodyElsesDescriptor) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  ASSERT_NE(channel, nullptr);
  const int fd = channel->fd;
  std::atomic<int> thread{0};
  std::thread waiter([&] {
    rdma_cm_event* e = nullptr;
    thread = gettid();
    (void)rdma_get_cm_event(channel, &e);
  });
  ASSERT_TRUE(stays([&] { return thread != 0 && reads(thread, fd); }));
  rdma_destroy_event_channel(channel);
  Listening other;
  EXPECT_NE(other.channel->fd, fd) << "the number is not free while somebody waits at it";
  pthread_cancel(waiter.native_handle());
  waiter.join();
}

// The number of a connection comes again after 1024 of the same row. An identifier whose connection is over
// keeps nothing of it: some identifiers are kept, so many come and go that the numbers of those come again,
// and the living connection, which has one of them, outlives them all.
TEST(Id, OfAConnectionThatIsOverEndsNobodyElses) {
  constexpr int kKept = 60;
  Pair p(7115);
  rdma_conn_param ask{};
  ask.qp_num = 0x4711;
  const auto refused = [&] {
    rdma_cm_id* const id = p.client.create();
    sockaddr_in nobody = socket_address(7116);
    if (rdma_resolve_addr(id, nullptr, generic(nobody), 1000) != 0) std::abort();
    p.client.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    if (rdma_resolve_route(id, 1000) != 0) std::abort();
    p.client.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    if (rdma_connect(id, &ask) != 0) std::abort();
    p.client.expect(RDMA_CM_EVENT_REJECTED);
    return id;
  };
  std::vector<rdma_cm_id*> kept;
  for (int i = 0; i < kKept; ++i) kept.push_back(refused());
  for (int i = 0; i < 1024 - kKept / 2 - kKept; ++i) rdma_destroy_id(refused());
  for (int i = 0; i < kKept / 2; ++i) kept.push_back(refused());
  p.establish();
  for (rdma_cm_id* const id : kept) {
    EXPECT_EQ(rdma_disconnect(id), 0);  // nothing is left to do
    EXPECT_EQ(rdma_destroy_id(id), 0);
  }
  EXPECT_EQ(p.server.next(200), nullptr);
  EXPECT_EQ(p.client.next(0), nullptr);
  ASSERT_EQ(rdma_disconnect(p.active), 0);
  p.server.expect(RDMA_CM_EVENT_DISCONNECTED);
}

// A request that nobody looked at goes with its listener, and the end that asked is told.
TEST(Id, ThatListensTurnsAwayWhatItsProgramNeverSaw) {
  Pair p(7104);
  rdma_conn_param ask{};
  ask.retry_count = 7;
  ASSERT_EQ(rdma_connect(p.active, &ask), 0);
  pollfd fd{p.server.channel->fd, POLLIN, 0};
  ASSERT_EQ(poll(&fd, 1, 10'000), 1);
  EXPECT_EQ(rdma_destroy_id(p.listener), 0);
  p.listener = nullptr;
  EXPECT_EQ(p.client.expect(RDMA_CM_EVENT_REJECTED).status, 28);
}

// Somebody who asks and gives up again, for ever, must not fill the channel of a program that does not look.
TEST(Id, ThatListensForgetsRequestsThatWereWithdrawnUnseen) {
  Pair p(7110);
  rdma_conn_param ask{};
  ask.retry_count = 7;
  ASSERT_EQ(rdma_connect(p.active, &ask), 0);
  pollfd fd{p.server.channel->fd, POLLIN, 0};
  ASSERT_EQ(poll(&fd, 1, 10'000), 1);
  rdma_destroy_qp(p.active);
  ASSERT_EQ(rdma_destroy_id(p.active), 0);
  p.active = nullptr;
  for (int i = 0; i < 1000 && poll(&fd, 1, 0) == 1; ++i) usleep(10'000);
  EXPECT_EQ(p.server.next(0), nullptr);
}

TEST(Id, MovesToAnotherChannelWithWhatWaits) {
  Listening from;
  Listening to;
  rdma_cm_id* const id = from.create();
  sockaddr_in at = socket_address(7105);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, generic(at), 100), 0);
  ASSERT_EQ(rdma_migrate_id(id, to.channel), 0);
  EXPECT_EQ(from.next(0), nullptr);
  EXPECT_EQ(to.expect(RDMA_CM_EVENT_ADDR_RESOLVED).id, id);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST(Endpoint, WithoutAChannelWaitsForEachAnswer) {
  socket_address(0);
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_PASSIVE;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* found = nullptr;
  ASSERT_EQ(rdma_getaddrinfo(nullptr, "7106", &hints, &found), 0);
  ibv_qp_init_attr init{};  // its type is that of the address
  init.cap = {4, 4, 1, 1, 0};
  rdma_cm_id* listener = nullptr;
  ASSERT_EQ(rdma_create_ep(&listener, found, nullptr, &init), 0);
  rdma_freeaddrinfo(found);
  ASSERT_EQ(rdma_listen(listener, 0), 0);
  std::thread server([&] {
    rdma_cm_id* id = nullptr;
    ASSERT_EQ(rdma_get_request(listener, &id), 0);
    ASSERT_NE(id->qp, nullptr);
    ASSERT_EQ(rdma_accept(id, nullptr), 0);
    EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
    rdma_disconnect(id);
    rdma_destroy_ep(id);
  });
  hints.ai_flags = 0;
  ASSERT_EQ(rdma_getaddrinfo(own_address().c_str(), "7106", &hints, &found), 0);
  rdma_cm_id* client = nullptr;
  ASSERT_EQ(rdma_create_ep(&client, found, nullptr, &init), 0);
  rdma_freeaddrinfo(found);
  EXPECT_EQ(rdma_connect(client, nullptr), 0);
  server.join();
  rdma_destroy_ep(client);
  rdma_destroy_ep(listener);
}

// Its queue pair is there; nobody was asked yet.
rdma_cm_id* endpoint_towards(const char* port) {
  socket_address(0);
  rdma_addrinfo hints{};
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* found = nullptr;
  EXPECT_EQ(rdma_getaddrinfo(own_address().c_str(), port, &hints, &found), 0);
  ibv_qp_init_attr init{};
  init.cap = {4, 4, 1, 1, 0};
  rdma_cm_id* client = nullptr;
  EXPECT_EQ(rdma_create_ep(&client, found, nullptr, &init), 0);
  rdma_freeaddrinfo(found);
  return client;
}

// It holds the event of its last call, which nobody but the library can acknowledge.
TEST(Endpoint, MayBeGivenAnotherChannelOfItsOwn) {
  rdma_cm_id* const client = endpoint_towards("7112");
  ASSERT_NE(client, nullptr);
  ASSERT_NE(client->event, nullptr);
  alarm(20);
  EXPECT_EQ(rdma_migrate_id(client, nullptr), 0);
  alarm(0);
  EXPECT_EQ(client->event, nullptr);
  EXPECT_EQ(rdma_connect(client, nullptr), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  rdma_destroy_ep(client);
}

// What multicast programs ask for: an address of theirs without one to go to.
TEST(AddressInfo, MayHaveASourceOnly) {
  socket_address(0);
  sockaddr_in group = socket_address(0);
  inet_pton(AF_INET, "239.255.77.4", &group.sin_addr);
  rdma_addrinfo hints{};
  hints.ai_src_addr = generic(group);
  hints.ai_src_len = sizeof group;
  rdma_addrinfo* found = nullptr;
  ASSERT_EQ(rdma_getaddrinfo(nullptr, nullptr, &hints, &found), 0);
  EXPECT_EQ(found->ai_family, AF_INET);
  EXPECT_EQ(found->ai_dst_addr, nullptr);
  ASSERT_EQ(found->ai_src_len, sizeof group);
  EXPECT_EQ(std::memcmp(found->ai_src_addr, &group, sizeof group), 0);
  rdma_freeaddrinfo(found);
  hints.ai_src_addr = nullptr;
  EXPECT_EQ(rdma_getaddrinfo(nullptr, nullptr, &hints, &found), EAI_NONAME);
}

TEST(AddressInfo, RefusesAFamilyThatTheDeviceHasNoAddressOf) {
  socket_address(0);
  rdma_addrinfo hints{};
  hints.ai_port_space = RDMA_PS_TCP;
  for (const int flags : {0, int{RAI_FAMILY}, int{RAI_PASSIVE}, RAI_PASSIVE | RAI_FAMILY}) {
    hints.ai_flags = flags;
    rdma_addrinfo* found = nullptr;
    hints.ai_family = AF_INET6;
    EXPECT_EQ(rdma_getaddrinfo(own_address().c_str(), "7113", &hints, &found), EAI_FAMILY) << flags;
    EXPECT_EQ(found, nullptr);
    for (const int family : {AF_UNSPEC, AF_INET}) {
      hints.ai_family = family;
      ASSERT_EQ(rdma_getaddrinfo(own_address().c_str(), "7113", &hints, &found), 0) << flags;
      EXPECT_EQ(found->ai_family, AF_INET);
      rdma_freeaddrinfo(found);
    }
  }
}

TEST(Endpoint, ThatIsRefusedSaysSo) {
  rdma_cm_id* const client = endpoint_towards("7107");
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(rdma_connect(client, nullptr), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  rdma_destroy_ep(client);
}

TEST(Datagrams, AreLookedUpByPort) {
  Pair p(7108, RDMA_PS_UDP);
  p.request("hello");
  ASSERT_EQ(rdma_accept(p.passive, nullptr), 0);
  rdma_cm_event* const e = p.client.next();
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->event, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(e->param.ud.qp_num, p.passive->qp->qp_num);
  EXPECT_EQ(e->param.ud.qkey, static_cast<unsigned>(RDMA_UDP_QKEY));
  ibv_ah* const ah = ibv_create_ah(p.active->pd, &e->param.ud.ah_attr);
  EXPECT_NE(ah, nullptr);
  if (ah != nullptr) ibv_destroy_ah(ah);
  rdma_ack_cm_event(e);
}

// The server answers whoever wrote, with what the completion and the 40 bytes before the payload tell.
TEST(Datagrams, AreAnsweredFromTheirCompletion) {
  Pair p(7111, RDMA_PS_UDP);
  p.request();
  ASSERT_EQ(rdma_accept(p.passive, nullptr), 0);
  rdma_cm_event* const e = p.client.next();
  ASSERT_NE(e, nullptr);
  ASSERT_EQ(e->event, RDMA_CM_EVENT_ESTABLISHED);
  char memory[256] = "to whom it may concern";
  ibv_mr* const mr = rdma_reg_msgs(p.active, memory, sizeof memory);
  ibv_ah* const there = ibv_create_ah(p.active->pd, &e->param.ud.ah_attr);
  ASSERT_NE(there, nullptr);
  ASSERT_EQ(rdma_post_recv(p.passive, nullptr, memory + 128, 128, mr), 0);
  ASSERT_EQ(
      rdma_post_ud_send(p.active, nullptr, memory, 64, mr, IBV_SEND_SIGNALED, there, e->param.ud.qp_num), 0);
  rdma_ack_cm_event(e);
  ibv_wc wc{};
  alarm(20);
  ASSERT_EQ(rdma_get_recv_comp(p.passive, &wc), 1);
  EXPECT_STREQ(memory + 128 + 40, "to whom it may concern");
  ibv_grh grh;
  std::memcpy(&grh, memory + 128, sizeof grh);
  EXPECT_NE(wc.wc_flags & IBV_WC_GRH, 0U);
  ibv_ah* const back = ibv_create_ah_from_wc(p.passive->pd, &wc, &grh, 1);
  ASSERT_NE(back, nullptr) << std::strerror(errno);
  ASSERT_EQ(rdma_post_recv(p.active, nullptr, memory, 128, mr), 0);
  ASSERT_EQ(rdma_post_ud_send(p.passive, nullptr, memory + 128 + 40, 64, mr, 0, back, wc.src_qp), 0);
  ASSERT_EQ(rdma_get_recv_comp(p.active, &wc), 1);
  alarm(0);
  EXPECT_STREQ(memory + 40, "to whom it may concern");
  ibv_destroy_ah(back);
  ibv_destroy_ah(there);
  ibv_dereg_mr(mr);
}

// rdma_destroy_qp() cannot fail, whatever the program has done to its queue pair by itself.
TEST(Datagrams, EndWithTheirQueuePairThoughItIsInAGroup) {
  Pair p(7114, RDMA_PS_UDP);
  rdma_destroy_qp(p.active);
  ibv_pd* const domain = ibv_alloc_pd(p.active->verbs);
  ibv_qp_init_attr init{};
  init.cap = {8, 8, 1, 1, 0};
  init.qp_type = IBV_QPT_UD;
  ASSERT_EQ(rdma_create_qp(p.active, domain, &init), 0);
  ibv_gid group{};
  const std::uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 239, 99, 1, 1};
  std::memcpy(group.raw, mapped, sizeof mapped);
  ASSERT_EQ(ibv_attach_mcast(p.active->qp, &group, 0), 0);
  rdma_destroy_qp(p.active);
  EXPECT_EQ(ibv_dealloc_pd(domain), 0);
}

TEST(Datagrams, ThatNobodyServesAreUnreachable) {
  Pair p(7109, RDMA_PS_UDP);
  ASSERT_EQ(rdma_destroy_id(p.listener), 0);
  p.listener = nullptr;
  rdma_conn_param ask{};
  ASSERT_EQ(rdma_connect(p.active, &ask), 0);
  EXPECT_EQ(p.client.expect(RDMA_CM_EVENT_UNREACHABLE).status, 1);
}

}  // namespace
}  // namespace weft::live::rdmacm
