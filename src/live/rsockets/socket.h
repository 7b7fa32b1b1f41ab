// What every rsocket is to the calls of <rdma/rsocket.h>: a descriptor, a lock, a bell, and the calls
// themselves. Stream and Datagrams are its two kinds.
//
// Answers are 0 or a count, or an error number below zero (-EAGAIN). A call that a kind has no use for keeps
// the answer that stands here.
//
// Threads: any call from any thread. One sends and one receives at a time, and both look at completions, so
// what both need is under `mutex_`. Whoever waits sleeps without it.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "live/rsockets/bell.h"

namespace weft::live::rsockets {

using Clock = std::chrono::steady_clock;

// The descriptors that a thread sleeps on for one rsocket, and what it found.
struct Wake {
  pollfd fds[3] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}};
};

struct Where {
  sockaddr_storage address{};
  socklen_t length = 0;
  bool cut = false;  // a datagram that was longer than the room for it
};

class Socket {
 public:
  Socket() = default;
  virtual ~Socket() = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  virtual int descriptor() const = 0;
  virtual int bind(const sockaddr* address, socklen_t length) = 0;
  virtual int listen(int) { return -EOPNOTSUPP; }
  virtual int accept(std::shared_ptr<Socket>&, Where&) { return -EOPNOTSUPP; }
  virtual int connect(const sockaddr* address, socklen_t length) = 0;
  virtual int shutdown(int how) = 0;
  virtual void close() = 0;
  virtual ssize_t receive(const iovec* parts, std::size_t count, int flags, Where* from) = 0;
  virtual ssize_t send(const iovec* parts, std::size_t count, int flags, const Where* to) = 0;
  virtual int own_name(Where& out) = 0;
  virtual int peer_name(Where& out) = 0;
  virtual int set_option(int level, int name, const void* value, socklen_t length) = 0;
  virtual int get_option(int level, int name, void* value, socklen_t& length) = 0;
  virtual off_t map(void*, std::size_t, int, off_t) { return -EOPNOTSUPP; }
  virtual int unmap(void*, std::size_t) { return -EOPNOTSUPP; }
  virtual ssize_t write_at(const void*, std::size_t, off_t, int) { return -EOPNOTSUPP; }

  int flags() const { return flags_; }
  void set_flags(int flags) { flags_ = flags & O_NONBLOCK; }

  // --- rpoll ---
  // What of `events` is so now; POLLERR and POLLHUP unasked.
  virtual short ready(short events) = 0;
  // False: somebody has not yet heard a ring; look again. True: `wake` has what to sleep on, and leave()
  // follows; nothing that came before is missed if ready() is asked once more.
  virtual bool enter(Wake& wake) = 0;
  virtual void leave(const Wake& wake) = 0;

 protected:
  bool waits(int call_flags) const { return (flags_ & O_NONBLOCK) == 0 && (call_flags & MSG_DONTWAIT) == 0; }

  std::mutex mutex_;
  Bell bell_;
  int flags_ = 0;
};

inline std::size_t bytes_of(const iovec* parts, std::size_t count) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += parts[i].iov_len;
  return sum;
}

}  // namespace weft::live::rsockets
