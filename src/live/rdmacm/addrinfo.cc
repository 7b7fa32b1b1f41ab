// rdma_getaddrinfo(3): the system's own getaddrinfo, and what is ours: port space, queue pair type, and which
// of our addresses leads there. Of what a name stands for, the first that one of them leads to.
#include <netdb.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "live/rdmacm/edge.h"
#include "live/rdmacm/host.h"
#include "live/rdmacm/sockaddrs.h"

namespace weft::live::rdmacm {
namespace {

constexpr int kFlags = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY;

// One block for a result and its addresses, so that freeing one is freeing all.
struct Found {
  rdma_addrinfo base{};
  sockaddr_storage source{};
  sockaddr_storage destination{};
  std::unique_ptr<char[]> name;
};

void set(sockaddr*& address, socklen_t& length, sockaddr_storage& room, const sockaddr* from,
         socklen_t from_length) {
  std::memcpy(&room, from, std::min<std::size_t>(from_length, sizeof room));
  address = reinterpret_cast<sockaddr*>(&room);
  length = from_length;
}

// Ours that leads to the destination, in its family.
void set_own(Found& f) {
  const auto to = endpoint_of(f.base.ai_dst_addr);
  const sa_family_t family = f.base.ai_dst_addr->sa_family;
  write_endpoint({host()->facts.own.towards(to->address), 0}, family, f.source, host()->interface);
  f.base.ai_src_addr = reinterpret_cast<sockaddr*>(&f.source);
  f.base.ai_src_len = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

// Any address is one of each family that we have.
bool leads_to(const sockaddr* to) {
  const auto at = endpoint_of(to);
  if (!at) return false;
  if (!at->any()) return host()->facts.own.reach(at->address);
  wire::Address of_family = at->address;
  if (to->sa_family == AF_INET) of_family = wire::Address::v4(0, 0, 0, 0);
  return host()->facts.own.reach(of_family);
}

// Port space and queue pair type follow from each other; EAI_SOCKTYPE stands for EAI_QPTYPE.
int choose_types(const rdma_addrinfo& hints, rdma_addrinfo& to) {
  to.ai_port_space = hints.ai_port_space;
  to.ai_qp_type = hints.ai_qp_type;
  if (to.ai_port_space == 0) to.ai_port_space = to.ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
  const bool datagrams = to.ai_port_space == RDMA_PS_UDP || to.ai_port_space == RDMA_PS_IPOIB;
  if (to.ai_qp_type == 0) to.ai_qp_type = datagrams ? IBV_QPT_UD : IBV_QPT_RC;
  return datagrams == (to.ai_qp_type == IBV_QPT_UD) || to.ai_port_space == RDMA_PS_IB ? 0 : EAI_SOCKTYPE;
}

int find(const char* node, const char* service, const rdma_addrinfo& hints, Found& out) {
  if ((hints.ai_flags & ~kFlags) != 0) return EAI_BADFLAGS;
  // With RAI_FAMILY as without it: the family says how a node's name is to be read.
  if (hints.ai_family != AF_UNSPEC && hints.ai_family != AF_INET && hints.ai_family != AF_INET6)
    return EAI_FAMILY;
  const wire::Address any = hints.ai_family == AF_INET ? wire::Address::v4(0, 0, 0, 0) : wire::Address{};
  if (hints.ai_family != AF_UNSPEC && !host()->facts.own.reach(any)) return EAI_FAMILY;
  if (const int failed = choose_types(hints, out.base); failed != 0) return failed;
  const bool passive = (hints.ai_flags & RAI_PASSIVE) != 0;
  out.base.ai_flags = hints.ai_flags;
  if (node == nullptr && service == nullptr) {
    // The addresses of the hints, either or both, are what they are.
    const sockaddr* const to = passive ? nullptr : hints.ai_dst_addr;
    const sockaddr* const known = to != nullptr ? to : hints.ai_src_addr;
    if (known == nullptr) return EAI_NONAME;
    if (!endpoint_of(known)) return EAI_FAMILY;
    auto& f = out.base;
    f.ai_family = known->sa_family;
    if (passive) set(f.ai_src_addr, f.ai_src_len, out.source, known, hints.ai_src_len);
    if (to != nullptr) set(f.ai_dst_addr, f.ai_dst_len, out.destination, to, hints.ai_dst_len);
  } else {
    addrinfo wanted{};
    wanted.ai_family = hints.ai_family;
    wanted.ai_socktype = out.base.ai_qp_type == IBV_QPT_UD ? SOCK_DGRAM : SOCK_STREAM;
    if (passive) wanted.ai_flags |= AI_PASSIVE;
    if ((hints.ai_flags & RAI_NUMERICHOST) != 0) wanted.ai_flags |= AI_NUMERICHOST;
    addrinfo* found = nullptr;
    if (const int failed = getaddrinfo(node, service, &wanted, &found); failed != 0) return failed;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
    while (found != nullptr && !leads_to(found->ai_addr)) found = found->ai_next;
    if (found == nullptr) return hints.ai_family != AF_UNSPEC ? EAI_FAMILY : EAI_NONAME;
    auto& f = out.base;
    f.ai_family = found->ai_family;
    if (passive)
      set(f.ai_src_addr, f.ai_src_len, out.source, found->ai_addr, found->ai_addrlen);
    else
      set(f.ai_dst_addr, f.ai_dst_len, out.destination, found->ai_addr, found->ai_addrlen);
    if (node != nullptr) {
      const std::size_t length = std::strlen(node) + 1;
      out.name = std::make_unique<char[]>(length);
      std::memcpy(out.name.get(), node, length);
      (passive ? f.ai_src_canonname : f.ai_dst_canonname) = out.name.get();
    }
  }
  if (passive) return 0;
  if (hints.ai_src_addr != nullptr)
    set(out.base.ai_src_addr, out.base.ai_src_len, out.source, hints.ai_src_addr, hints.ai_src_len);
  else if ((hints.ai_flags & RAI_NOROUTE) == 0)
    set_own(out);
  return 0;
}

}  // namespace
}  // namespace weft::live::rdmacm

using namespace weft::live::rdmacm;

WEFT_EXPORT int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints,
                                 rdma_addrinfo** out) {
  int answer = EAI_MEMORY;
  const int failed = at_edge([&] {
    if (node == nullptr && service == nullptr && hints == nullptr) return EINVAL;
    if (host() == nullptr) return errno;
    auto found = std::make_unique<Found>();
    answer = find(node, service, hints != nullptr ? *hints : rdma_addrinfo{}, *found);
    if (answer == 0) *out = &found.release()->base;
    return 0;
  });
  return failed != 0 ? failed : answer;
}

WEFT_EXPORT void rdma_freeaddrinfo(rdma_addrinfo* first) { delete reinterpret_cast<Found*>(first); }
