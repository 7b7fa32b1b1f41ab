// IPv4 sockets as all wires use them: addresses in and out, options, control messages.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "core/wire/packet.h"

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

}  // namespace weft::live
