// Addresses and routes. There is one device with an address or two, so that binding is checking, and
// resolving finds nothing out: what is wrong with an address is said at once, and the events follow at once.
#include <endian.h>

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

// Programs find the device's default domain in an identifier that has a device.
int to_device(CmId& id) {
  id.base.verbs = host()->verbs;
  id.base.port_num = 1;
  if (id.base.pd == nullptr) id.base.pd = host()->default_domain();
  return id.base.pd != nullptr ? 0 : own_errno();
}

// A port of one's own, and the address as the program will see it.
int take_source(CmId& id, const Endpoint& at, sa_family_t family) {
  const std::uint16_t port = host()->ports.take(id.base.ps, at.port, id.reuse_address);
  if (port == 0) return EADDRINUSE;
  id.own_port = port;
  write_endpoint({at.address, port}, family, id.base.route.addr.src_storage, host()->interface);
  return 0;
}

// Who binds a loopback address means this host's NIC, as RDMA-CM has it; but where the NIC has one itself,
// each of them stands for a host of its own. Where one leads is another matter: a process may have it.
void mean_own(wire::Address& a) {
  const wire::Address& own = host()->facts.own.towards(a);
  if (is_loopback(a) && !is_loopback(own)) a = own;
}

void say(CmId& id, rdma_cm_event_type type) {
  Happening h;
  h.type = type;
  host()->connections.quietly([&] { id.tell(std::move(h)); });
}

}  // namespace

void show_route(CmId& id, const wire::Address& from, const wire::Address& to) {
  rdma_ib_addr& a = id.base.route.addr.addr.ibaddr;
  std::copy(from.bytes.begin(), from.bytes.end(), a.sgid.raw);
  std::copy(to.bytes.begin(), to.bytes.end(), a.dgid.raw);
  a.pkey = 0xFFFF;
  id.path = std::make_unique<ibv_sa_path_rec>();
  *id.path = {};
  id.path->sgid = a.sgid;
  id.path->dgid = a.dgid;
  id.path->hop_limit = 64;
  id.path->traffic_class = id.tos;
  id.path->reversible = 1;
  id.path->numb_path = 1;
  id.path->pkey = a.pkey;
  id.path->mtu_selector = 2;  // exactly
  while ((128U << id.path->mtu) < host()->facts.active_mtu && id.path->mtu < IBV_MTU_4096) ++id.path->mtu;
  id.base.route.path_rec = id.path.get();
  id.base.route.num_paths = 1;
}

int bind(CmId& id, const sockaddr* address) {
  if (id.stage != Stage::kIdle) return EINVAL;
  auto at = endpoint_of(address);
  if (!at) return EAFNOSUPPORT;
  mean_own(at->address);
  if (!at->any() && !host()->facts.own.have(at->address)) return EADDRNOTAVAIL;
  if (const int failed = take_source(id, *at, address->sa_family); failed != 0) return failed;
  if (const int failed = at->any() ? 0 : to_device(id); failed != 0) {
    host()->ports.give_back(id.base.ps, std::exchange(id.own_port, std::uint16_t{0}));
    return failed;
  }
  id.stage = Stage::kBound;
  return 0;
}

int resolve_address(CmId& id, const sockaddr* from, const sockaddr* to) {
  if (to == nullptr) return EINVAL;
  auto peer = endpoint_of(to);
  if (!peer) return EAFNOSUPPORT;
  if (id.stage == Stage::kIdle && from != nullptr) {
    if (const int failed = bind(id, from); failed != 0) return failed;
  }
  if (id.stage != Stage::kIdle && id.stage != Stage::kBound && id.stage != Stage::kResolved) return EINVAL;
  const Addresses& addresses = host()->facts.own;
  if (peer->any()) peer->address = addresses.towards(peer->address);
  const wire::Address& own = addresses.towards(peer->address);
  if (!abi::reaches(addresses, peer->address)) return ENETUNREACH;
  if (peer->group() && !is_datagram(id)) return EINVAL;
  if (id.own_port == 0) {
    if (const int failed = take_source(id, {}, to->sa_family); failed != 0) return failed;
  }
  write_endpoint({own, id.own_port}, to->sa_family, id.base.route.addr.src_storage, host()->interface);
  write_endpoint(*peer, to->sa_family, id.base.route.addr.dst_storage, host()->interface);
  if (const int failed = to_device(id); failed != 0) return failed;
  show_route(id, own, peer->address);
  id.base.route.num_paths = 0;
  id.base.route.path_rec = nullptr;
  id.stage = Stage::kResolved;
  say(id, RDMA_CM_EVENT_ADDR_RESOLVED);
  return complete(id);
}

int resolve_route(CmId& id) {
  if (id.stage != Stage::kResolved) return EINVAL;
  id.base.route.path_rec = id.path.get();
  id.base.route.num_paths = 1;
  say(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
  return complete(id);
}

}  // namespace weft::live::rdmacm

using namespace weft::live::rdmacm;

WEFT_EXPORT int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
  return at_edge([&] { return address == nullptr ? EINVAL : bind(id_of(id), address); });
}

// The time limits are met by themselves.
WEFT_EXPORT int rdma_resolve_addr(rdma_cm_id* id, sockaddr* from, sockaddr* to, int) {
  return at_edge([&] { return resolve_address(id_of(id), from, to); });
}

WEFT_EXPORT int rdma_resolve_route(rdma_cm_id* id, int) {
  return at_edge([&] { return resolve_route(id_of(id)); });
}

WEFT_EXPORT __be16 rdma_get_src_port(rdma_cm_id* id) {
  const auto at = endpoint_of(&id->route.addr.src_addr);
  return at ? htobe16(at->port) : __be16{0};
}

WEFT_EXPORT __be16 rdma_get_dst_port(rdma_cm_id* id) {
  const auto at = endpoint_of(&id->route.addr.dst_addr);
  return at ? htobe16(at->port) : __be16{0};
}
