// Groups over real sockets: every host's members get a copy, a program that sleeps is woken, and nothing but
// datagrams comes in by this door.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "core/wire/mad.h"
#include "live/engine/nic_state.h"
#include "live/engine/sleepers.h"
#include "live/engine/two_ends.h"
#include "live/wires/pack.h"
#include "live/wires/sockets.h"

namespace weft::live {
namespace {

constexpr std::uint16_t kPort = 4791;
constexpr std::uint32_t kQkey = 0x1234;
constexpr std::uint32_t kGrh = 40;

// Of this process's own.
wire::Address group() {
  const auto pid = static_cast<std::uint32_t>(getpid());
  return wire::Address::v4(239, 99, static_cast<std::uint8_t>(pid >> 8U), static_cast<std::uint8_t>(pid));
}

Qp* datagrams(const End& end) {
  QpInit init;
  init.type = QpType::kUd;
  init.pd = end.pd;
  init.send_cq = init.recv_cq = end.cq->id;
  init.caps = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1, .max_inline = 0};
  Qp* const qp = *end.context->create_qp(init, nullptr);
  QpAttr attr;
  attr.qkey = kQkey;
  CHECK(climb(QpType::kUd, attr, [&](const QpAttr& a, std::uint32_t mask) {
    return end.context->modify_qp(qp, a, mask).has_value();
  }));
  return qp;
}
void receive(const End& end, Qp* qp, std::uint64_t id, std::size_t offset) {
  const Sge sge = end.piece(offset, 1024);
  Posting posting(*end.context, qp);
  CHECK(posting.receive({id, {&sge, 1}}).has_value());
}
void send(const End& end, Qp* qp, std::uint32_t length, std::uint8_t flags = 0) {
  const auto ah = end.context->create_ah(end.pd, {group()});
  CHECK(ah.has_value());
  const Sge sge = end.piece(0, length);
  SendWr wr;
  wr.sges = {&sge, 1};
  wr.ah = *ah;
  wr.remote_qpn = wire::kEveryMember;
  wr.remote_qkey = kQkey;
  wr.flags = flags;
  Posting posting(*end.context, qp);
  CHECK(posting.send(wr).has_value());
}
// The completions that come while there are any, and a little longer.
std::vector<Completion> all(End& end) {
  std::vector<Completion> got;
  const auto until = SteadyClock::now() + std::chrono::milliseconds(50);
  while (SteadyClock::now() < until) {
    Completion c[16];
    const std::uint32_t n = end.context->poll_cq(end.cq, c);
    got.insert(got.end(), c, c + n);
  }
  return got;
}

TEST(Groups, ReachTheMembersOfEveryHost) {
  End a(11);
  End b(12);
  Qp* const sender = datagrams(a);
  Qp* const first = datagrams(b);
  Qp* const second = datagrams(b);
  Qp* const outsider = datagrams(b);
  std::size_t at = 4096;
  for (Qp* qp : {first, second, outsider}) receive(b, qp, qp->qpn.v, at += 4096);
  receive(a, sender, sender->qpn.v, 4096);
  for (Qp* qp : {first, second}) ASSERT_TRUE(b.context->attach(qp, group()));
  ASSERT_TRUE(a.context->attach(sender, group()));
  a.fill(0, 900, 3);
  send(a, sender, 900);
  const auto got = b.wait(2);
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].wr_id, first->qpn.v);
  EXPECT_EQ(got[1].wr_id, second->qpn.v);
  for (const std::size_t place : {8192U, 12288U})
    EXPECT_EQ(std::memcmp(&b.memory[place + kGrh], a.memory.data(), 900), 0);
  EXPECT_TRUE(all(b).empty()) << "the third is no member";
  EXPECT_EQ(a.wait(1).size(), 1U) << "the sender is";
}

// Its own copy found no receive before the request was complete, and does not come again later.
TEST(Groups, ASendersOwnCopyComesBeforeItsRequestIsComplete) {
  End a(18);
  Qp* const sender = datagrams(a);
  ASSERT_TRUE(a.context->attach(sender, group()));
  for (int i = 0; i < 20; ++i) {
    send(a, sender, 100, kSendSignaled);
    ASSERT_EQ(a.wait(1).size(), 1U);
  }
  receive(a, sender, 1, 4096);
  EXPECT_TRUE(all(a).empty());
  send(a, sender, 100, kSendSignaled);
  EXPECT_EQ(a.wait(2).size(), 2U);
}

TEST(Groups, WakeAProgramThatSleeps) {
  End a(13);
  CompletionChannel* channel = nullptr;
  End b(14, {}, &channel);
  Qp* const sender = datagrams(a);
  Qp* const member = datagrams(b);
  receive(b, member, 1, 4096);
  ASSERT_TRUE(b.context->request_notify(b.cq, false));
  ASSERT_TRUE(stays(others_asleep));  // nobody looks any more
  ASSERT_TRUE(b.context->attach(member, group()));
  ASSERT_TRUE(stays(others_asleep));
  send(a, sender, 10);
  pollfd ready{b.context->channel_fd(channel), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 5000), 1);
  EXPECT_EQ(b.wait(1).size(), 1U);
  Cq* const told = b.context->get_cq_event(channel);
  EXPECT_EQ(told, b.cq);
  b.context->ack_cq_events(b.cq, 1);
}

// Somebody on the network, with a soft NIC's port.
struct Stranger {
  explicit Stranger(const wire::Address& own) : fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    facts.own.first = own;
    facts.port = kPort;
    facts.mtu = 1500;
    const SocketAddress at = to_sockaddr(own, kPort);
    CHECK(bind(fd, at.generic(), at.size()) == 0);
    set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
    ip_mreqn by{};
    by.imr_address = at.v4.sin_addr;
    CHECK(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof by) == 0);
  }
  ~Stranger() { close(fd); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void say(std::span<const std::uint8_t> bytes) const {
    const SocketAddress to = to_sockaddr(group(), kPort);
    CHECK(sendto(fd, bytes.data(), bytes.size(), 0, to.generic(), to.size()) ==
          static_cast<ssize_t>(bytes.size()));
  }
  void say(const wire::Header& header, std::uint32_t length) const {
    static constexpr std::array<std::uint8_t, 512> kBytes{};
    Packer packer(facts, true);
    const Piece piece{kBytes.data(), length};
    CHECK(packer.append(group(), header, {&piece, 1}, length));
    say(packer.train().bytes);
  }
  WireFacts facts;
  int fd;
};

TEST(Groups, TakeNothingButDatagramsForTheirMembers) {
  End a(15);
  Qp* const member = datagrams(a);
  Qp* const outsider = datagrams(a);
  QpAttr connected;
  connected.mtu = 1024;
  connected.dest_qpn = a.qp->qpn;
  connected.access = kRemoteWrite;
  a.to_rts(connected, host(16));
  ASSERT_TRUE(a.context->attach(member, group()));
  for (std::uint64_t i = 0; i < 4; ++i) {
    receive(a, member, 1, 4096 + 2048 * i);
    receive(a, outsider, 2, 16384);
    a.post_receive(3, 20480, 1024);
  }
  const std::vector<std::uint8_t> before = a.memory;
  const Stranger peer(host(16));

  wire::Header h;
  h.opcode = wire::kUdSendOnly;
  h.set_deth(kQkey, Qpn{77});
  for (const Qpn to : {outsider->qpn, member->qpn, a.qp->qpn}) {
    h.dest_qp = to;
    peer.say(h, 64);
  }
  wire::Header connection;
  connection.opcode = wire::kSendOnly;
  for (const Qpn to : {a.qp->qpn, member->qpn, wire::kEveryMember}) {
    connection.dest_qp = to;
    peer.say(connection, 64);
  }
  peer.say(wire::mad_packet({}), wire::kMadBytes);
  std::array<std::uint8_t, 300> noise{};
  for (std::size_t n = 0; n < noise.size(); n += 37) peer.say(std::span(noise).first(n));
  h.dest_qp = wire::kEveryMember;
  h.set_deth(kQkey + 1, Qpn{77});
  peer.say(h, 64);
  EXPECT_TRUE(all(a).empty());
  EXPECT_EQ(a.memory, before);
  EXPECT_EQ(a.context->query_qp(a.qp)->state, QpState::kRts);
  EXPECT_GE(a.nic->shard().wire_counters().rx_group, 6U);

  h.set_deth(kQkey, Qpn{77});
  peer.say(h, 64);
  const auto got = a.wait(1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].wr_id, 1U);
  EXPECT_EQ(got[0].src_qp, Qpn{77});
}

// A context that closes takes its queue pairs out of their groups.
TEST(Groups, EndWithTheirLastMember) {
  End a(17);
  Qp* const sender = datagrams(a);
  {
    const auto other = *Context::open(a.nic);
    const PdId pd = *other->alloc_pd();
    Cq* const cq = *other->create_cq(4, nullptr, nullptr);
    QpInit init;
    init.type = QpType::kUd;
    init.pd = pd;
    init.send_cq = init.recv_cq = cq->id;
    Qp* const qp = *other->create_qp(init, nullptr);
    ASSERT_TRUE(other->attach(qp, group()));
    EXPECT_EQ(other->destroy_qp(qp).error(), Errc::kBusy);
    EXPECT_EQ(a.nic->shard().memberships().members_of(group()).size(), 1U);
  }
  EXPECT_TRUE(a.nic->shard().memberships().members_of(group()).empty());
  EXPECT_EQ(a.context->attach(a.qp, group()).error(), Errc::kInvalid) << "a connection is in no group";
  EXPECT_EQ(a.context->detach(sender, group()).error(), Errc::kInvalid);
  EXPECT_TRUE(a.context->attach(sender, group()));
  EXPECT_TRUE(a.context->detach(sender, group()));
}

}  // namespace
}  // namespace weft::live
