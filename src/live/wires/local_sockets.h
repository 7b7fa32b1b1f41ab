// Unix sockets in the abstract name space, as processes of one host find each other by them: sequential
// packets, and a name that is free again when its process ends.
#pragma once
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace weft::live {

// What the names of all processes of an address begin with.
inline std::string names_of(const std::string& address, std::uint16_t port) {
  return "weft/" + address + ":" + std::to_string(port) + "/";
}

struct LocalName {
  sockaddr_un address{};
  socklen_t size = 0;

  explicit LocalName(const std::string& text) {
    address.sun_family = AF_UNIX;
    const std::size_t n = std::min(text.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, text.data(), n);
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  }
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&address); }
};

inline int open_local_socket() { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// Whose process is at the other end, as the kernel knows it.
inline bool is_ours(int fd) {
  ucred other{};
  socklen_t size = sizeof other;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

inline void close_and_forget(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

// Lets in who waits at a listener. It keeps a descriptor in reserve, to turn somebody away with when there is
// no other: a listener stays readable until somebody takes what waits there, and so keeps a thread awake.
class Doorkeeper {
 public:
  Doorkeeper() : spare_(open_local_socket()) {}
  ~Doorkeeper() { close_and_forget(spare_); }
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;

  // The next connection of one of our processes; -1: nobody is left whom we could let in now, or strangers
  // come and go so fast that they have to wait.
  int next(int listener) {
    for (int i = 0; i < kMostStrangers; ++i) {
      int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0 && is_ours(fd)) return fd;
      if (fd < 0 && ((errno != EMFILE && errno != ENFILE) || !turn_away(listener))) return -1;
      close_and_forget(fd);
    }
    return -1;
  }

 private:
  static constexpr int kMostStrangers = 32;

  bool turn_away(int listener) {
    close_and_forget(spare_);
    int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    const bool away = fd >= 0;
    close_and_forget(fd);
    spare_ = open_local_socket();
    return away;
  }

  int spare_;
};

}  // namespace weft::live
