#include "live/engine/event_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "live/engine/records.h"

namespace weft::live {

std::unique_ptr<EventQueue> EventQueue::open() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  return fd < 0 ? nullptr : std::unique_ptr<EventQueue>(new EventQueue(fd));
}

EventQueue::~EventQueue() { close(fd_); }

void EventQueue::push(const AsyncEvent& event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
  }
  const std::uint64_t one = 1;
  // Fails only with the counter at 2^64 - 2.
  [[maybe_unused]] const ssize_t n = write(fd_, &one, sizeof one);
}

bool EventQueue::take(AsyncEvent& out) {
  for (;;) {
    std::uint64_t unit = 0;
    if (read(fd_, &unit, sizeof unit) != static_cast<ssize_t>(sizeof unit)) return false;
    const std::lock_guard lock(mutex_);
    if (events_.empty()) continue;
    out = events_.front();
    events_.pop_front();
    if (out.cq == nullptr && out.srq == nullptr && out.qp == nullptr) continue;  // its resource is gone
    ++taken_of(out);
    return true;
  }
}

void EventQueue::acknowledge(std::uint32_t& taken, std::uint32_t count) {
  {
    const std::lock_guard lock(mutex_);
    taken -= count < taken ? count : taken;
  }
  acknowledged_.notify_all();
}

void EventQueue::retire(const void* resource, const std::uint32_t& taken) {
  std::unique_lock lock(mutex_);
  for (AsyncEvent& e : events_) {
    if (e.cq == resource || e.srq == resource || e.qp == resource) e = {};
  }
  acknowledged_.wait(lock, [&] { return taken == 0; });
}

}  // namespace weft::live
