#include "live/engine/event_queue.h"

#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <new>

#include "live/engine/records.h"

namespace weft::live {

std::unique_ptr<EventQueue> EventQueue::open() {
  const int fd = eventfd(0, EFD_CLOEXEC);
  return fd < 0 ? nullptr : std::unique_ptr<EventQueue>(new EventQueue(fd));
}

EventQueue::~EventQueue() { close(fd_); }

void EventQueue::push(const AsyncEvent& event) {
  const std::lock_guard lock(mutex_);
  try {
    events_.push_back(event);
  } catch (const std::bad_alloc&) {
    return;  // a program without memory misses an event; the shard goes on
  }
  raise();
}

void EventQueue::raise() {
  const std::uint64_t one = 1;
  // Fails only with the counter at 2^64 - 2.
  [[maybe_unused]] const ssize_t n = write(fd_, &one, sizeof one);
}

// Never blocks, whatever the descriptor's flags: a reader on its way to the lock may have emptied it.
void EventQueue::quiet_if_empty() {
  if (!events_.empty()) return;
  std::uint64_t all = 0;
  const iovec into{&all, sizeof all};
  [[maybe_unused]] const ssize_t n = preadv2(fd_, &into, 1, -1, RWF_NOWAIT);
}

// Waits in read(): it obeys O_NONBLOCK, goes on after a signal as the program asked (SA_RESTART), and a
// thread may be cancelled in it.
bool EventQueue::take(AsyncEvent& out) {
  for (bool emptied = false;; emptied = true) {
    {
      const std::lock_guard lock(mutex_);
      if (!events_.empty()) {
        out = events_.front();
        events_.pop_front();
        ++taken_of(out);
        if (emptied && !events_.empty()) raise();
        quiet_if_empty();
        return true;
      }
    }
    std::uint64_t all = 0;
    if (read(fd_, &all, sizeof all) != static_cast<ssize_t>(sizeof all)) return false;
  }
}

// Wakes under the lock: as soon as it is released, the waiter may be gone and this queue with it.
void EventQueue::acknowledge(std::uint32_t& taken, std::uint32_t count) {
  const std::lock_guard lock(mutex_);
  taken -= count < taken ? count : taken;
  acknowledged_.notify_all();
}

void EventQueue::retire(const void* resource, const std::uint32_t& taken) {
  std::unique_lock lock(mutex_);
  const auto about = [&](const AsyncEvent& e) {
    return e.cq == resource || e.srq == resource || e.qp == resource;
  };
  if (std::erase_if(events_, about) != 0) quiet_if_empty();
  acknowledged_.wait(lock, [&] { return taken == 0; });
}

}  // namespace weft::live
