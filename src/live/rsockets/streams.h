// For the tests of this folder: rsockets of one process and one address, which meet over its soft NIC.
#pragma once
#include <fcntl.h>
#include <rdma/rsocket.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "live/rdmacm/party.h"

namespace weft::live::rsockets {

using rdmacm::generic;
using rdmacm::socket_address;

// No test waits longer for anything.
constexpr int kLong = 20'000;

inline int poll_one(int fd, short events, int milliseconds = kLong) {
  pollfd p{fd, events, 0};
  return rpoll(&p, 1, milliseconds) == 1 ? p.revents : 0;
}

inline int listener(std::uint16_t port) {
  sockaddr_in at = socket_address(port);  // before the device is opened
  const int fd = rsocket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  if (fd < 0 || rsetsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      rbind(fd, generic(at), sizeof at) != 0 || rlisten(fd, 8) != 0)
    std::abort();
  return fd;
}

// Connects without waiting, so that one thread is both ends.
inline int begin_connect(std::uint16_t port) {
  sockaddr_in at = socket_address(port);  // before the device is opened
  const int fd = rsocket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || rfcntl(fd, F_SETFL, O_NONBLOCK) != 0) std::abort();
  if (rconnect(fd, generic(at), sizeof at) != -1 || errno != EINPROGRESS) std::abort();
  return fd;
}

inline int pending_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

struct Streams {
  explicit Streams(std::uint16_t port) : server(listener(port)) {
    a = begin_connect(port);
    b = raccept(server, nullptr, nullptr);
    if (b < 0 || poll_one(a, POLLOUT) != POLLOUT || poll_one(b, POLLOUT) != POLLOUT) std::abort();
    rfcntl(a, F_SETFL, 0);
  }
  ~Streams() {
    for (const int fd : {a, b, server}) {
      if (fd >= 0) rclose(fd);
    }
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  int server = -1;
  int a = -1;
  int b = -1;
};

inline std::string taken(int fd, std::size_t most = 4096, int flags = 0) {
  std::string s(most, '\0');
  const ssize_t n = rrecv(fd, s.data(), most, flags);
  s.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return s;
}

}  // namespace weft::live::rsockets
