// Completion and asynchronous events on their way to a program: a WaitQueue, and what counts as about what.
// Pushing is the shards', each under its ownership.
#pragma once
#include <atomic>
#include <memory>

#include "live/engine/context.h"
#include "live/engine/wait_queue.h"

namespace weft::live {

class EventQueue {
 public:
  static std::unique_ptr<EventQueue> open();  // nullptr: no file descriptor left; errno tells
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  int descriptor() const { return queue_->descriptor(); }
  void push(const AsyncEvent& event) { queue_->push(event); }
  bool take(AsyncEvent& out);
  void acknowledge(std::uint32_t& taken, std::uint32_t count) { queue_->acknowledge(taken, count); }
  void retire(const void* resource, const std::uint32_t& taken);

 private:
  explicit EventQueue(std::unique_ptr<WaitQueue<AsyncEvent>> queue) : queue_(std::move(queue)) {}
  std::unique_ptr<WaitQueue<AsyncEvent>> queue_;
};

class CompletionChannel {
 public:
  CompletionChannel(std::unique_ptr<EventQueue> q, const Context* o) : queue(std::move(q)), owner(o) {}
  std::unique_ptr<EventQueue> queue;
  const Context* owner;
  std::uint32_t users = 0;               // completion queues that report here
  std::atomic<std::uint32_t> shards{0};  // of several: those that have queue pairs of these queues
};

}  // namespace weft::live
