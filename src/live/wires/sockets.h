// IPv4 sockets as all wires use them: addresses in and out, options, what a datagram brings along.
#pragma once
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "core/wire/packet.h"
#include "live/wires/wire.h"

namespace weft::live {

inline sockaddr_in to_sockaddr(const wire::Address& a, std::uint16_t port) {
  sockaddr_in sa{};
  sa.sin_family = AF_INET;
  sa.sin_port = htons(port);
  std::memcpy(&sa.sin_addr, &a.bytes[12], 4);
  return sa;
}

inline wire::Address from_sockaddr(const sockaddr_in& sa) {
  std::array<std::uint8_t, 4> b{};
  std::memcpy(b.data(), &sa.sin_addr, 4);
  return wire::Address::v4(b[0], b[1], b[2], b[3]);
}

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

inline msghdr received_into(iovec& data, sockaddr_in& source, ReceiveControl& control) {
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
inline RxTrain train_of(mmsghdr& message, const sockaddr_in& source) {
  RxTrain t;
  msghdr& m = message.msg_hdr;
  t.data = static_cast<std::uint8_t*>(m.msg_iov->iov_base);
  t.bytes = message.msg_len;
  t.frame_size = t.bytes;
  t.source = from_sockaddr(source);
  t.source_port = ntohs(source.sin_port);
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
      int segment = 0;
      std::memcpy(&segment, CMSG_DATA(c), sizeof segment);
      if (segment > 0) t.frame_size = std::min(t.bytes, static_cast<std::uint32_t>(segment));
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      std::memcpy(&t.tos, CMSG_DATA(c), sizeof t.tos);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) {
      int ttl = 0;
      std::memcpy(&ttl, CMSG_DATA(c), sizeof ttl);
      t.ttl = static_cast<std::uint8_t>(ttl);
    }
  }
  return t;
}

}  // namespace weft::live
