// Multicast groups. A RoCE network has nobody who keeps a list of members, so a join asks nobody: it attaches
// the identifier's queue pair (the host becomes a member, IGMP), and the event follows at once, as with
// addresses.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "live/abi/handles.h"
#include "live/rdmacm/edge.h"
#include "live/rdmacm/host.h"
#include "live/rdmacm/id.h"
#include "live/rdmacm/sockaddrs.h"

namespace weft::live::rdmacm {
namespace {

ibv_gid gid_of(const wire::Address& group) {
  ibv_gid gid;
  std::copy(group.bytes.begin(), group.bytes.end(), gid.raw);
  return gid;
}

int attach(CmId& id, Membership& m) {
  if (id.base.qp == nullptr || m.attached || m.sends_only) return 0;
  const ibv_gid gid = gid_of(m.group);
  const int failed = ibv_attach_mcast(id.base.qp, &gid, 0);
  m.attached = failed == 0;
  return failed;
}

void detach(CmId& id, Membership& m) {
  if (!std::exchange(m.attached, false) || id.base.qp == nullptr) return;
  const ibv_gid gid = gid_of(m.group);
  ibv_detach_mcast(id.base.qp, &gid, 0);
}

int join(CmId& id, const sockaddr* address, bool sends_only, void* context) {
  if (address == nullptr || !is_datagram(id) || id.base.verbs == nullptr) return EINVAL;
  const auto at = endpoint_of(address);
  if (!at) return EAFNOSUPPORT;
  if (!at->group()) return EINVAL;
  if (!abi::reaches(host()->facts.own, at->address)) return EAFNOSUPPORT;
  const auto same = [&](const Membership& m) { return m.group == at->address; };
  if (std::any_of(id.groups.begin(), id.groups.end(), same)) return EADDRINUSE;
  Membership& m = id.groups.emplace_back();
  m.group = at->address;
  m.sends_only = sends_only;
  Happening h;
  h.type = RDMA_CM_EVENT_MULTICAST_JOIN;
  h.context = context;
  h.told.info.peer = at->address;
  h.told.info.peer_qpn = wire::kEveryMember;
  h.told.info.qkey = RDMA_UDP_QKEY;
  if (const int failed = attach(id, m); failed != 0) {
    id.groups.pop_back();
    h.type = RDMA_CM_EVENT_MULTICAST_ERROR;
    h.status = -failed;
  }
  host()->connections.quietly([&] { id.tell(std::move(h)); });
  return complete(id);
}

// What it was to be told of the group and has not been, it is not told any more.
int leave(CmId& id, const sockaddr* address) {
  const auto at = address != nullptr ? endpoint_of(address) : std::nullopt;
  if (!at) return EINVAL;
  const auto it = std::find_if(id.groups.begin(), id.groups.end(),
                               [&](const Membership& m) { return m.group == at->address; });
  if (it == id.groups.end()) return EADDRNOTAVAIL;
  detach(id, *it);
  id.groups.erase(it);
  static_cast<void>(id.channel().queue->withdraw([&](const Happening& e) {
    return e.id == &id && e.type == RDMA_CM_EVENT_MULTICAST_JOIN && e.told.info.peer == at->address;
  }));
  return 0;
}

}  // namespace

int attach_groups(CmId& id) {
  int failed = 0;
  for (Membership& m : id.groups) {
    if (failed == 0) failed = attach(id, m);
  }
  return failed;
}

void detach_groups(CmId& id) {
  for (Membership& m : id.groups) detach(id, m);
}

}  // namespace weft::live::rdmacm

using namespace weft::live::rdmacm;

WEFT_EXPORT int rdma_join_multicast(rdma_cm_id* id, sockaddr* address, void* context) {
  return at_edge([&] { return join(id_of(id), address, false, context); });
}

WEFT_EXPORT int rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* attr, void* context) {
  constexpr std::uint32_t kAll = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  return at_edge([&] {
    if ((attr->comp_mask & ~kAll) != 0) return EOPNOTSUPP;
    if (attr->comp_mask != kAll) return EINVAL;
    if (attr->join_flags != RDMA_MC_JOIN_FLAG_FULLMEMBER &&
        attr->join_flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
      return EINVAL;
    return join(id_of(id), attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context);
  });
}

WEFT_EXPORT int rdma_leave_multicast(rdma_cm_id* id, sockaddr* address) {
  return at_edge([&] { return leave(id_of(id), address); });
}
