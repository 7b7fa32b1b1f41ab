#include "live/wires/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "live/wires/sockets.h"

namespace weft::live {
namespace {

// 0 if the kernel does not tell.
std::uint32_t mtu_of(const char* name) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  const bool told = ioctl(fd, SIOCGIFMTU, &request) == 0;
  close(fd);
  return told ? static_cast<std::uint32_t>(request.ifr_mtu) : 0;
}

// False: neither IPv4 nor IPv6.
bool address_of(const sockaddr* from, wire::Address& out) {
  if (from == nullptr || (from->sa_family != AF_INET && from->sa_family != AF_INET6)) return false;
  SocketAddress sa;
  std::memcpy(&sa, from, from->sa_family == AF_INET ? sizeof sa.v4 : sizeof sa.v6);
  out = from_sockaddr(sa);
  return true;
}

// Any address of IPv4's loopback network is local; elsewhere only the interface's own is.
bool claims(const ifaddrs& i, const wire::Address& address) {
  wire::Address own;
  if (!address_of(i.ifa_addr, own)) return false;
  if (own == address) return true;
  wire::Address mask;
  if ((i.ifa_flags & IFF_LOOPBACK) == 0 || i.ifa_addr->sa_family != AF_INET || !wire::is_v4_mapped(address) ||
      !address_of(i.ifa_netmask, mask))
    return false;
  for (std::size_t k = 12; k < 16; ++k) {
    if (((own.bytes[k] ^ address.bytes[k]) & mask.bytes[k]) != 0) return false;
  }
  return true;
}

}  // namespace

Interface find_interface(const wire::Address& address) {
  Interface found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (!claims(*i, address)) continue;
    found.others = found.index != 0 && if_nametoindex(i->ifa_name) != found.index;
    if (found.others) break;
    if (const std::uint32_t mtu = mtu_of(i->ifa_name); mtu != 0) found.mtu = mtu;
    found.index = if_nametoindex(i->ifa_name);
    found.loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
    if (!is_link_local(address)) break;
  }
  freeifaddrs(list);
  return found;
}

std::vector<wire::Address> own_addresses() {
  std::vector<wire::Address> own;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return own;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    wire::Address a;
    if (address_of(i->ifa_addr, a)) own.push_back(a);
  }
  freeifaddrs(list);
  return own;
}

}  // namespace weft::live
