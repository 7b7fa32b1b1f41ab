// The queue pairs of a context (X-RDMA §4.5): in channels, in graves until nothing of their last connection
// can come any more, and in the cache, from which the next channel takes them.
#include <algorithm>
#include <utility>

#include "channel/context.h"
#include "core/base/check.h"

namespace weft::channel {

// What peers may send has a receive, as far as the queue goes.
void Context::check_shared() const {
  std::uint32_t here = 0;
  std::uint32_t users = 0;
  for (const Channel& c : channels_) {
    if (c.qpn == kNoQpn) continue;
    ++users;
    here += messages_here(c);
  }
  for (const Grave& g : graves_) {
    ++users;
    here += g.here;
  }
  CHECK_OP(users, ==, shared_.users());
  CHECK_OP(here, ==, shared_.here());
  CHECK(shared_.counts().short_of != 0 || shared_.posted() >= std::min(shared_.due(), shared_.entries()));
}

Outcome<Qpn> Context::take_qp(const Channel& c) {
  if (busy_qps_ == most_qps_) return fail(Errc::kNoMemory);
  if (!shared_.on()) return take_or_make_qp(c.opened_once);
  const std::uint32_t here = messages_here(c);
  if (!shared_.join(here)) return fail(Errc::kNoMemory);
  const auto qp = take_or_make_qp(c.opened_once);
  if (!qp) {
    shared_.leave(here);
  } else {
    by_qpn_[*qp] = c.index;
  }
  return qp;
}

// For a while after a connection its two ends refuse one that has its queue pair's number: a session that
// goes on has a new one.
Outcome<Qpn> Context::take_or_make_qp(bool goes_on) {
  if (Qpn q; !goes_on && idle_qps_.take(q)) {
    ++busy_qps_;
    ++counts_.reused_qps;
    return q;
  }
  PortQueuePair wanted{cq_, cq_, {}, false};
  wanted.caps.max_send_wr = sq_;
  wanted.caps.max_recv_wr = slots_;
  wanted.srq = shared_.id();
  wanted.caps.max_inline = inline_;
  wanted.caps.max_send_sge = 1 + config_.pieces;  // a head, and bytes that lie in the program's own memory
  const auto made = port_.create_qp(wanted);
  if (!made) return made;
  ++counts_.fresh_qps;
  ++busy_qps_;
  return made;
}

Channel* Context::by_qpn(Qpn qpn) {
  const auto it = by_qpn_.find(qpn);
  return it == by_qpn_.end() ? nullptr : &channels_[it->second];
}

// Nothing reaches its queue pair from here on. One that was up and shares receives may have taken some.
void Context::leave_qp(Channel& c) {
  if (c.qpn == kNoQpn) return;
  Grave grave;
  grave.qpn = c.qpn;
  grave.channel = c.index;
  if (shared_.on()) {
    by_qpn_.erase(c.qpn);
    grave.here = messages_here(c);
    const auto state = port_.state(c.qpn);
    if (state && *state == QpState::kErr) grave.ripe = c.last_receive != 0 ? c.last_receive : kNotYet;
  }
  graves_.push_back(grave);
  c.qpn = kNoQpn;
}

// A body of which not everything has come. READs of a connection that is over may place bytes in it until the
// queue pair is buried.
void Context::give_body(const Channel& c, Message& body) {
  for (Grave& g : graves_) {
    if (g.channel != c.index) continue;
    body.after = g.bodies;
    g.bodies = &body;
    return;
  }
  own_.give(&body);
}

void Context::last_receive(Qpn qpn) {
  if (Channel* const c = by_qpn(qpn)) c->last_receive = turn_;
  for (Grave& g : graves_) {
    if (g.qpn == qpn && g.ripe == kNotYet) g.ripe = turn_;
  }
}

bool Context::has_ripe_graves() const {
  return std::any_of(graves_.begin(), graves_.end(), [](const Grave& g) { return g.ripe != kNotYet; });
}

// Queue pairs whose connection is over, once nothing of theirs is in the completion queue: what they took of
// a shared queue had completed before a turn that has gone through all completions.
void Context::bury() {
  std::size_t left = 0;
  for (const Grave& g : graves_) {
    if (g.ripe >= turn_) {
      graves_[left++] = g;
      continue;
    }
    const bool kept = idle_qps_.size() < config_.cached_qps;
    if (const auto again = kept ? port_.recycle(g.qpn) : Outcome<Qpn>(fail(Errc::kNoMemory))) {
      idle_qps_.put(*again);
    } else {
      (void)port_.destroy_qp(g.qpn);
    }
    for (Message* body = g.bodies; body != nullptr;) own_.give(std::exchange(body, body->after));
    --busy_qps_;
    if (shared_.on()) shared_.leave(g.here);
  }
  graves_.resize(left);
}

}  // namespace weft::channel
