// What the kernel's UDP gives on loopback without anything on top, the yardstick of `./dev bench live`:
//
//   raw_udp spinning SECONDS   half a round trip of 64 bytes, both ends asking again and again; microseconds
//   raw_udp blocking SECONDS   the same, both ends asleep in recv
//   raw_udp stream SECONDS     one way, trains of 15 x 4096 bytes with UDP_SEGMENT, received with UDP_GRO;
//   Gb/s
//
// Two processes, one core each where the machine has two. Ends by itself after SECONDS.
#include <arpa/inet.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace {

using Clock = std::chrono::steady_clock;

void pin(unsigned core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core % static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN)), &set);
  sched_setaffinity(0, sizeof set, &set);
}

sockaddr_in address(int host) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(4792);
  a.sin_addr.s_addr = htonl(0x7F000000U + static_cast<unsigned>(host));
  return a;
}

int open_socket(int host, int peer) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const sockaddr_in mine = address(host);
  const sockaddr_in theirs = address(peer);
  const int bytes = 8 << 20;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&mine), sizeof mine) != 0 ||
      connect(fd, reinterpret_cast<const sockaddr*>(&theirs), sizeof theirs) != 0) {
    std::fprintf(stderr, "raw_udp: port 4792 of 127.0.0.%d: %s\n", host, std::strerror(errno));
    std::exit(1);
  }
  return fd;
}

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

void ping_pong(bool first, bool spin, double seconds, int fd) {
  char message[64] = {};
  const int flags = spin ? MSG_DONTWAIT : 0;
  const auto began = Clock::now();
  long round_trips = 0;
  for (; seconds_since(began) < seconds; ++round_trips) {
    if (first && send(fd, message, sizeof message, 0) < 0) break;
    while (recv(fd, message, sizeof message, flags) < 0 && (errno == EAGAIN || errno == ECONNREFUSED)) {
      if (seconds_since(began) > seconds + 1) return;
    }
    if (!first) send(fd, message, sizeof message, 0);
  }
  if (first) std::printf("%.3f\n", seconds_since(began) * 1e6 / static_cast<double>(round_trips) / 2);
}

void stream(bool sender, double seconds, int fd) {
  constexpr int kFrame = 4096;
  std::vector<char> train(15 * kFrame);
  const auto began = Clock::now();
  if (sender) {
    setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &kFrame, sizeof kFrame);
    while (seconds_since(began) < seconds) send(fd, train.data(), train.size(), 0);
    return;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
  const timeval patience{0, 300'000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::vector<char> buffer(65536);
  double bytes = 0;
  auto first = began;
  auto last = began;
  while (seconds_since(began) < seconds + 0.5) {
    const ssize_t n = recv(fd, buffer.data(), buffer.size(), 0);
    if (n <= 0) continue;
    last = Clock::now();
    if (bytes == 0) first = last;
    bytes += static_cast<double>(n);
  }
  std::printf("%.3f\n", bytes * 8e-9 / std::chrono::duration<double>(last - first).count());
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc == 3 ? std::atof(argv[2]) : 0;
  const bool spinning = argc == 3 && std::strcmp(argv[1], "spinning") == 0;
  const bool blocking = argc == 3 && std::strcmp(argv[1], "blocking") == 0;
  const bool streaming = argc == 3 && std::strcmp(argv[1], "stream") == 0;
  if (seconds <= 0 || seconds > 60 || !(spinning || blocking || streaming)) {
    std::fprintf(stderr,
                 "raw_udp: say spinning, blocking or stream, and for how many seconds (at most 60).\n");
    return 2;
  }
  const pid_t child = fork();
  const bool parent = child != 0;
  pin(parent ? 0 : 1);
  const int fd = open_socket(parent ? 1 : 2, parent ? 2 : 1);
  if (parent) usleep(50'000);  // the other end binds
  if (streaming) {
    stream(!parent, seconds, fd);
  } else {
    // The end that answers stays a little longer than the end that asks.
    ping_pong(parent, spinning, parent ? seconds : seconds + 0.3, fd);
  }
  std::fflush(stdout);
  if (!parent) _exit(0);
  if (blocking) kill(child, SIGTERM);  // it may be asleep
  waitpid(child, nullptr, 0);
  return 0;
}
