// The line of a path: queue pairs that lack credit for a packet never sent before, first come first served
// (paths.h, docs/decisions/path-credit-in-line.md).
#include <algorithm>

#include "core/transport/engine.h"
#include "core/transport/rc/read_responder.h"
#include "core/transport/rc/requester.h"

namespace weft {

void Engine::wait_for_path(QueuePair& q) {
  counters.add(Counter::path_blocked);
  if (q.has(kWaitingPath)) return;
  q.set(kWaitingPath);
  ++waiting;
  Path& path = path_of(q);
  const std::uint32_t index = index_of(q);
  cold(q).next_waiting = UINT32_MAX;
  if (path.waiting_tail == UINT32_MAX) {
    path.waiting_head = index;
  } else {
    colds[path.waiting_tail]->next_waiting = index;
  }
  path.waiting_tail = index;
}

// Of what its next turn begins with: what came second would use that turn up, again and again, if it took
// less credit.
PathNeed Engine::path_need(QueuePair& q) {
  const PathNeed requests = rc_requests_need(*this, q);
  const PathNeed responses = rc_responses_need(*this, q);
  const bool requests_first = (q.rx_flags & kRequestsFirst) != 0;
  const PathNeed first = requests_first ? requests : responses;
  return first != PathNeed::kNone ? first : std::max(requests, responses);
}

void Engine::wake_line(Path& path) {
  while (path.waiting_head != UINT32_MAX && path.called == UINT32_MAX) {
    const std::uint32_t index = path.waiting_head;
    QueuePair& q = qp(index);
    const PathNeed need = path_need(q);
    if (need == PathNeed::kTooLittle) return;  // it keeps its place
    path.waiting_head = colds[index]->next_waiting;
    if (path.waiting_head == UINT32_MAX) path.waiting_tail = UINT32_MAX;
    q.clear(kWaitingPath);
    --waiting;
    if (need == PathNeed::kEnough) path.called = index;
    stand_ready(q);
  }
}

void Engine::leave_path(QueuePair& q) {
  Path& path = path_of(q);
  if (q.has(kWaitingPath)) {
    const std::uint32_t self = index_of(q);
    std::uint32_t* link = &path.waiting_head;
    std::uint32_t previous = UINT32_MAX;
    while (*link != UINT32_MAX && *link != self) {
      previous = *link;
      link = &colds[*link]->next_waiting;
    }
    if (*link == self) {
      *link = cold(q).next_waiting;
      if (path.waiting_tail == self) path.waiting_tail = previous;
    }
    q.clear(kWaitingPath);
    --waiting;
  }
  end_turn(q);
}

}  // namespace weft
