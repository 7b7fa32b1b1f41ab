#include "live/wires/bind_refused.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/wire/ip.h"
#include "live/wires/addresses.h"
#include "live/wires/udp.h"

namespace weft::live {
namespace {

std::string reason() { return std::strerror(errno); }

// Whether the kernel of this network namespace has been told to do without IPv6, for this address at least.
bool v6_is_off(const wire::Address& address) {
  const auto says_one = [](const char* file) {
    std::FILE* const f = std::fopen(file, "re");
    if (f == nullptr) return true;
    const int c = std::fgetc(f);
    std::fclose(f);
    return c == '1';
  };
  return says_one("/proc/sys/net/ipv6/conf/all/disable_ipv6") ||
         (is_loopback(address) && says_one("/proc/sys/net/ipv6/conf/lo/disable_ipv6"));
}

std::string bind_v6_sentence(const wire::Address& address, std::uint16_t port) {
  const std::string where = to_text(address) + ", UDP port " + std::to_string(port);
  switch (errno) {
    case EADDRINUSE:
      return where +
             " is in use by another user's process; give this one an address of its own (`ip addr add "
             "fd00::2/128 dev lo nodad` makes one) or end the other";
    case EADDRNOTAVAIL:
      if (v6_is_off(address)) return no_v6_sentence(address);
      return "address " + to_text(address) +
             " does not belong to this machine, or is new and still being checked for duplicates; take one "
             "that "
             "`ip -6 addr` shows and does not call tentative";
    default:
      return "cannot bind " + where + ": " + reason();
  }
}

}  // namespace

std::string no_v6_sentence(const wire::Address& address) {
  return "address " + to_text(address) +
         ": IPv6 is switched off here; `sysctl -w net.ipv6.conf.all.disable_ipv6=0` allows it, or take an "
         "IPv4 "
         "address, such as 127.0.0.1";
}

std::string bind_sentence(const wire::Address& address, std::uint16_t port) {
  if (!wire::is_v4_mapped(address)) return bind_v6_sentence(address, port);
  const std::string where = to_text(address) + ", UDP port " + std::to_string(port);
  switch (errno) {
    case EADDRINUSE:
      return where +
             " is in use by another user's process; give this one an address of its own (any of "
             "127.0.0.0/8 on this machine: weft run --addr 127.0.0.2 -- ...) or end the other";
    case EADDRNOTAVAIL:
      return "address " + to_text(address) +
             " does not belong to this machine; take one that `ip addr` shows, "
             "or any of 127.0.0.0/8";
    default:
      return "cannot bind " + where + ": " + reason();
  }
}

}  // namespace weft::live
