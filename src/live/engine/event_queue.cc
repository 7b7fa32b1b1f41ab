#include "live/engine/event_queue.h"

#include "live/engine/records.h"

namespace weft::live {

std::unique_ptr<EventQueue> EventQueue::open() {
  auto queue = WaitQueue<AsyncEvent>::open();
  return queue == nullptr ? nullptr : std::unique_ptr<EventQueue>(new EventQueue(std::move(queue)));
}

bool EventQueue::take(AsyncEvent& out) {
  return queue_->take(out, [](const AsyncEvent& e) { ++taken_of(e); });
}

void EventQueue::retire(const void* resource, const std::uint32_t& taken) {
  queue_->retire(
      [resource](const AsyncEvent& e) { return e.cq == resource || e.srq == resource || e.qp == resource; },
      taken);
}

}  // namespace weft::live
