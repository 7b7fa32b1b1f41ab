// Groups joined through rdma_join_multicast(3): the event says where datagrams to the group go, the queue
// pair of the identifier gets those of others, and leaving ends it.
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "live/rdmacm/party.h"

namespace weft::live::rdmacm {
namespace {

constexpr std::uint32_t kGrh = 40;

// A group of this process's own.
sockaddr_in group_address(unsigned char which = 1) {
  sockaddr_in a = socket_address(7000);
  const auto pid = static_cast<unsigned>(getpid());
  const unsigned char bytes[4] = {239, static_cast<unsigned char>(100 + which),
                                  static_cast<unsigned char>(pid >> 8U), static_cast<unsigned char>(pid)};
  std::memcpy(&a.sin_addr, bytes, sizeof bytes);
  return a;
}

struct Member {
  explicit Member(bool with_queue_pair = true) : id(channel.create(RDMA_PS_UDP)), memory(4096) {
    sockaddr_in to = group_address();
    if (rdma_resolve_addr(id, nullptr, generic(to), 1000) != 0) std::abort();
    channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    if (with_queue_pair) make();
  }
  ~Member() {
    if (ah != nullptr) ibv_destroy_ah(ah);
    if (mr != nullptr) ibv_dereg_mr(mr);
    rdma_destroy_qp(id);
    rdma_destroy_id(id);
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  void make() {
    if (make_queue_pair(id, IBV_QPT_UD) != 0) std::abort();
    mr = ibv_reg_mr(id->pd, memory.data(), memory.size(), int{IBV_ACCESS_LOCAL_WRITE});
    if (mr == nullptr) std::abort();
  }
  // With what the event tells, datagrams can be sent.
  void joined(const void* context) {
    rdma_cm_event* const e = channel.next();
    ASSERT_NE(e, nullptr);
    EXPECT_EQ(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
    EXPECT_EQ(e->status, 0);
    rdma_ud_param& p = e->param.ud;
    EXPECT_EQ(p.private_data, context);
    EXPECT_EQ(p.qp_num, 0xFFFFFFU);
    EXPECT_EQ(p.qkey, std::uint32_t{RDMA_UDP_QKEY});
    const sockaddr_in at = group_address();
    EXPECT_EQ(std::memcmp(&p.ah_attr.grh.dgid.raw[12], &at.sin_addr, 4), 0);
    if (id->pd != nullptr) ah = ibv_create_ah(id->pd, &p.ah_attr);
    qkey = p.qkey;
    rdma_ack_cm_event(e);
  }
  void receive() {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(memory.data()), 1024, mr->lkey};
    ibv_recv_wr wr{1, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(id->qp, &wr, &bad), 0);
  }
  void send(const char* word) {
    std::strcpy(&memory[2048], word);
    ibv_sge sge{reinterpret_cast<std::uint64_t>(&memory[2048]),
                static_cast<std::uint32_t>(std::strlen(word) + 1), mr->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud = {ah, 0xFFFFFF, qkey};
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(id->qp, &wr, &bad), 0);
    EXPECT_EQ(next(id->send_cq, 5'000'000).status, IBV_WC_SUCCESS);
  }
  // What the next datagram says; "" if none comes.
  std::string heard(long tries = 5'000'000) {
    const ibv_wc wc = next(id->recv_cq, tries);
    return wc.wr_id == 1 && wc.status == IBV_WC_SUCCESS ? &memory[kGrh] : "";
  }
  static ibv_wc next(ibv_cq* cq, long tries) {
    ibv_wc wc{};
    for (; tries > 0 && ibv_poll_cq(cq, 1, &wc) == 0; --tries) {
    }
    return wc;
  }

  Listening channel;
  rdma_cm_id* id;
  std::vector<char> memory;
  ibv_mr* mr = nullptr;
  ibv_ah* ah = nullptr;
  std::uint32_t qkey = 0;
};

int join(rdma_cm_id* id, sockaddr_in at, void* context = nullptr) {
  return rdma_join_multicast(id, generic(at), context);
}
int leave(rdma_cm_id* id, sockaddr_in at) { return rdma_leave_multicast(id, generic(at)); }
int join_to_send(rdma_cm_id* id, sockaddr_in at,
                 std::uint32_t flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) {
  rdma_cm_join_mc_attr_ex attr{};
  attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  attr.join_flags = flags;
  attr.addr = generic(at);
  return rdma_join_multicast_ex(id, &attr, nullptr);
}

TEST(Multicast, ReachesThoseWhoJoinedUntilTheyLeave) {
  Member sender;
  Member member;
  Member outsider;
  ASSERT_EQ(join(sender.id, group_address(), &sender), 0);
  sender.joined(&sender);
  ASSERT_EQ(join(member.id, group_address()), 0);
  member.joined(nullptr);
  for (Member* m : {&member, &outsider}) m->receive();
  sender.send("to all");
  EXPECT_EQ(member.heard(), "to all");
  EXPECT_EQ(outsider.heard(10'000), "");
  ASSERT_EQ(leave(member.id, group_address()), 0);
  ASSERT_EQ(join(outsider.id, group_address()), 0);
  outsider.joined(nullptr);
  member.receive();
  sender.send("to others");
  EXPECT_EQ(outsider.heard(), "to others");
  EXPECT_EQ(member.heard(10'000), "");
}

TEST(Multicast, ASenderNeedNotBeAReceiver) {
  Member sender;
  Member member;
  ASSERT_EQ(join_to_send(sender.id, group_address()), 0);
  sender.joined(nullptr);
  ASSERT_EQ(join(member.id, group_address()), 0);
  member.joined(nullptr);
  sender.receive();
  member.receive();
  sender.send("not to me");
  EXPECT_EQ(member.heard(), "not to me");
  EXPECT_EQ(sender.heard(10'000), "");
}

TEST(Multicast, AQueuePairMadeLaterIsInTheGroupsOfItsIdentifier) {
  Member sender;
  Member late(false);
  ASSERT_EQ(join(late.id, group_address()), 0);
  late.joined(nullptr);
  late.make();
  late.receive();
  ASSERT_EQ(join_to_send(sender.id, group_address()), 0);
  sender.joined(nullptr);
  sender.send("late");
  EXPECT_EQ(late.heard(), "late");
}

// A queue pair that is in a group cannot be destroyed by ibv_destroy_qp; rdma_destroy_qp takes it out first.
TEST(Multicast, EndsWithTheQueuePair) {
  Member m;
  ASSERT_EQ(join(m.id, group_address()), 0);
  m.joined(nullptr);
  EXPECT_EQ(ibv_destroy_qp(m.id->qp), EBUSY);
  rdma_destroy_qp(m.id);
  EXPECT_EQ(m.id->qp, nullptr);
  EXPECT_EQ(leave(m.id, group_address()), 0);
}

TEST(Multicast, AnEventThatNobodySawIsWithdrawnByLeaving) {
  Member m;
  ASSERT_EQ(join(m.id, group_address()), 0);
  ASSERT_EQ(leave(m.id, group_address()), 0);
  EXPECT_EQ(m.channel.next(0), nullptr);
}

TEST(Multicast, IsRefusedWhereItMeansNothing) {
  Member m;
  Listening l;
  rdma_cm_id* const stream = l.create(RDMA_PS_TCP);
  rdma_cm_id* const nowhere = l.create(RDMA_PS_UDP);
  const auto refused = [](int answer, int why) {
    EXPECT_EQ(answer, -1);
    EXPECT_EQ(errno, why);
    errno = 0;
  };
  refused(join(stream, group_address()), EINVAL);
  refused(join(nowhere, group_address()), EINVAL);  // it has no device yet
  refused(rdma_join_multicast(m.id, nullptr, nullptr), EINVAL);
  refused(join(m.id, socket_address(7000)), EINVAL);  // a host
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  inet_pton(AF_INET6, "ff05::77", &six.sin6_addr);
  refused(rdma_join_multicast(m.id, reinterpret_cast<sockaddr*>(&six), nullptr), EAFNOSUPPORT);
  refused(join_to_send(m.id, group_address(), 2), EINVAL);
  rdma_cm_join_mc_attr_ex incomplete{};
  incomplete.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
  refused(rdma_join_multicast_ex(m.id, &incomplete, nullptr), EINVAL);
  refused(leave(m.id, group_address()), EADDRNOTAVAIL);
  ASSERT_EQ(join(m.id, group_address()), 0);
  refused(join(m.id, group_address()), EADDRINUSE);
  refused(leave(m.id, group_address(2)), EADDRNOTAVAIL);
  EXPECT_EQ(rdma_destroy_id(stream), 0);
  EXPECT_EQ(rdma_destroy_id(nowhere), 0);
}

}  // namespace
}  // namespace weft::live::rdmacm
