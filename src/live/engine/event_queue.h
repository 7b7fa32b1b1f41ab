// Events for a program that waits on a file descriptor: a queue beside an eventfd that is readable exactly
// while the queue holds something. Reading is the program's side (any thread, may block, obeys O_NONBLOCK);
// pushing is the shard's (under its ownership).
//
// Verbs lets a resource go only after every event about it that was taken has been acknowledged
// (ibv_get_cq_event(3)); events not yet taken vanish with the resource, and the descriptor becomes quiet if
// they were the last. Queue and descriptor change together under the lock. One reader at a time may stand
// between the two: it has emptied the descriptor and is about to take the event; if more are left, it makes
// the descriptor readable again.
//
// Every push adds to the eventfd, so that a program that waits for edges (EPOLLET) sees one per event.
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "live/engine/context.h"

namespace weft::live {

class EventQueue {
 public:
  static std::unique_ptr<EventQueue> open();  // nullptr: no file descriptor left; errno tells
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  int descriptor() const { return fd_; }
  void push(const AsyncEvent& event);
  // False: there is none and the descriptor is non-blocking (EAGAIN), or waiting failed (EINTR, EBADF); errno
  // tells.
  bool take(AsyncEvent& out);
  // `taken` events about a resource were acknowledged: wakes retire().
  void acknowledge(std::uint32_t& taken, std::uint32_t count);
  // Drops the events about this resource, then waits until none that was taken is unacknowledged.
  void retire(const void* resource, const std::uint32_t& taken);

 private:
  explicit EventQueue(int fd) : fd_(fd) {}
  void raise();
  void quiet_if_empty();

  int fd_;
  std::mutex mutex_;
  std::condition_variable acknowledged_;
  std::deque<AsyncEvent> events_;
};

class CompletionChannel {
 public:
  CompletionChannel(std::unique_ptr<EventQueue> q, const Context* o) : queue(std::move(q)), owner(o) {}
  std::unique_ptr<EventQueue> queue;
  const Context* owner;
  std::uint32_t users = 0;  // completion queues that report here
};

}  // namespace weft::live
