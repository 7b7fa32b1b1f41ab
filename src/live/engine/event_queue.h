// Events for a program that waits on a file descriptor: a queue beside an eventfd in semaphore mode,
// one unit per event. Reading is the program's side (any thread, may block, obeys O_NONBLOCK); pushing
// is the shard's (under its ownership).
//
// Verbs lets a resource go only after every event about it that was taken has been acknowledged
// (ibv_get_cq_event(3)); events not yet taken vanish with the resource. The eventfd cannot take a unit
// back without racing with a reader, so a vanished event stays in the queue as a blank that readers
// skip.
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
  // False: the read failed (EAGAIN on a non-blocking descriptor, EINTR); errno tells.
  bool take(AsyncEvent& out);
  // `taken` events about a resource were acknowledged: wakes retire().
  void acknowledge(std::uint32_t& taken, std::uint32_t count);
  // Blanks the events about this resource, then waits until none that was taken is unacknowledged.
  void retire(const void* resource, const std::uint32_t& taken);

 private:
  explicit EventQueue(int fd) : fd_(fd) {}

  int fd_;
  std::mutex mutex_;
  std::condition_variable acknowledged_;
  std::deque<AsyncEvent> events_;
};

class CompletionChannel {
 public:
  explicit CompletionChannel(std::unique_ptr<EventQueue> q) : queue(std::move(q)) {}
  std::unique_ptr<EventQueue> queue;
  std::uint32_t users = 0;  // completion queues that report here
};

}  // namespace weft::live
