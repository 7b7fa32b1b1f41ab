// A queue beside an eventfd that is readable exactly while the queue holds something, for programs that wait
// on file descriptors. Reading is the program's side (any thread, may block, obeys O_NONBLOCK); pushing is
// the engine's, which never waits here.
//
// Verbs and RDMA-CM let a resource go only after every event about it that was taken has been acknowledged
// (ibv_get_cq_event(3), rdma_destroy_id(3)); events not yet taken vanish with the resource, and the
// descriptor becomes quiet if they were the last. Queue and descriptor change together under the lock, but
// for those who read the descriptor: a reader may have emptied it and be about to take the event. If more are
// left, it makes the descriptor readable again. While somebody reads, nobody else empties the descriptor: it
// is the reader's to find it readable and the queue empty. So whoever empties it never waits for what another
// one has read, and needs no reading that does not wait, which kernels before 5.8 do not have for an eventfd.
//
// Every push adds to the eventfd, so that a program that waits for edges (EPOLLET) sees one per event.
#pragma once
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace weft::live {

template <class Entry>
class WaitQueue {
 public:
  // nullptr: no file descriptor left; errno tells.
  static std::unique_ptr<WaitQueue> open() {
    const int fd = eventfd(0, EFD_CLOEXEC);
    return fd < 0 ? nullptr : std::unique_ptr<WaitQueue>(new WaitQueue(fd));
  }
  ~WaitQueue() { close(fd_); }
  WaitQueue(const WaitQueue&) = delete;
  WaitQueue& operator=(const WaitQueue&) = delete;

  int descriptor() const { return fd_; }

  void push(Entry event) {
    const std::lock_guard lock(mutex_);
    try {
      events_.push_back(std::move(event));
    } catch (const std::bad_alloc&) {
      return;  // a program without memory misses an event; the shard goes on
    }
    raise();
  }

  // False: there is none and the descriptor is non-blocking (EAGAIN), or waiting failed (EINTR, EBADF); errno
  // tells. `count` is called under the lock with what is taken: events that were taken are counted there.
  // It waits in read(): it obeys O_NONBLOCK, goes on after a signal as the program asked (SA_RESTART), and a
  // thread may be cancelled in it.
  template <class Count>
  bool take(Entry& out, const Count& count) {
    for (bool emptied = false;; emptied = true) {
      {
        const std::lock_guard lock(mutex_);
        if (!events_.empty()) {
          out = std::move(events_.front());
          events_.pop_front();
          count(out);
          if (emptied && !events_.empty()) raise();
          quiet_if_empty();
          return true;
        }
        ++readers_;
      }
      const Reader reader(*this);
      std::uint64_t all = 0;
      if (read(fd_, &all, sizeof all) != static_cast<ssize_t>(sizeof all)) return false;
    }
  }

  // `taken` events about a resource were acknowledged: wakes retire(). It does so under the lock: as soon as
  // that is released, the waiter may be gone and this queue with it.
  void acknowledge(std::uint32_t& taken, std::uint32_t count) {
    const std::lock_guard lock(mutex_);
    taken -= count < taken ? count : taken;
    acknowledged_.notify_all();
  }

  // Drops the events that `about` names, then waits until none that was taken is unacknowledged.
  template <class About>
  void retire(const About& about, const std::uint32_t& taken) {
    std::unique_lock lock(mutex_);
    if (std::erase_if(events_, about) != 0) quiet_if_empty();
    acknowledged_.wait(lock, [&] { return taken == 0; });
  }

  // Takes the events that `about` names out, in their order; they were not taken by the program.
  template <class About>
  std::vector<Entry> withdraw(const About& about) {
    const std::lock_guard lock(mutex_);
    std::vector<Entry> out;
    for (const Entry& e : events_) {
      if (about(e)) out.push_back(e);
    }
    if (std::erase_if(events_, about) != 0) quiet_if_empty();
    return out;
  }
  // The first of them, for who lets a resource go: that needs no memory. False: there is none.
  template <class About>
  bool withdraw_one(const About& about, Entry& out) {
    const std::lock_guard lock(mutex_);
    const auto it = std::find_if(events_.begin(), events_.end(), about);
    if (it == events_.end()) return false;
    out = std::move(*it);
    events_.erase(it);
    quiet_if_empty();
    return true;
  }
  void await_acknowledged(const std::uint32_t& taken) {
    std::unique_lock lock(mutex_);
    acknowledged_.wait(lock, [&] { return taken == 0; });
  }

 private:
  explicit WaitQueue(int fd) : fd_(fd) {}
  void raise() {
    const std::uint64_t one = 1;
    // Fails only with the counter at 2^64 - 2.
    [[maybe_unused]] const ssize_t n = write(fd_, &one, sizeof one);
  }
  void quiet_if_empty() {
    if (!events_.empty() || readers_ != 0) return;
    pollfd p{fd_, POLLIN, 0};
    if (poll(&p, 1, 0) != 1) return;
    std::uint64_t all = 0;
    [[maybe_unused]] const ssize_t n = read(fd_, &all, sizeof all);
  }
  // A thread between the lock and its read(), or in it; also one that is cancelled there.
  struct Reader {
    explicit Reader(WaitQueue& q) : queue(q) {}
    ~Reader() {
      const int kept = errno;
      const std::lock_guard lock(queue.mutex_);
      --queue.readers_;
      queue.quiet_if_empty();
      errno = kept;
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    WaitQueue& queue;
  };

  int fd_;
  std::mutex mutex_;
  std::condition_variable acknowledged_;
  std::deque<Entry> events_;
  std::uint32_t readers_ = 0;
};

}  // namespace weft::live
