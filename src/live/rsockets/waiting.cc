// rpoll() and rselect(): descriptors of any kind, rsockets among them. Over an rsocket one cannot sleep on
// its descriptor: what makes it ready is in completions, which somebody has to take. So whoever waits looks
// at all rsockets, sleeps on what may change them, and looks again.
#include <rdma/rsocket.h>
#include <sys/select.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "live/rdmacm/edge.h"
#include "live/rsockets/table.h"

namespace weft::live::rsockets {
namespace {

// As long as one looks before one sleeps (rsocket(7)).
constexpr std::chrono::microseconds kLooks{10};

class Waiting {
 public:
  Waiting(pollfd* fds, nfds_t count) : fds_(fds), count_(count), sockets_(count), wakes_(count) {
    for (nfds_t i = 0; i < count; ++i) {
      if (fds[i].fd >= 0) sockets_[i] = Table::all().find(fds[i].fd);
      any_ = any_ || sockets_[i] != nullptr;
    }
  }
  bool any() const { return any_; }

  // How many are ready, now; -errno.
  int look() {
    int ready = 0;
    plain_.clear();
    for (nfds_t i = 0; i < count_; ++i) {
      fds_[i].revents = sockets_[i] != nullptr ? sockets_[i]->ready(fds_[i].events) : short{0};
      ready += fds_[i].revents != 0 ? 1 : 0;
      if (sockets_[i] == nullptr) plain_.push_back({fds_[i].fd, fds_[i].events, 0});
    }
    if (plain_.empty()) return ready;
    if (::poll(plain_.data(), plain_.size(), 0) < 0) return -errno;
    std::size_t next = 0;
    for (nfds_t i = 0; i < count_; ++i) {
      if (sockets_[i] != nullptr) continue;
      fds_[i].revents = plain_[next++].revents;
      ready += fds_[i].revents != 0 ? 1 : 0;
    }
    return ready;
  }

  // Sleeps until something may have changed. 0, or -errno.
  int sleep(int milliseconds) {
    nfds_t entered = 0;
    int failed = 0;
    bool all = true;
    for (; all && entered < count_; ++entered) {
      if (sockets_[entered] != nullptr) all = sockets_[entered]->enter(wakes_[entered]);
      if (!all) break;
    }
    // What came before the last look at it is in it; what comes later wakes us.
    if (all && look() == 0) {
      std::vector<pollfd> on = plain_;
      for (nfds_t i = 0; i < count_; ++i) {
        if (sockets_[i] != nullptr) on.insert(on.end(), std::begin(wakes_[i].fds), std::end(wakes_[i].fds));
      }
      if (::poll(on.data(), on.size(), milliseconds) < 0) failed = -errno;
    }
    for (nfds_t i = 0; i < entered; ++i) {
      if (sockets_[i] != nullptr) sockets_[i]->leave(wakes_[i]);
    }
    if (!all) std::this_thread::yield();
    return failed;
  }

 private:
  pollfd* fds_;
  nfds_t count_;
  bool any_ = false;
  std::vector<std::shared_ptr<Socket>> sockets_;
  std::vector<Wake> wakes_;
  std::vector<pollfd> plain_;
};

int wait_for(pollfd* fds, nfds_t count, int timeout) {
  Waiting w(fds, count);
  if (!w.any()) {
    const int n = ::poll(fds, count, timeout);
    return n < 0 ? -errno : n;
  }
  const auto begin = Clock::now();
  std::optional<Clock::time_point> until;
  if (timeout >= 0) until = begin + std::chrono::milliseconds(timeout);
  for (;;) {
    const int n = w.look();
    if (n != 0) return n;
    const auto now = Clock::now();
    if (until && now >= *until) return 0;
    if (now < begin + kLooks) continue;
    int left = -1;
    if (until) left = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(*until - now).count());
    if (const int failed = w.sleep(left); failed != 0) return failed;
  }
}

// --- rselect ---

bool in(const fd_set* set, int fd) { return set != nullptr && FD_ISSET(fd, set); }

int select_with(int count, fd_set* reads, fd_set* writes, fd_set* others, const timeval* limit) {
  if (count < 0 || count > FD_SETSIZE) return -EINVAL;
  if (limit != nullptr && (limit->tv_sec < 0 || limit->tv_usec < 0)) return -EINVAL;
  std::vector<pollfd> fds;
  for (int fd = 0; fd < count; ++fd) {
    const unsigned events =
        (in(reads, fd) ? POLLIN : 0U) | (in(writes, fd) ? POLLOUT : 0U) | (in(others, fd) ? POLLPRI : 0U);
    if (events != 0) fds.push_back({fd, static_cast<short>(events), 0});
  }
  int timeout = -1;
  if (limit != nullptr) {
    const auto ms = std::min<long long>(limit->tv_sec, 1'000'000) * 1000LL + (limit->tv_usec + 999) / 1000;
    timeout = static_cast<int>(ms);
  }
  const int n = wait_for(fds.data(), fds.size(), timeout);
  if (n < 0) return n;
  for (const pollfd& p : fds) {
    if ((p.revents & POLLNVAL) != 0) return -EBADF;
  }
  int found = 0;
  const auto keep = [&](fd_set* set, const pollfd& p, int wanted) {
    if (!in(set, p.fd)) return;
    if ((p.revents & wanted) != 0)
      ++found;
    else
      FD_CLR(p.fd, set);
  };
  for (const pollfd& p : fds) {
    keep(reads, p, POLLIN | POLLHUP | POLLERR);
    keep(writes, p, POLLOUT | POLLERR);
    keep(others, p, POLLPRI);
  }
  return found;
}

template <class Call>
int counted(const Call& call) {
  int answer = 0;
  const int failed = rdmacm::at_edge([&] {
    answer = call();
    return answer < 0 ? -answer : 0;
  });
  return failed != 0 ? -1 : answer;
}

}  // namespace
}  // namespace weft::live::rsockets

using namespace weft::live::rsockets;

WEFT_EXPORT int rpoll(pollfd* fds, nfds_t count, int timeout) {
  return counted([&] { return wait_for(fds, count, timeout); });
}

WEFT_EXPORT int rselect(int count, fd_set* reads, fd_set* writes, fd_set* others, timeval* limit) {
  return counted([&] { return select_with(count, reads, writes, others, limit); });
}
