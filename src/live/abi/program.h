// A verbs program for tests: one device with what most programs make of it, on a loopback address of this
// process's own. It knows <infiniband/verbs.h> and nothing of weft.
#pragma once
#include <infiniband/verbs.h>
#include <unistd.h>

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
