// UDP sockets as all wires use them: addresses in and out, options, what a datagram brings along. A socket is
// of one family, that of the address that it is bound to.
#pragma once
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/wire/packet.h"
#include "live/wires/addresses.h"
#include "live/wires/wire.h"

namespace weft::live {

// What the families call the same.
struct FamilyOptions {
  int family;
  int level;
  int traffic_class;     // of a socket, and of one datagram
  int hop_limit;         // of a socket
  int hop_limit_of_one;  // of one datagram, either way
  int show_traffic_class;
  int show_hop_limit;
};
inline constexpr FamilyOptions kIpv4Options{AF_INET, IPPROTO_IP, IP_TOS,    IP_TTL,
                                            IP_TTL,  IP_RECVTOS, IP_RECVTTL};
inline constexpr FamilyOptions kIpv6Options{AF_INET6,          IPPROTO_IPV6,  IPV6_TCLASS,
                                            IPV6_UNICAST_HOPS, IPV6_HOPLIMIT, IPV6_RECVTCLASS,
                                            IPV6_RECVHOPLIMIT};
inline const FamilyOptions& options_of(const wire::Address& a) {
  return wire::is_v4_mapped(a) ? kIpv4Options : kIpv6Options;
}

// An address and port of either family.
union SocketAddress {
  sockaddr_in v4;
  sockaddr_in6 v6;

  sa_family_t family() const { return v4.sin_family; }
  sockaddr* generic() { return reinterpret_cast<sockaddr*>(this); }
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(this); }
  socklen_t size() const { return family() == AF_INET ? sizeof v4 : sizeof v6; }
};

// `interface`: where a link-local address is.
inline SocketAddress to_sockaddr(const wire::Address& a, std::uint16_t port, std::uint32_t interface = 0) {
  SocketAddress sa;
  if (wire::is_v4_mapped(a)) {
    sa.v4 = {};
    sa.v4.sin_family = AF_INET;
    sa.v4.sin_port = htons(port);
    std::memcpy(&sa.v4.sin_addr, &a.bytes[12], 4);
    return sa;
  }
  sa.v6 = {};
  sa.v6.sin6_family = AF_INET6;
  sa.v6.sin6_port = htons(port);
  std::memcpy(&sa.v6.sin6_addr, a.bytes.data(), a.bytes.size());
  const bool of_a_link = is_link_local(a) || (a.bytes[0] == 0xFF && (a.bytes[1] & 0x0FU) <= 2);
  sa.v6.sin6_scope_id = of_a_link ? interface : 0;
  return sa;
}

inline wire::Address from_sockaddr(const SocketAddress& sa) {
  wire::Address a;
  if (sa.family() == AF_INET) {
    std::array<std::uint8_t, 4> b{};
    std::memcpy(b.data(), &sa.v4.sin_addr, 4);
    return wire::Address::v4(b[0], b[1], b[2], b[3]);
  }
  std::memcpy(a.bytes.data(), &sa.v6.sin6_addr, a.bytes.size());
  return a;
}

// Both families keep the port in the same place.
inline std::uint16_t port_of(const SocketAddress& sa) { return ntohs(sa.v4.sin_port); }
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));

inline bool set_option(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

// As much socket memory as we are allowed: the privileged call first.
inline void enlarge(int fd, int forced, int ordinary, std::uint32_t bytes) {
  const int value = static_cast<int>(bytes);
  if (!set_option(fd, SOL_SOCKET, forced, value)) set_option(fd, SOL_SOCKET, ordinary, value);
}

// Where the kernel puts what it tells about a datagram.
struct alignas(cmsghdr) ReceiveControl {
  static constexpr std::size_t kBytes = 128;
  std::array<char, kBytes> bytes;
};

inline msghdr received_into(iovec& data, SocketAddress& source, ReceiveControl& control) {
  msghdr m{};
  m.msg_name = &source;
  m.msg_namelen = sizeof source;
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  m.msg_control = &control;
  m.msg_controllen = sizeof control;
  return m;
}

// The train that was received into it.
inline RxTrain train_of(mmsghdr& message, const SocketAddress& source) {
  RxTrain t;
  msghdr& m = message.msg_hdr;
  t.data = static_cast<std::uint8_t*>(m.msg_iov->iov_base);
  t.bytes = message.msg_len;
  t.frame_size = t.bytes;
  t.source = from_sockaddr(source);
  t.source_port = port_of(source);
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
      int segment = 0;
      std::memcpy(&segment, CMSG_DATA(c), sizeof segment);
      if (segment > 0) t.frame_size = std::min(t.bytes, static_cast<std::uint32_t>(segment));
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      std::memcpy(&t.tos, CMSG_DATA(c), sizeof t.tos);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      int tos = 0;
      std::memcpy(&tos, CMSG_DATA(c), sizeof tos);
      t.tos = static_cast<std::uint8_t>(tos);
    } else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
               (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT)) {
      int ttl = 0;
      std::memcpy(&ttl, CMSG_DATA(c), sizeof ttl);
      t.ttl = static_cast<std::uint8_t>(ttl);
    }
  }
  return t;
}

}  // namespace weft::live
