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

}  // namespace

Interface find_interface(const wire::Address& address) {
  const in_addr_t wanted = to_sockaddr(address, 0).sin_addr.s_addr;
  Interface found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_netmask == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in own{};
    sockaddr_in mask{};
    std::memcpy(&own, i->ifa_addr, sizeof own);
    std::memcpy(&mask, i->ifa_netmask, sizeof mask);
    // Any address of the loopback network is local; elsewhere only the interface's own is.
    const bool loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
    const in_addr_t covered = loopback ? mask.sin_addr.s_addr : ~in_addr_t{0};
    if (((own.sin_addr.s_addr ^ wanted) & covered) != 0) continue;
    if (const std::uint32_t mtu = mtu_of(i->ifa_name); mtu != 0) found.mtu = mtu;
    found.index = if_nametoindex(i->ifa_name);
    found.loopback = loopback;
    break;
  }
  freeifaddrs(list);
  return found;
}

std::vector<wire::Address> own_addresses() {
  std::vector<wire::Address> own;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return own;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in sa{};
    std::memcpy(&sa, i->ifa_addr, sizeof sa);
    own.push_back(from_sockaddr(sa));
  }
  freeifaddrs(list);
  return own;
}

}  // namespace weft::live
