// Completion queues as programs size them.
#include <gtest/gtest.h>

#include <cerrno>

#include "live/abi/program.h"

namespace weft::live::abi {
namespace {

// Posts `count` datagrams of one byte to nobody's queue pair.
void send_datagrams(const Program& p, ibv_qp* qp, int count) {
  ibv_sge piece{reinterpret_cast<std::uint64_t>(p.memory.data()), 1, p.mr->lkey};
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.wr.ud = {p.ah, qp->qp_num + 1, 7};
  for (int i = 0; i < count; ++i) {
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
  }
}

ibv_qp* datagrams(const Program& p, ibv_cq* cq) {
  ibv_qp_init_attr init = p.plain(IBV_QPT_UD);
  init.send_cq = init.recv_cq = cq;
  init.cap.max_send_wr = 16;
  ibv_qp* const qp = ibv_create_qp(p.pd, &init);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qkey = 7;
  EXPECT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
  a.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
  a.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  return qp;
}

// Datagrams are complete when they leave, and these may leave at once: nobody has polled, and the queue
// counts all of them.
TEST(CompletionQueues, DoNotShrinkBelowWhatWasPostedAndMayLeave) {
  Program p;
  ibv_cq* const cq = ibv_create_cq(p.context, 16, nullptr, nullptr, 0);
  ibv_qp* const qp = datagrams(p, cq);
  send_datagrams(p, qp, 8);
  EXPECT_EQ(ibv_resize_cq(cq, 7), EINVAL);
  EXPECT_EQ(ibv_resize_cq(cq, 8), 0);
  ibv_wc wc[16];
  int got = 0;
  while (got < 8) got += ibv_poll_cq(cq, 16, wc);
  EXPECT_EQ(ibv_resize_cq(cq, 1), 0);
}

// One that asks for a single entry gets two: its next completion may come before it has polled the first.
TEST(CompletionQueues, HaveRoomForOneMoreThanTheSmallestProgramAsksFor) {
  Program p;
  ibv_cq* const cq = ibv_create_cq(p.context, 1, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(cq->cqe, 2);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

}  // namespace
}  // namespace weft::live::abi
