// Two queue pairs of RC made a connection by what their programs tell each other over TCP.
#pragma once
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace weft::interop {

[[noreturn]] inline void stop(const char* what) {
  std::perror(what);
  std::exit(2);
}

inline sockaddr_in place(const char* address, std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  if (inet_pton(AF_INET, address, &at.sin_addr) != 1) stop(address);
  return at;
}

inline ibv_context* open_first_device() {
  int n = 0;
  ibv_device** const devices = ibv_get_device_list(&n);
  if (devices == nullptr || n == 0) stop("no device");
  ibv_context* const context = ibv_open_device(devices[0]);
  if (context == nullptr) stop("ibv_open_device");
  return context;
}

// What the other end has to know.
struct End {
  std::uint32_t qpn;
  std::uint32_t psn;
  ibv_gid gid;
};

// From RESET to RTS.
inline void connect(ibv_qp* qp, const End& mine, const End& theirs, unsigned access = 0) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = access;
  if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
    stop("INIT");
  a = {};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_4096;
  a.dest_qp_num = theirs.qpn;
  a.rq_psn = theirs.psn;
  a.max_dest_rd_atomic = 1;
  a.min_rnr_timer = 12;
  a.ah_attr.is_global = 1;
  a.ah_attr.grh.dgid = theirs.gid;
  a.ah_attr.grh.hop_limit = 64;
  a.ah_attr.port_num = 1;
  if (ibv_modify_qp(qp, &a,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
    stop("RTR");
  a = {};
  a.qp_state = IBV_QPS_RTS;
  a.timeout = 17;  // 0.5 s
  a.retry_cnt = 7;
  a.rnr_retry = 7;
  a.sq_psn = mine.psn;
  a.max_rd_atomic = 1;
  if (ibv_modify_qp(qp, &a,
                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC) != 0)
    stop("RTS");
}

}  // namespace weft::interop
