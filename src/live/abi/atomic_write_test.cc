// ATOMIC WRITE: eight bytes, by either way to post it. What it waits for is in
// core/transport/rc/verbs_test.cc.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "live/abi/program.h"

namespace weft::live::abi {
namespace {

struct AtomicWriteTest : ::testing::Test {
  AtomicWriteTest()
      : mr(ibv_reg_mr(p.pd, p.memory.data(), p.memory.size(),
                      int{IBV_ACCESS_LOCAL_WRITE} | int{IBV_ACCESS_REMOTE_WRITE})),
        at((reinterpret_cast<std::uint64_t>(p.memory.data()) + 7) / 8 * 8) {}
  std::uint64_t word(std::uint64_t address) const {
    std::uint64_t w = 0;
    std::memcpy(&w, reinterpret_cast<const void*>(address), sizeof w);
    return w;
  }
  Program p;
  ibv_mr* mr;
  std::uint64_t at;
};

// The queue pair has room for the word, though its program asked for none.
TEST_F(AtomicWriteTest, TakesItsWordWhenItIsBuilt) {
  ibv_qp_ex* const qp = p.talking_to_itself(IBV_QP_EX_WITH_ATOMIC_WRITE);
  ASSERT_NE(qp, nullptr);
  std::uint64_t value = 0x1122334455667788;
  ibv_wr_start(qp);
  qp->wr_id = 5;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_atomic_write(qp, mr->rkey, at + 64, &value);
  value = 0;
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  const ibv_wc wc = p.next_completion(p.cq);
  EXPECT_EQ(wc.wr_id, 5U);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_ATOMIC_WRITE);
  EXPECT_EQ(word(at + 64), 0x1122334455667788U);

  ibv_wr_start(qp);
  ibv_wr_atomic_write(qp, mr->rkey, at + 68, &value);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL) << "an address that is not aligned";
}

TEST_F(AtomicWriteTest, IsPostedAsARequest) {
  ibv_qp* const qp = p.talking_to_itself(p.pd, p.cq);
  const std::uint64_t value = 77;
  std::memcpy(reinterpret_cast<void*>(at), &value, sizeof value);
  ibv_sge piece{at, 8, mr->lkey};
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_ATOMIC_WRITE;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.wr.rdma = {at + 128, mr->rkey};
  const ibv_wc wc = p.complete(qp, wr);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_ATOMIC_WRITE);
  EXPECT_EQ(word(at + 128), 77U);
  piece.length = 4;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(qp, &wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wr);
}

// Unconnected services have none.
TEST_F(AtomicWriteTest, IsOfReliableConnections) {
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD}) {
    ibv_qp_init_attr_ex init{};
    init.send_cq = init.recv_cq = p.cq;
    init.cap = {4, 4, 1, 1, 0};
    init.qp_type = type;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = p.pd;
    init.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE;
    errno = 0;
    EXPECT_EQ(ibv_create_qp_ex(p.context, &init), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
}

}  // namespace
}  // namespace weft::live::abi
