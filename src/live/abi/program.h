// A verbs program for tests: one device with what most programs make of it, on a loopback address of this
// process's own. It knows <infiniband/verbs.h> and nothing of weft.
#pragma once
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace weft::live::abi {

inline void choose_address() {
  char address[32];
  const auto pid = static_cast<unsigned>(getpid());
  std::snprintf(address, sizeof address, "127.%u.%u.77", 1 + (pid >> 8U) % 254U, pid & 0xFFU);
  setenv("WEFT_ADDR", address, 1);
}

inline ibv_context* open_first() {
  choose_address();
  ibv_device** const list = ibv_get_device_list(nullptr);
  if (list == nullptr) std::abort();
  ibv_context* const context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  return context;
}

// The connection library keeps its device open until the process ends, and so the settings of all later ones.
inline bool& device_stays_open() {
  static bool stays = false;
  return stays;
}

struct Program {
  Program() : context(open_first()), memory(8192) {
    pd = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    cq = ibv_create_cq(context, 16, nullptr, channel, 0);
    mr = ibv_reg_mr(pd, memory.data(), memory.size(), int{IBV_ACCESS_LOCAL_WRITE} | int{IBV_ACCESS_MW_BIND});
    mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    ibv_srq_init_attr shared{};
    shared.attr = {16, 1, 0};
    srq = ibv_create_srq(pd, &shared);
    ibv_qp_init_attr init = plain();
    qp = ibv_create_qp(pd, &init);
    ibv_ah_attr to = address();
    ah = ibv_create_ah(pd, &to);
    if (pd == nullptr || channel == nullptr || cq == nullptr || mr == nullptr || mw == nullptr ||
        srq == nullptr || qp == nullptr || ah == nullptr)
      std::abort();
  }
  ~Program() {
    if (context != nullptr) ibv_close_device(context);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  ibv_qp_init_attr plain(ibv_qp_type type = IBV_QPT_RC) const {
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq;
    a.cap = {4, 4, 1, 1, 16};
    a.qp_type = type;
    return a;
  }
  ibv_ah_attr address() const {
    ibv_ah_attr a{};
    a.is_global = 1;
    a.port_num = 1;
    ibv_query_gid(context, 1, 0, &a.grh.dgid);
    return a;
  }

  // An RC queue pair that is its own peer.
  ibv_qp* talking_to_itself(ibv_pd* domain, ibv_cq* queue) const {
    ibv_qp_init_attr init = plain();
    init.send_cq = init.recv_cq = queue;
    return to_itself(ibv_create_qp(domain, &init));
  }
  // The same with operations of ibv_wr_*.
  ibv_qp_ex* talking_to_itself(std::uint64_t operations) const {
    ibv_qp_init_attr_ex init{};
    init.send_cq = init.recv_cq = cq;
    init.cap = {4, 4, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = pd;
    init.send_ops_flags = operations;
    return ibv_qp_to_qp_ex(to_itself(ibv_create_qp_ex(context, &init)));
  }
  ibv_qp* to_itself(ibv_qp* made) const {
    constexpr int kRemote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    if (made == nullptr) std::abort();
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = kRemote;
    const auto step = [&](int mask) {
      if (ibv_modify_qp(made, &a, IBV_QP_STATE | mask) != 0) std::abort();
    };
    step(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    a.qp_state = IBV_QPS_RTR;
    a.ah_attr = address();
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = made->qp_num;
    a.max_dest_rd_atomic = 4;
    a.min_rnr_timer = 12;
    step(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER);
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = 7;
    a.rnr_retry = 7;
    a.max_rd_atomic = 4;
    step(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return made;
  }
  // Posts one request and waits for its completion.
  static ibv_wc complete(ibv_qp* qp, ibv_send_wr wr) {
    wr.send_flags |= IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(qp, &wr, &bad) != 0) std::abort();
    return next_completion(qp->send_cq);
  }
  static ibv_wc next_completion(ibv_cq* queue) {
    ibv_wc wc{};
    while (ibv_poll_cq(queue, 1, &wc) == 0) {
    }
    return wc;
  }

  ibv_context* context;
  std::vector<char> memory;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_mw* mw = nullptr;
  ibv_srq* srq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_ah* ah = nullptr;
};

}  // namespace weft::live::abi
