// A program that knows sockets and nothing of RDMA: an echo over TCP, several connections at a time by
// poll().
//
//   weft-plain-tcp serve ADDRESS PORT CONNECTIONS
//   weft-plain-tcp ask ADDRESS PORT CONNECTIONS
//
// With librspreload.so its sockets are rsockets. It fails where they are the kernel's all the same: the
// preloaded library opens another file for the number of an rsocket, so its bytes would not be seen to take
// another way.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

int over_rdma(int fd) {
  struct stat s {};
  if (fd < 0) fail("socket");
  if (fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode)) {
    std::fprintf(stderr, "descriptor %d is a socket of the kernel\n", fd);
    std::exit(1);
  }
  return fd;
}

void send_all(int fd, const std::uint8_t* from, std::size_t length) {
  while (length != 0) {
    const ssize_t n = send(fd, from, length, MSG_NOSIGNAL);
    if (n <= 0) fail("send");
    from += n;
    length -= static_cast<std::size_t>(n);
  }
}

int serve(const sockaddr_in& at, int connections) {
  const int listener = over_rdma(socket(AF_INET, SOCK_STREAM, 0));
  const int on = 1;
  if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) fail("setsockopt");
  if (bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) fail("bind");
  if (listen(listener, connections) != 0) fail("listen");
  std::vector<pollfd> fds{{listener, POLLIN, 0}};
  std::vector<std::uint8_t> some(65536);
  for (int done = 0; done < connections;) {
    if (poll(fds.data(), fds.size(), -1) < 0) fail("poll");
    if (fds[0].revents != 0) {
      fds.push_back({accept(listener, nullptr, nullptr), POLLIN, 0});
      if (fds.back().fd < 0) fail("accept");
    }
    for (pollfd& p : fds) {
      if (p.fd == listener || p.revents == 0) continue;
      const ssize_t n = recv(p.fd, some.data(), some.size(), 0);
      if (n < 0) fail("recv");
      if (n != 0) {
        send_all(p.fd, some.data(), static_cast<std::size_t>(n));
        continue;
      }
      if (close(p.fd) != 0) fail("close");
      p.fd = -1;
      ++done;
    }
    std::erase_if(fds, [](const pollfd& p) { return p.fd < 0; });
  }
  return close(listener);
}

int ask(const sockaddr_in& at, int connections) {
  constexpr std::size_t kBytes = 100'000;
  std::vector<int> ends;
  std::vector<std::uint8_t> out(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) out[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  for (int i = 0; i < connections; ++i) {
    ends.push_back(over_rdma(socket(AF_INET, SOCK_STREAM, 0)));
    if (connect(ends.back(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) fail("connect");
    const int on = 1;
    if (setsockopt(ends.back(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("setsockopt");
  }
  for (const int fd : ends) send_all(fd, out.data(), kBytes);
  for (const int fd : ends) {
    std::vector<std::uint8_t> back(kBytes);
    for (std::size_t got = 0; got < kBytes;) {
      const ssize_t n = recv(fd, back.data() + got, kBytes - got, 0);
      if (n <= 0) fail("recv");
      got += static_cast<std::size_t>(n);
    }
    if (back != out) fail("other bytes came back");
    if (shutdown(fd, SHUT_WR) != 0) fail("shutdown");
    if (recv(fd, back.data(), 1, 0) != 0) fail("the end");
    if (close(fd) != 0) fail("close");
  }
  std::printf("%d connections, every byte came back\n", connections);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[3])));
  if (inet_pton(AF_INET, argv[2], &at.sin_addr) != 1) return 2;
  const int connections = std::atoi(argv[4]);
  return std::string(argv[1]) == "serve" ? serve(at, connections) : ask(at, connections);
}
