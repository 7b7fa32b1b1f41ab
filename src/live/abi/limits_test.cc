// What ibv_query_device and ibv_query_port say can be reached, and not passed: the first object or size
// beyond is refused, and one that goes makes room for another.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "live/abi/program.h"

namespace weft::live::abi {
namespace {

// Nothing exists on it but a protection domain.
struct LimitsTest : ::testing::Test {
  LimitsTest() : context(open_first()), pd(ibv_alloc_pd(context)), memory(8192) {
    EXPECT_EQ(ibv_query_device(context, &device), 0);
    EXPECT_EQ(ibv_query_port(context, 1, &port), 0);
  }
  ~LimitsTest() override { ibv_close_device(context); }
  LimitsTest(const LimitsTest&) = delete;
  LimitsTest& operator=(const LimitsTest&) = delete;

  template <class Make, class Unmake>
  void expect_as_many(int limit, const Make& make, const Unmake& unmake) {
    decltype(make()) last = nullptr;
    ASSERT_GT(limit, 0);
    for (int i = 0; i < limit; ++i) {
      last = make();
      ASSERT_NE(last, nullptr) << "number " << i + 1 << " of " << limit << ": " << std::strerror(errno);
    }
    errno = 0;
    ASSERT_EQ(make(), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(unmake(last), 0);
    EXPECT_NE(make(), nullptr);
  }
  // What is too large is refused as it is asked for, whatever memory there is.
  static void expect_refused(const void* answer) {
    EXPECT_EQ(answer, nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
  ibv_cq* queue(int entries = 1) const { return ibv_create_cq(context, entries, nullptr, nullptr, 0); }
  ibv_qp* queue_pair(ibv_cq* cq, const ibv_qp_cap& cap, ibv_qp_type type = IBV_QPT_RC) const {
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq;
    a.cap = cap;
    a.qp_type = type;
    return ibv_create_qp(pd, &a);
  }
  ibv_srq* shared(std::uint32_t entries, std::uint32_t pieces) const {
    ibv_srq_init_attr a{};
    a.attr = {entries, pieces, 0};
    return ibv_create_srq(pd, &a);
  }
  static int modify(ibv_qp* qp, ibv_qp_state state, int mask, ibv_qp_attr a) {
    a.qp_state = state;
    return ibv_modify_qp(qp, &a, IBV_QP_STATE | mask);
  }
  // To RTR towards ourselves.
  int to_receive(ibv_qp* qp, int reads, std::uint32_t mtu_code) const {
    ibv_qp_attr a{};
    a.port_num = 1;
    EXPECT_EQ(modify(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, a), 0);
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    EXPECT_EQ(ibv_query_gid(context, 1, 0, &a.ah_attr.grh.dgid), 0);
    std::memcpy(&a.path_mtu, &mtu_code, sizeof mtu_code);
    a.dest_qp_num = qp->qp_num;
    a.max_dest_rd_atomic = static_cast<std::uint8_t>(reads);
    return modify(qp, IBV_QPS_RTR,
                  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                      IBV_QP_MIN_RNR_TIMER,
                  a);
  }

  ibv_context* context;
  ibv_pd* pd;
  std::vector<char> memory;
  ibv_device_attr device{};
  ibv_port_attr port{};
};

TEST_F(LimitsTest, ThereAreAsManyDomainsAsTheDeviceSays) {
  expect_as_many(
      device.max_pd - 1, [&] { return ibv_alloc_pd(context); }, ibv_dealloc_pd);  // one is there
}

TEST_F(LimitsTest, ThereAreAsManyRegionsAsTheDeviceSays) {
  expect_as_many(
      device.max_mr, [&] { return ibv_reg_mr(pd, memory.data(), memory.size(), 0); }, ibv_dereg_mr);
}

TEST_F(LimitsTest, ThereAreAsManyWindowsAsTheDeviceSays) {
  expect_as_many(
      device.max_mw, [&] { return ibv_alloc_mw(pd, IBV_MW_TYPE_2); },
      [](ibv_mw* w) { return ibv_dealloc_mw(w); });
}

TEST_F(LimitsTest, ThereAreAsManyCompletionQueuesAsTheDeviceSays) {
  expect_as_many(
      device.max_cq, [&] { return queue(); }, ibv_destroy_cq);
}

TEST_F(LimitsTest, ThereAreAsManyQueuePairsAsTheDeviceSays) {
  ibv_cq* const cq = queue();
  expect_as_many(
      device.max_qp,
      [&] {
        return queue_pair(cq, {1, 1, 1, 1, 0});
      },
      ibv_destroy_qp);
}

TEST_F(LimitsTest, ThereAreAsManySharedReceiveQueuesAsTheDeviceSays) {
  expect_as_many(
      device.max_srq, [&] { return shared(1, 1); }, ibv_destroy_srq);
}

TEST_F(LimitsTest, ThereAreAsManyAddressHandlesAsTheDeviceSays) {
  ibv_ah_attr to{};
  to.is_global = 1;
  to.port_num = 1;
  ASSERT_EQ(ibv_query_gid(context, 1, 0, &to.grh.dgid), 0);
  expect_as_many(
      device.max_ah, [&] { return ibv_create_ah(pd, &to); }, ibv_destroy_ah);
}

TEST_F(LimitsTest, ThereAreAsManyGroupsAndMembersAsTheDeviceSays) {
  ibv_cq* const cq = queue();
  const auto fresh = [&] { return queue_pair(cq, {1, 1, 1, 1, 0}, IBV_QPT_UD); };
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xFF;
  gid.raw[12] = 239;
  const auto group = [&](int i) {
    gid.raw[15] = static_cast<std::uint8_t>(i);
    return &gid;
  };
  ibv_qp* last = nullptr;
  for (int i = 0; i < device.max_mcast_qp_attach; ++i) {
    last = fresh();
    ASSERT_EQ(ibv_attach_mcast(last, group(0), 0), 0) << i;
  }
  EXPECT_EQ(ibv_attach_mcast(fresh(), group(0), 0), ENOMEM);
  EXPECT_EQ(ibv_detach_mcast(last, group(0), 0), 0);
  EXPECT_EQ(ibv_attach_mcast(fresh(), group(0), 0), 0);
  for (int i = 1; i < device.max_mcast_grp; ++i) ASSERT_EQ(ibv_attach_mcast(last, group(i), 0), 0) << i;
  EXPECT_EQ(ibv_attach_mcast(last, group(device.max_mcast_grp), 0), ENOMEM);
  EXPECT_EQ(device.max_total_mcast_qp_attach, device.max_mcast_grp * device.max_mcast_qp_attach);
}

TEST_F(LimitsTest, QueuesAreAsLongAsTheDeviceSays) {
  ibv_cq* const cq = queue(device.max_cqe);
  ASSERT_NE(cq, nullptr);
  EXPECT_GE(cq->cqe, device.max_cqe);
  expect_refused(queue(device.max_cqe + 1));
  const auto most = static_cast<std::uint32_t>(device.max_qp_wr);
  const auto pieces = static_cast<std::uint32_t>(device.max_sge);
  ibv_qp* const qp = queue_pair(cq, {most, most, pieces, pieces, 0});
  ASSERT_NE(qp, nullptr);
  expect_refused(queue_pair(cq, {most + 1, most, pieces, pieces, 0}));
  expect_refused(queue_pair(cq, {most, most + 1, pieces, pieces, 0}));
  expect_refused(queue_pair(cq, {most, most, pieces + 1, pieces, 0}));
  expect_refused(queue_pair(cq, {most, most, pieces, pieces + 1, 0}));
  const auto most_shared = static_cast<std::uint32_t>(device.max_srq_wr);
  const auto pieces_shared = static_cast<std::uint32_t>(device.max_srq_sge);
  EXPECT_NE(shared(most_shared, pieces_shared), nullptr);
  expect_refused(shared(most_shared + 1, pieces_shared));
  expect_refused(shared(most_shared, pieces_shared + 1));
  // All of it can be used: receives of all pieces, until the queue is full.
  ibv_qp_attr a{};
  a.port_num = 1;
  ASSERT_EQ(modify(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, a), 0);
  std::vector<ibv_sge> list(pieces);
  ibv_recv_wr wr{0, nullptr, list.data(), device.max_sge};
  ibv_recv_wr* bad = nullptr;
  for (std::uint32_t i = 0; i < most; ++i) ASSERT_EQ(ibv_post_recv(qp, &wr, &bad), 0) << i;
  EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), ENOMEM);
}

TEST_F(LimitsTest, ReadsAndTheMtuReachWhatIsSaid) {
  ibv_cq* const cq = queue();
  const auto fresh = [&] { return queue_pair(cq, {1, 1, 1, 1, 0}); };
  ibv_qp* const qp = fresh();
  ASSERT_EQ(to_receive(qp, device.max_qp_rd_atom, port.active_mtu), 0);
  EXPECT_EQ(to_receive(fresh(), device.max_qp_rd_atom + 1, port.active_mtu), EINVAL);
  EXPECT_EQ(to_receive(fresh(), 1, static_cast<std::uint32_t>(port.active_mtu) + 1), EINVAL);
  ibv_qp_attr a{};
  a.timeout = 14;
  const int mask =
      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  a.max_rd_atomic = static_cast<std::uint8_t>(device.max_qp_init_rd_atom + 1);
  EXPECT_EQ(modify(qp, IBV_QPS_RTS, mask, a), EINVAL);
  a.max_rd_atomic = static_cast<std::uint8_t>(device.max_qp_init_rd_atom);
  EXPECT_EQ(modify(qp, IBV_QPS_RTS, mask, a), 0);
  EXPECT_EQ(device.max_res_rd_atom, device.max_qp * device.max_qp_rd_atom);
}

// A queue pair in error takes every request that is one, and flushes it.
TEST_F(LimitsTest, AMessageIsAsLongAsThePortSays) {
  ibv_cq* const cq = queue(4);
  ibv_qp* const qp = queue_pair(cq, {1, 1, 2, 1, 0});
  ibv_qp_attr a{};
  a.port_num = 1;
  ASSERT_EQ(modify(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, a), 0);
  ASSERT_EQ(modify(qp, IBV_QPS_ERR, 0, a), 0);
  ibv_sge halves[2]{};
  halves[0].length = halves[1].length = port.max_msg_sz / 2;
  ibv_send_wr wr{};
  wr.sg_list = halves;
  wr.num_sge = 2;
  wr.opcode = IBV_WR_RDMA_WRITE;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(qp, &wr, &bad), 0);
  ++halves[1].length;
  EXPECT_EQ(ibv_post_send(qp, &wr, &bad), EINVAL);
}

TEST_F(LimitsTest, TablesAreAsLongAsTheyAreSaidToBe) {
  EXPECT_EQ(device.phys_port_cnt, 1);
  EXPECT_NE(ibv_query_port(context, static_cast<std::uint8_t>(device.phys_port_cnt + 1), &port), 0);
  ibv_gid gid{};
  __be16 key = 0;
  for (int i = 0; i < port.gid_tbl_len; ++i) EXPECT_EQ(ibv_query_gid(context, 1, i, &gid), 0);
  EXPECT_EQ(ibv_query_gid(context, 1, port.gid_tbl_len, &gid), -1);
  EXPECT_EQ(device.max_pkeys, port.pkey_tbl_len);
  for (int i = 0; i < port.pkey_tbl_len; ++i) EXPECT_EQ(ibv_query_pkey(context, 1, i, &key), 0);
  EXPECT_EQ(ibv_query_pkey(context, 1, port.pkey_tbl_len, &key), -1);
  EXPECT_EQ(ibv_create_cq(context, 1, nullptr, nullptr, context->num_comp_vectors), nullptr);
  EXPECT_EQ(ibv_reg_mr_iova(pd, memory.data(), device.max_mr_size, 0, 0), nullptr);  // nobody has that much
}

}  // namespace
}  // namespace weft::live::abi
