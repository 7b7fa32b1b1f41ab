// The Device's timers: in the order in which they are due for most worlds, by queue pair for NIC models.
#include <algorithm>

#include "core/transport/by_queue_pair.h"
#include "core/transport/congestion.h"
#include "core/transport/engine.h"
#include "core/transport/rc/timers.h"
#include "core/transport/uc/requester.h"

namespace weft {

Time Device::next_deadline() const { return std::min(engine_->deadlines.next(), engine_->pacing.next()); }

Qpn Device::peek_timer(Time now) const {
  Engine& e = *engine_;
  if (next_deadline() > now) return kNoQpn;
  Deadlines& first = e.pacing.next() <= e.deadlines.next() ? e.pacing : e.deadlines;
  return e.qp(first.top()).qpn;
}

namespace {
// Takes the first entry of all deadlines out. Nullptr: a rate's, or void.
QueuePair* next_timer(Engine& e) {
  if (e.pacing.next() <= e.deadlines.next()) {
    pacing_release(e);
    return nullptr;
  }
  const std::uint32_t index = e.deadlines.top();
  const bool void_entry = e.deadlines.forgotten(index);
  e.deadlines.remove(index);
  QueuePair& q = e.qp(index);
  return void_entry || !q.has(kInUse) ? nullptr : &q;
}

// Fires what is due of a queue pair whose entry was just taken out, and arms what it awaits next.
void fire(Engine& e, QueuePair& q, Time now, Duration stall) {
  if (q.type != QpType::kRc) return uc_on_timer(e, q, now);
  if (stall != kForever) rc_forgive(e, q, now, stall);
  // The entry may be early; only a deadline that is really due does anything.
  if (rc_deadline(e, q) <= now) {
    rc_on_timer(e, q, now);
    e.reconcile(q);
  }
  const Time next = rc_deadline(e, q);
  if (next != kNever) e.arm(q, next);
}
}  // namespace

bool Device::fire_timer(Time now, Duration stall) {
  if (next_deadline() > now) return false;
  if (QueuePair* q = next_timer(*engine_); q != nullptr) fire(*engine_, *q, now, stall);
  return true;
}

Qpn pick_timer(Device& device, Time now) {
  Engine& e = device.engine();
  while (device.next_deadline() <= now) {
    QueuePair* q = next_timer(e);
    if (q == nullptr) continue;
    if (q->type != QpType::kRc || rc_deadline(e, *q) <= now) return q->qpn;
    fire(e, *q, now, kForever);  // early: it is armed again
  }
  return kNoQpn;
}

void fire_timer(Device& device, Qpn qpn, Time now) {
  Engine& e = device.engine();
  if (QueuePair* q = e.find(qpn); q != nullptr) fire(e, *q, now, kForever);
}

void Device::on_timer(Time now, Duration stall) {
  while (fire_timer(now, stall)) {
  }
}

}  // namespace weft
