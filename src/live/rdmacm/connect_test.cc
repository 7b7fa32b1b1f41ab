// Connections as programs see them: events in order, private data, refusals, endings.
#include <gtest/gtest.h>

#include "live/rdmacm/party.h"

namespace weft::live::rdmacm {
namespace {

ibv_qp_attr attributes_of(ibv_qp* qp) {
  ibv_qp_attr a{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(qp, &a, IBV_QP_STATE, &init), 0);
  return a;
}

TEST(Connection, BringsBothQueuePairsUpAndCarriesAMessage) {
  Pair p(7001);
  p.establish();
  const ibv_qp_attr a = attributes_of(p.active->qp);
  const ibv_qp_attr b = attributes_of(p.passive->qp);
  EXPECT_EQ(a.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(b.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(a.dest_qp_num, p.passive->qp->qp_num);
  EXPECT_EQ(b.dest_qp_num, p.active->qp->qp_num);
  EXPECT_EQ(a.sq_psn, b.rq_psn);
  EXPECT_EQ(a.rq_psn, b.sq_psn);
  EXPECT_EQ(a.max_rd_atomic, 4);
  EXPECT_EQ(b.max_dest_rd_atomic, 4);

  char memory[64] = "a message";
  ibv_mr* const mr = ibv_reg_mr(p.active->pd, memory, sizeof memory, int{IBV_ACCESS_LOCAL_WRITE});
  ASSERT_NE(mr, nullptr);
  ibv_sge in{reinterpret_cast<std::uintptr_t>(memory + 32), 32, mr->lkey};
  ibv_sge out{reinterpret_cast<std::uintptr_t>(memory), 32, mr->lkey};
  ibv_recv_wr receive{};
  receive.sg_list = &in;
  receive.num_sge = 1;
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(ibv_post_recv(p.passive->qp, &receive, &bad_receive), 0);
  ibv_send_wr send{};
  send.sg_list = &out;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad_send = nullptr;
  ASSERT_EQ(ibv_post_send(p.active->qp, &send, &bad_send), 0);
  ibv_wc wc{};
  while (ibv_poll_cq(p.passive->recv_cq, 1, &wc) == 0) {
  }
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_STREQ(memory + 32, "a message");
  rdma_destroy_qp(p.active);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST(Connection, CarriesPrivateDataBothWays) {
  Pair p(7002);
  const std::string word(56, 'q');
  rdma_conn_param ask{};
  ask.private_data = word.data();
  ask.private_data_len = 56;
  ask.responder_resources = 3;
  ask.initiator_depth = 5;
  ASSERT_EQ(rdma_connect(p.active, &ask), 0);
  rdma_cm_event* e = p.server.next();
  ASSERT_NE(e, nullptr);
  ASSERT_EQ(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(e->listen_id, p.listener);
  EXPECT_EQ(e->param.conn.private_data_len, 56);
  EXPECT_EQ(std::memcmp(e->param.conn.private_data, word.data(), 56), 0);
  EXPECT_EQ(e->param.conn.responder_resources, 5);  // seen from this end
  EXPECT_EQ(e->param.conn.initiator_depth, 3);
  EXPECT_EQ(e->param.conn.qp_num, p.active->qp->qp_num);
  EXPECT_EQ(rdma_get_dst_port(e->id), rdma_get_src_port(p.active));
  EXPECT_EQ(rdma_get_src_port(e->id), htons(7002));
  p.passive = e->id;
  rdma_ack_cm_event(e);
  ASSERT_EQ(make_queue_pair(p.passive), 0);
  rdma_conn_param answer{};
  const std::string reply(196, 'a');
  answer.private_data = reply.data();
  answer.private_data_len = 196;
  answer.responder_resources = 2;
  answer.initiator_depth = 1;
  ASSERT_EQ(rdma_accept(p.passive, &answer), 0);
  e = p.client.next();
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->event, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(e->param.conn.private_data_len, 196);
  EXPECT_EQ(std::memcmp(e->param.conn.private_data, reply.data(), 196), 0);
  EXPECT_EQ(e->param.conn.initiator_depth, 2);
  EXPECT_EQ(e->param.conn.responder_resources, 1);
  rdma_ack_cm_event(e);
  p.server.expect(RDMA_CM_EVENT_ESTABLISHED);
}

TEST(Connection, RefusesMorePrivateDataThanAMessageHasRoomFor) {
  Pair p(7003);
  const std::string word(57, 'x');
  rdma_conn_param ask{};
  ask.private_data = word.data();
  ask.private_data_len = 57;
  EXPECT_EQ(rdma_connect(p.active, &ask), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(Connection, TellsTheEndThatAskedWhyItWasRejected) {
  Pair p(7004);
  p.request();
  ASSERT_EQ(rdma_reject(p.passive, "no", 2), 0);
  rdma_cm_event* const e = p.client.next();
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->event, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(e->status, 28);
  EXPECT_EQ(e->param.conn.private_data_len, 148);
  EXPECT_STREQ(static_cast<const char*>(e->param.conn.private_data), "no");
  rdma_ack_cm_event(e);
  EXPECT_EQ(attributes_of(p.active->qp).qp_state, IBV_QPS_ERR);
}

TEST(Connection, IsRejectedWithReason8WhereNobodyListens) {
  Listening client;
  rdma_cm_id* const id = client.create();
  sockaddr_in to = socket_address(7005);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, generic(to), 1000), 0);
  client.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(rdma_resolve_route(id, 1000), 0);
  client.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  ASSERT_EQ(make_queue_pair(id), 0);
  ASSERT_EQ(rdma_connect(id, nullptr), 0);
  EXPECT_EQ(client.expect(RDMA_CM_EVENT_REJECTED).status, 8);
  rdma_destroy_qp(id);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST(Connection, EndsAtBothEndsAndThenLeavesItsTimeWait) {
  Pair p(7006);
  std::uint8_t code = 10;  // a time wait of 4 ms
  ASSERT_EQ(rdma_set_option(p.active, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &code, sizeof code), 0);
  p.establish();
  ASSERT_EQ(rdma_disconnect(p.active), 0);
  EXPECT_EQ(attributes_of(p.active->qp).qp_state, IBV_QPS_ERR);
  EXPECT_EQ(p.server.expect(RDMA_CM_EVENT_DISCONNECTED).id, p.passive);
  EXPECT_EQ(p.client.expect(RDMA_CM_EVENT_DISCONNECTED).id, p.active);
  EXPECT_EQ(rdma_disconnect(p.passive), 0);
  EXPECT_EQ(attributes_of(p.passive->qp).qp_state, IBV_QPS_ERR);
  p.client.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  p.server.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  EXPECT_EQ(rdma_disconnect(p.active), 0);  // nothing is left to do
}

TEST(Connection, OfAProgramThatLeavesEndsAtThePeer) {
  Pair p(7007);
  p.establish();
  rdma_destroy_qp(p.active);
  EXPECT_EQ(rdma_destroy_id(p.active), 0);
  p.active = nullptr;
  p.server.expect(RDMA_CM_EVENT_DISCONNECTED);
}

TEST(Connection, IsEstablishedByItsProgramIfTheQueuePairIsTheProgramsOwn) {
  Pair p(7008);
  ibv_qp* const qp = p.active->qp;
  p.active->qp = nullptr;
  rdma_conn_param ask{};
  ask.qp_num = qp->qp_num;
  ask.responder_resources = ask.initiator_depth = 1;
  ask.retry_count = 7;
  ASSERT_EQ(rdma_connect(p.active, &ask), 0);
  p.passive = p.server.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  ASSERT_EQ(make_queue_pair(p.passive), 0);
  ASSERT_EQ(rdma_accept(p.passive, nullptr), 0);
  p.client.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr a{};
    int mask = 0;
    a.qp_state = state;
    ASSERT_EQ(rdma_init_qp_attr(p.active, &a, &mask), 0);
    a.qp_state = state;
    ASSERT_EQ(ibv_modify_qp(qp, &a, mask), 0) << state;
  }
  EXPECT_EQ(rdma_establish(p.active), 0);
  p.server.expect(RDMA_CM_EVENT_ESTABLISHED);
  p.active->qp = qp;
}

}  // namespace
}  // namespace weft::live::rdmacm
