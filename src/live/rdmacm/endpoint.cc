// Endpoints: an identifier, its addresses and its queue pair in one call, from what rdma_getaddrinfo(3)
// found.
#include <rdma/rdma_verbs.h>

#include <cerrno>
#include <utility>

#include "live/rdmacm/edge.h"
#include "live/rdmacm/host.h"
#include "live/rdmacm/id.h"

namespace weft::live::rdmacm {
namespace {

int prepare(CmId& id, const rdma_addrinfo& from, ibv_pd* pd, ibv_qp_init_attr* init) {
  if ((from.ai_flags & RAI_PASSIVE) != 0) {
    if (from.ai_src_addr == nullptr) return EINVAL;
    if (init != nullptr) {
      id.endpoint = *init;
      id.endpoint->qp_type = id.base.qp_type;
      id.base.pd = pd;
    }
    return bind(id, from.ai_src_addr);
  }
  int failed = resolve_address(id, from.ai_src_addr, from.ai_dst_addr);
  if (failed == 0) failed = resolve_route(id);
  if (failed != 0 || init == nullptr) return failed;
  init->qp_type = id.base.qp_type;
  ibv_qp_init_attr_ex extended{};
  copy_init(*init, pd, extended);
  failed = create_queue_pair(id, extended);
  if (failed == 0) init->cap = extended.cap;
  return failed;
}

}  // namespace
}  // namespace weft::live::rdmacm

using namespace weft::live::rdmacm;

WEFT_EXPORT int rdma_create_ep(rdma_cm_id** out, rdma_addrinfo* from, ibv_pd* pd, ibv_qp_init_attr* init) {
  return at_edge([&] {
    std::unique_ptr<CmId> id;
    int failed = create(nullptr, nullptr, static_cast<rdma_port_space>(from->ai_port_space),
                        static_cast<ibv_qp_type>(from->ai_qp_type), id);
    if (failed != 0) return failed;
    failed = prepare(*id, *from, pd, init);
    if (failed != 0) {
      destroy(*id.release());
      return failed;
    }
    *out = &id.release()->base;
    return 0;
  });
}

WEFT_EXPORT void rdma_destroy_ep(rdma_cm_id* id) {
  destroy_queue_pair(id_of(id));
  rdma_destroy_srq(id);
  rdma_destroy_id(id);
}
