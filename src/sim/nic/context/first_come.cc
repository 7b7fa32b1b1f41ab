#include "sim/nic/context/first_come.h"

#include <algorithm>

namespace weft::sim {

FirstComeStore::FirstComeStore(const Design& design, ContextMemory* memory)
    : ContextStore(design, memory),
      cache_(design.context, this->memory(), counters_),
      requests_(std::size_t{design.context.channels} * design.context.ooo_capacity),
      arrivals_(design.context.misses) {}

void FirstComeStore::accept(const Asked& asked, Time now) { requests_.push({asked, now, Context::kUnknown}); }

bool FirstComeStore::may_look_up() const {
  if (looked_up_ == requests_.size() || misses_ == design_.misses) return false;
  if (misses_ == 0) return cache_.free() > 0 || cache_.holds(requests_[looked_up_].asked.qpn);
  return cache_.free() > misses_;
}

Time FirstComeStore::look_up_due() const {
  return may_look_up() ? std::max(unit_free_, requests_[looked_up_].came) : kNever;
}

Time FirstComeStore::arrival_due() const {
  return !arrivals_.empty() && cache_.free() > 0 ? std::max(unit_free_, arrivals_.front().at) : kNever;
}

Time FirstComeStore::next_event() const { return std::min(look_up_due(), arrival_due()); }

void FirstComeStore::advance(Time now) {
  for (;;) {
    const Time arrival = arrival_due();
    const Time request = look_up_due();
    if (std::min(arrival, request) > now) return;
    if (arrival <= request) {
      place(arrival);
    } else {
      look_up(request);
    }
  }
}

bool FirstComeStore::on_the_way(Qpn qpn) const {
  for (std::size_t i = 0; i < looked_up_; ++i) {
    if (requests_[i].context == Context::kOnTheWay && requests_[i].asked.qpn == qpn) return true;
  }
  return false;
}

void FirstComeStore::look_up(Time now) {
  unit_free_ = now + interval_;
  Request& r = requests_[looked_up_];
  if (cache_.use(r.asked.qpn)) {
    ++counters_.hits;
    r.context = Context::kInUse;
  } else {
    if (misses_ != 0 && on_the_way(r.asked.qpn)) {
      ++counters_.ordered;
    } else {
      ++counters_.misses;
      ++misses_;
      cache_.read(r.asked.qpn, now);
    }
    r.context = Context::kOnTheWay;
  }
  ++looked_up_;
  answer(now);
}

void FirstComeStore::place(Time now) {
  unit_free_ = now + interval_;
  const Qpn qpn = arrivals_.pop().qpn;
  --misses_;
  cache_.place(qpn, now);
  for (std::size_t i = 0; i < looked_up_; ++i) {
    Request& r = requests_[i];
    if (r.context != Context::kOnTheWay || r.asked.qpn != qpn) continue;
    CHECK(cache_.use(qpn));
    r.context = Context::kInUse;
  }
  answer(now);
}

void FirstComeStore::answer(Time now) {
  while (looked_up_ != 0 && requests_.front().context == Context::kInUse) {
    answer_free_ = std::max(answer_free_, now);
    grant(requests_.pop().asked, answer_free_);
    answer_free_ = answer_free_ + interval_;
    --looked_up_;
  }
}

void FirstComeStore::let_go(Qpn qpn, bool dirty, Time now) {
  // What waited for a free place does not begin in the past.
  if (cache_.free() <= misses_) unit_free_ = std::max(unit_free_, now);
  cache_.release(qpn, dirty);
}

}  // namespace weft::sim
