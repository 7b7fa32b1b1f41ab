#include "sim/nic/context/non_blocking.h"

#include <algorithm>

namespace weft::sim {

NonBlockingStore::NonBlockingStore(const Design& design, ContextMemory* memory)
    : ContextStore(design, memory),
      cache_(design.context, this->memory(), counters_),
      incoming_(std::size_t{design.context.channels} * design.context.ooo_capacity),
      pending_(std::size_t{design.context.channels} * design.context.ooo_capacity),
      table_(design.context.channels * design.context.ooo_capacity),
      arrivals_(std::size_t{design.context.channels} * design.context.ooo_capacity) {}

void NonBlockingStore::accept(const Asked& asked, Time now) { incoming_.push({asked, now}); }

bool NonBlockingStore::queue_address(Qpn qpn, Time now) {
  if (design_.sq_table == 0) return false;
  if (requesters_[0].full()) {
    ++counters_.prefetches_dropped;
    return true;
  }
  advance(now);
  accept({qpn, 0, requesters_[0].put({0, now, true})}, now);
  advance(now);
  return true;
}

Time NonBlockingStore::request_due() const {
  return incoming_.empty() ? kNever : std::max(incoming_.front().came, request_free_);
}

// While an answer waits for a context to be released, nothing else is handled.
Time NonBlockingStore::pending_due() const {
  if (!arrivals_.empty()) return cache_.free() > 0 ? std::max(arrivals_.front().at, pending_free_) : kNever;
  return ready_ != 0 ? pending_free_ : kNever;
}

void NonBlockingStore::advance(Time now) {
  for (;;) {
    const Time pending = pending_due();
    const Time request = request_due();
    if (std::min(pending, request) > now) return;
    if (pending <= request) {
      handle_pending(pending);
    } else {
      handle_request(request);
    }
  }
}

// Algorithm 1.
void NonBlockingStore::handle_request(Time now) {
  request_free_ = now + interval_;
  const Asked asked = incoming_.pop().asked;
  const bool prefetch = is_prefetch(asked);
  if (PendingTable::Entry* entry = table_.find(asked.qpn); entry != nullptr) {
    if (prefetch) return end_prefetch(asked);
    ++counters_.ordered;
    ++entry->pending;
    pending_.push_request({asked, false, entry->last++});
  } else if (prefetch && cache_.touch(asked.qpn)) {
    end_prefetch(asked);
  } else if (!prefetch && cache_.use(asked.qpn)) {
    ++counters_.hits;
    grant(asked, now);
  } else {
    ++(prefetch ? counters_.prefetches : counters_.misses);
    table_.create(asked.qpn);
    pending_.push_request({asked, true, 0});
    cache_.read(asked.qpn, now);
  }
}

// The request's context is there, and it is its turn.
void NonBlockingStore::answer(const Asked& asked, PendingTable::Entry& entry, Time now) {
  if (is_prefetch(asked)) {
    end_prefetch(asked);
  } else {
    CHECK(cache_.use(asked.qpn));
    grant(asked, now);
  }
  // Only the first request of a queue pair, and one whose context was evicted, read: what follows is ready.
  ready_ += table_.gone(entry) ? 1U : 0U;
}

// Algorithm 2.
void NonBlockingStore::handle_pending(Time now) {
  pending_free_ = now + interval_;
  if (arrivals_.empty()) {
    const Element element = pending_.pop_check();
    if (element.reading || !take_turn(element, now)) pending_.push_checked(element);
    return;
  }
  const Element element = pending_.pop_return();
  if (!element.reading) {
    // To the other FIFO: this one must become empty, or an answer that is for an element there would wait for
    // ever.
    if (!take_turn(element, now)) pending_.push_request(element);
    return;
  }
  const Qpn qpn = arrivals_.pop().qpn;
  CHECK_OP(qpn.v, ==, element.asked.qpn.v);
  PendingTable::Entry* entry = table_.find(qpn);
  CHECK(entry != nullptr);
  CHECK_OP(entry->next, ==, element.ticket);
  cache_.place(qpn, now);
  answer(element.asked, *entry, now);
}

bool NonBlockingStore::take_turn(Element element, Time now) {
  PendingTable::Entry* entry = table_.find(element.asked.qpn);
  CHECK(entry != nullptr);
  if (element.ticket != entry->next) return false;
  --ready_;
  if (cache_.holds(element.asked.qpn)) {
    answer(element.asked, *entry, now);
    return true;
  }
  ++counters_.refetched;
  ++counters_.misses;
  element.reading = true;
  pending_.push_request(element);
  cache_.read(element.asked.qpn, now);
  return true;
}

void NonBlockingStore::let_go(Qpn qpn, bool dirty, Time now) {
  // An answer that waited for a free place is not handled in the past.
  if (cache_.free() == 0) pending_free_ = std::max(pending_free_, now);
  cache_.release(qpn, dirty);
}

}  // namespace weft::sim
