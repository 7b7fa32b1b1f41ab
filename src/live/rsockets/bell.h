// Wakes every thread that sleeps about one rsocket. Such threads sleep in poll(), about descriptors of which
// each may be quiet again before they look: one of them has taken what all waited for. Who changes something
// rings, so that all look again.
//
// A ring is heard by everybody who slept when it rang; nobody falls asleep before it has been heard. So a
// thread that goes back to sleep cannot hear its own ring for ever, and nobody misses one.
//
// All calls with the lock of the rsocket held.
#pragma once
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>

namespace weft::live::rsockets {

class Bell {
 public:
  Bell() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category());
  }
  ~Bell() { close(fd_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  int descriptor() const { return fd_; }
  void ring() {
    if (sleeping_ == 0 || to_hear_ != 0) return;
    to_hear_ = sleeping_;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(fd_, &one, sizeof one);
  }
  // False: the last ring has not been heard by everybody. Who sleeps about several rsockets leaves the others
  // then and begins anew, because it must not wait for one while others wait for it.
  bool try_enter() {
    if (to_hear_ != 0) return false;
    ++sleeping_;
    return true;
  }
  void await_heard(std::unique_lock<std::mutex>& lock) {
    heard_.wait(lock, [&] { return to_hear_ == 0; });
  }
  void leave() {
    --sleeping_;
    if (to_hear_ == 0 || --to_hear_ != 0) return;
    std::uint64_t all = 0;
    [[maybe_unused]] const ssize_t n = read(fd_, &all, sizeof all);
    heard_.notify_all();
  }

 private:
  int fd_;
  unsigned sleeping_ = 0;
  unsigned to_hear_ = 0;
  std::condition_variable heard_;
};

}  // namespace weft::live::rsockets
