// Addresses as sockets write them, and as the wire does (an IPv4 address as ::ffff:a.b.c.d).
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "core/wire/ip.h"
#include "core/wire/packet.h"
#include "live/wires/addresses.h"

namespace weft::live::rdmacm {

struct Endpoint {
  wire::Address address;  // all zero: any
  std::uint16_t port = 0;
  bool any() const { return address == wire::Address{} || address == wire::Address::v4(0, 0, 0, 0); }
  bool group() const { return wire::is_group(address); }
};

// Nothing if it is of a family that weft does not speak.
inline std::optional<Endpoint> endpoint_of(const sockaddr* from) {
  Endpoint out;
  if (from->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, from, sizeof in);
    std::uint8_t b[4];
    std::memcpy(b, &in.sin_addr, sizeof b);
    out.address = wire::Address::v4(b[0], b[1], b[2], b[3]);
    out.port = ntohs(in.sin_port);
    return out;
  }
  if (from->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 in{};
  std::memcpy(&in, from, sizeof in);
  std::copy_n(in.sin6_addr.s6_addr, out.address.bytes.size(), out.address.bytes.begin());
  out.port = ntohs(in.sin6_port);
  return out;
}

// Writes it in the family that the program uses, or in that of the address where this one has no place in it.
// A link-local address is shown with its interface.
inline void write_endpoint(const Endpoint& from, sa_family_t family, sockaddr_storage& to,
                           std::uint32_t interface = 0) {
  to = {};
  if (family == AF_INET6 || (!from.any() && !wire::is_v4_mapped(from.address))) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(from.port);
    std::copy(from.address.bytes.begin(), from.address.bytes.end(), in.sin6_addr.s6_addr);
    if (is_link_local(from.address)) in.sin6_scope_id = interface;
    std::memcpy(&to, &in, sizeof in);
    return;
  }
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(from.port);
  std::memcpy(&in.sin_addr, &from.address.bytes[12], 4);
  std::memcpy(&to, &in, sizeof in);
}

}  // namespace weft::live::rdmacm
