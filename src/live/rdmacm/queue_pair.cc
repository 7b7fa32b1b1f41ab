// Queue pairs of identifiers: made with what the program leaves out (domain, completion queues), and taken to
// where the program may post: INIT for connections, RTS for datagrams.
#include <rdma/rdma_verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "live/abi/handles.h"
#include "live/rdmacm/edge.h"
#include "live/rdmacm/host.h"
#include "live/rdmacm/id.h"
#include "live/rdmacm/sockaddrs.h"

namespace weft::live::rdmacm {
namespace {

// A completion queue of the identifier's own, with a channel, as the calls of <rdma/rdma_verbs.h> want it.
int create_queue(CmId& id, std::uint32_t entries, ibv_comp_channel*& channel, ibv_cq*& queue) {
  channel = ibv_create_comp_channel(id.base.verbs);
  if (channel == nullptr) return own_errno();
  queue = ibv_create_cq(id.base.verbs, static_cast<int>(std::max(1U, entries)), &id.base, channel, 0);
  return queue == nullptr ? own_errno() : 0;
}

void destroy_queue(ibv_comp_channel*& channel, ibv_cq*& queue) {
  if (queue != nullptr) ibv_destroy_cq(queue);
  if (channel != nullptr) ibv_destroy_comp_channel(channel);
  queue = nullptr;
  channel = nullptr;
}

void destroy_queues(CmId& id) {
  if (id.base.send_cq_channel != nullptr) destroy_queue(id.base.send_cq_channel, id.base.send_cq);
  if (id.base.recv_cq_channel != nullptr) destroy_queue(id.base.recv_cq_channel, id.base.recv_cq);
}

int create_queues(CmId& id, const ibv_qp_init_attr_ex& init) {
  const bool receives = init.srq == nullptr;
  int failed = 0;
  if (init.send_cq == nullptr && id.base.send_cq == nullptr)
    failed = create_queue(id, init.cap.max_send_wr, id.base.send_cq_channel, id.base.send_cq);
  if (failed == 0 && init.recv_cq == nullptr && id.base.recv_cq == nullptr)
    failed = create_queue(id, receives ? init.cap.max_recv_wr : 1, id.base.recv_cq_channel, id.base.recv_cq);
  if (failed != 0) destroy_queues(id);
  return failed;
}

int to_init(ibv_qp& qp) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;  // a connection's terms may add more
  return ibv_modify_qp(&qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int to_send_datagrams(ibv_qp& qp) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qkey = RDMA_UDP_QKEY;
  int failed = ibv_modify_qp(&qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  a.qp_state = IBV_QPS_RTR;
  if (failed == 0) failed = ibv_modify_qp(&qp, &a, IBV_QP_STATE);
  a.qp_state = IBV_QPS_RTS;
  if (failed == 0) failed = ibv_modify_qp(&qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
  return failed;
}

}  // namespace

void copy_init(const ibv_qp_init_attr& from, ibv_pd* pd, ibv_qp_init_attr_ex& to) {
  to.qp_context = from.qp_context;
  to.send_cq = from.send_cq;
  to.recv_cq = from.recv_cq;
  to.srq = from.srq;
  to.cap = from.cap;
  std::memcpy(&to.qp_type, &from.qp_type, sizeof to.qp_type);  // whatever number it is
  to.sq_sig_all = from.sq_sig_all;
  if (pd != nullptr) {
    to.comp_mask = IBV_QP_INIT_ATTR_PD;
    to.pd = pd;
  }
}

int create_queue_pair(CmId& id, ibv_qp_init_attr_ex& init) {
  if (id.base.qp != nullptr || id.base.verbs == nullptr) return EINVAL;
  if (abi::raw(init.qp_type) != abi::raw(id.base.qp_type)) return EINVAL;
  if ((init.comp_mask & IBV_QP_INIT_ATTR_PD) == 0) {
    init.comp_mask |= IBV_QP_INIT_ATTR_PD;
    init.pd = host()->default_domain();
    if (init.pd == nullptr) return own_errno();
  }
  if (init.pd->context != id.base.verbs) return EINVAL;
  if (init.srq == nullptr) init.srq = id.base.srq;
  if (const int failed = create_queues(id, init); failed != 0) return failed;
  if (init.send_cq == nullptr) init.send_cq = id.base.send_cq;
  if (init.recv_cq == nullptr) init.recv_cq = id.base.recv_cq;
  ibv_qp* const qp = ibv_create_qp_ex(id.base.verbs, &init);
  if (qp == nullptr) {
    const int failed = own_errno();
    destroy_queues(id);
    return failed;
  }
  if (const int failed = is_datagram(id) ? to_send_datagrams(*qp) : to_init(*qp); failed != 0) {
    ibv_destroy_qp(qp);
    destroy_queues(id);
    return failed;
  }
  id.base.qp = qp;
  id.base.pd = init.pd;
  const int failed = attach_groups(id);
  if (failed != 0) destroy_queue_pair(id);
  return failed;
}

void destroy_queue_pair(CmId& id) {
  detach_groups(id);
  // This call cannot fail, so a group that the program has attached it to by itself does not keep a queue
  // pair.
  if (id.base.qp != nullptr && ibv_destroy_qp(id.base.qp) == EBUSY) {
    abi::engine_of(id.base.qp->context).detach_all(abi::handle_of<abi::QpHandle>(id.base.qp).engine);
    ibv_destroy_qp(id.base.qp);
  }
  id.base.qp = nullptr;
  destroy_queues(id);
}

void show_connected(CmId& id) {
  auto& qp = abi::handle_of<abi::QpHandle>(id.base.qp);
  qp.base.qp_base.state = IBV_QPS_RTS;
  const auto peer = endpoint_of(&id.base.route.addr.dst_addr);
  const std::lock_guard lock(qp.address_lock);
  qp.address = {};
  qp.address.is_global = 1;
  qp.address.port_num = 1;
  qp.address.grh.traffic_class = id.tos;
  if (!peer) return;
  std::copy(peer->address.bytes.begin(), peer->address.bytes.end(), qp.address.grh.dgid.raw);
  qp.address.grh.sgid_index = host()->facts.own.index_of(host()->facts.own.towards(peer->address));
}

namespace {

int create_shared(CmId& id, ibv_pd* pd, ibv_srq_init_attr& init) {
  if (id.base.srq != nullptr || id.base.verbs == nullptr) return EINVAL;
  if (pd == nullptr) pd = host()->default_domain();
  if (pd == nullptr) return own_errno();
  ibv_srq* const srq = ibv_create_srq(pd, &init);
  if (srq == nullptr) return own_errno();
  id.base.srq = srq;
  if (id.base.pd == nullptr) id.base.pd = pd;
  return 0;
}

// What the program's own queue pair is to be set to in the state that it names.
int attributes(CmId& id, ibv_qp_attr& out, int& mask) {
  if (is_datagram(id)) {
    if (abi::raw(out.qp_state) != IBV_QPS_INIT) {
      mask = IBV_QP_STATE | (abi::raw(out.qp_state) == IBV_QPS_RTS ? IBV_QP_SQ_PSN : 0);
      return 0;
    }
    out.port_num = 1;
    out.qkey = RDMA_UDP_QKEY;
    mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    return 0;
  }
  if (!id.conn) {  // nothing is agreed yet: as rdma_create_qp() would
    if (abi::raw(out.qp_state) != IBV_QPS_INIT) return EINVAL;
    out.port_num = 1;
    out.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    return 0;
  }
  const auto setup =
      host()->connections.qp_setup(*id.conn, id.sink, static_cast<QpState>(abi::raw(out.qp_state)));
  const auto info = host()->connections.info(*id.conn, id.sink);
  if (!setup || !info) return setup ? EINVAL : abi::errno_of(setup.error());
  const QpAttr& a = setup->attr;
  mask = static_cast<int>(setup->mask);
  out.port_num = 1;
  out.pkey_index = 0;
  out.qp_access_flags = a.access;
  std::uint32_t code = IBV_MTU_256;
  while (code < IBV_MTU_4096 && (128U << code) < a.mtu) ++code;
  out.path_mtu = static_cast<ibv_mtu>(code);
  out.dest_qp_num = a.dest_qpn.v;
  out.rq_psn = a.rq_psn.v;
  out.sq_psn = a.sq_psn.v;
  out.max_dest_rd_atomic = a.max_dest_rd_atomic;
  out.max_rd_atomic = a.max_rd_atomic;
  out.min_rnr_timer = a.min_rnr_timer;
  out.timeout = a.timeout;
  out.retry_cnt = a.retry_count;
  out.rnr_retry = a.rnr_retry;
  out.ah_attr = {};
  out.ah_attr.is_global = 1;
  out.ah_attr.port_num = 1;
  out.ah_attr.grh.hop_limit = 64;
  out.ah_attr.grh.traffic_class = info->tos;
  std::copy(info->peer.bytes.begin(), info->peer.bytes.end(), out.ah_attr.grh.dgid.raw);
  return 0;
}

}  // namespace
}  // namespace weft::live::rdmacm

using namespace weft::live;
using namespace weft::live::rdmacm;

WEFT_EXPORT int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* init) {
  return rdmacm::at_edge([&] { return create_queue_pair(id_of(id), *init); });
}

WEFT_EXPORT int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* init) {
  return rdmacm::at_edge([&] {
    ibv_qp_init_attr_ex extended{};
    copy_init(*init, pd, extended);
    const int failed = create_queue_pair(id_of(id), extended);
    if (failed == 0) init->cap = extended.cap;
    return failed;
  });
}

WEFT_EXPORT void rdma_destroy_qp(rdma_cm_id* id) { destroy_queue_pair(id_of(id)); }

WEFT_EXPORT int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* init) {
  return rdmacm::at_edge([&] { return create_shared(id_of(id), pd, *init); });
}

WEFT_EXPORT int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* init) {
  return rdmacm::at_edge([&] {
    if ((init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && abi::raw(init->srq_type) != IBV_SRQT_BASIC)
      return EOPNOTSUPP;
    ibv_srq_init_attr plain{init->srq_context, init->attr};
    ibv_pd* const pd = (init->comp_mask & IBV_SRQ_INIT_ATTR_PD) != 0 ? init->pd : nullptr;
    const int failed = create_shared(id_of(id), pd, plain);
    if (failed == 0) init->attr = plain.attr;
    return failed;
  });
}

WEFT_EXPORT void rdma_destroy_srq(rdma_cm_id* id) {
  if (id->srq != nullptr) ibv_destroy_srq(id->srq);
  id->srq = nullptr;
}

WEFT_EXPORT int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attr, int* mask) {
  return rdmacm::at_edge([&] { return attributes(id_of(id), *attr, *mask); });
}
