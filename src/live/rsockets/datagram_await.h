// Waiting for a datagram socket: for its queue pair, its UDP socket, or another thread that has changed
// something.
#pragma once
#include <algorithm>
#include <cerrno>

#include "live/rsockets/datagrams.h"

namespace weft::live::rsockets {

// As Stream::await().
template <class Done>
int Datagrams::await(std::unique_lock<std::mutex>& lock, bool wait, const Done& done,
                     const Clock::time_point* until) {
  constexpr std::chrono::microseconds kLooks{10};
  Clock::time_point sleep_at{};  // not chosen
  for (bool udp = false;;) {
    look(udp);
    if (closed_) return EBADF;
    if (done()) return 0;
    if (!wait) {
      if (udp) return EAGAIN;
      udp = true;
      continue;
    }
    const auto now = Clock::now();
    if (until != nullptr && now >= *until) return ETIMEDOUT;
    if (sleep_at == Clock::time_point{}) sleep_at = now + kLooks;
    if (now < sleep_at) {
      lock.unlock();
      lock.lock();
      continue;
    }
    if (completions_ != nullptr) completions_->arm();
    look(true);
    if (closed_ || done()) continue;
    if (!bell_.try_enter()) {
      bell_.await_heard(lock);
      continue;
    }
    Wake wake;
    fill(wake);
    int limit = -1;
    if (until != nullptr) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - now).count();
      limit = static_cast<int>(std::min<long>(left, 60'000));
    }
    lock.unlock();
    const int n = ::poll(wake.fds, 3, limit);
    const int failed = n < 0 ? errno : 0;
    lock.lock();
    bell_.leave();
    if (failed != 0) return failed;
    udp = wake.fds[0].revents != 0;
    sleep_at = {};
  }
}

template <class Done>
int Datagrams::await_within(std::unique_lock<std::mutex>& lock, bool wait, const Done& done,
                            const std::optional<Clock::duration>& within) {
  if (!within) return await(lock, wait, done);
  const auto until = Clock::now() + *within;
  const int failed = await(lock, wait, done, &until);
  return failed == ETIMEDOUT ? EAGAIN : failed;
}

}  // namespace weft::live::rsockets
