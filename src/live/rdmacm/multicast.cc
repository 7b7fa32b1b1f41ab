// Multicast groups: the device has none yet (ibv_attach_mcast is refused, too), and a join says so at once.
#include <cerrno>

#include "live/rdmacm/edge.h"
#include "live/rdmacm/id.h"

using namespace weft::live::rdmacm;

WEFT_EXPORT int rdma_join_multicast(rdma_cm_id*, sockaddr*, void*) {
  return at_edge([] { return EOPNOTSUPP; });
}
WEFT_EXPORT int rdma_join_multicast_ex(rdma_cm_id*, rdma_cm_join_mc_attr_ex*, void*) {
  return at_edge([] { return EOPNOTSUPP; });
}
WEFT_EXPORT int rdma_leave_multicast(rdma_cm_id*, sockaddr*) {
  return at_edge([] { return EINVAL; });  // no group was joined
}
