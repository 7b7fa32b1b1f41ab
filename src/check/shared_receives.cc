// Shared receive queues (docs/protocol/verbs.md#shared-receive-queues): receives leave in the order of
// posting, each for one message; a queue pair keeps what it has taken for its messages in their order; and
// the limit event comes when fewer are left than was asked for, once.
#include <algorithm>

#include "check/ledger.h"

namespace weft::check {
namespace {

using State = SharedReceives::State;

unsigned long long ull(std::uint64_t v) { return v; }

}  // namespace

void Ledger::shared(HostId host, SrqId id, PdId pd) { shared_[{host, id}].pd = pd; }

void Ledger::posted_shared(HostId host, SrqId id, const RecvWr& wr, Time now) {
  SharedReceives& q = shared_.at({host, id});
  Sink sink;
  sink.kind = Sink::Kind::kReceive;
  sink.shared = &q;
  sink.index = q.receives.size();
  q.index[wr.wr_id] = sink.index;
  q.states.push_back(State::kPosted);
  q.receives.push_back(receive(host, q.pd, wr, sink, now));
}

const Receive* Ledger::receive_of(const Endpoint& receiver, std::uint64_t k) const {
  if (receiver.shared == nullptr) return k < receiver.receives.size() ? &receiver.receives[k] : nullptr;
  if (k >= receiver.bound.size() || receiver.bound[k] == Endpoint::kUnknown) return nullptr;
  return &receiver.shared->receives[receiver.bound[k]];
}

// The number of the peer's message that a packet belongs to. Only messages that take a receive are counted.
// irn and srnic packets carry that number; in roce it is the message in progress.
std::uint64_t Ledger::message_at(const Endpoint& receiver, const wire::Header& h) {
  std::uint64_t k = receiver.receives_completed;
  if (h.mode != wire::Mode::kRoce) {
    const unsigned unused = h.mode == wire::Mode::kSrnic ? 16U : 8U;  // of 32 bits
    const auto ahead = static_cast<std::int32_t>((h.sn - static_cast<std::uint32_t>(k)) << unused) >> unused;
    return k + static_cast<std::uint64_t>(std::int64_t{ahead});
  }
  const Endpoint* from = find(receiver.facts.peer);
  const auto over = [&](const Message& m) { return !m.is_send() || m.whole(); };
  while (from != nullptr && k < from->consumers.size() && over(from->sends[from->consumers[k]])) ++k;
  return k;
}

bool Ledger::take_shared(Endpoint& receiver, std::uint64_t k, std::uint64_t index, Time now) {
  SharedReceives& q = *receiver.shared;
  const auto bad = [&](const char* why) {
    report_.add(now, "order", "message %llu to host %u qp 0x%x takes shared receive %llu, %s", ull(k),
                receiver.facts.self.host.v, receiver.facts.self.qpn.v, ull(index), why);
    return false;
  };
  std::vector<std::uint64_t>& bound = receiver.bound;
  if (k >= bound.size()) bound.resize(k + 1, Endpoint::kUnknown);
  if (bound[k] == index) return true;
  if (bound[k] != Endpoint::kUnknown) return bad("and another one before");
  if (q.states[index] != State::kPosted) return bad("which is taken");
  for (std::uint64_t i = 0; i < bound.size(); ++i) {
    if (bound[i] != Endpoint::kUnknown && (i < k) != (bound[i] < index))
      return bad("out of the order in which they were posted");
  }
  bound[k] = index;
  q.states[index] = State::kTaken;
  if (Endpoint* from = peer(receiver)) match(*from, receiver, k);
  return true;
}

void Ledger::shared_done(HostId host, SharedReceives& q, std::uint64_t index, Time now) {
  q.states[index] = State::kDone;
  ++q.done;
  q.done_end = std::max(q.done_end, index + 1);
  limit_due(host, q, now);
}

// A posted message takes at most one receive.
std::uint64_t Ledger::taken_at_most(const SharedReceives& q) const {
  std::uint64_t messages = 0;
  for (const auto& [end, e] : endpoints_) {
    if (e->shared != &q) continue;
    const auto from = endpoints_.find(e->facts.peer);
    if (from != endpoints_.end()) messages += from->second->consumers.size();
  }
  return std::min<std::uint64_t>(messages, q.receives.size());
}

// The event is due if a receive was taken after arming and fewer than the limit are left.
void Ledger::limit_due(HostId host, const SharedReceives& q, Time now) {
  if (q.limit == 0 || q.done <= q.taken_at_most || q.receives.size() - q.done >= q.limit) return;
  report_.add(now, "shared receives", "host %u: no event though %llu of %llu are taken, the limit is %u",
              host.v, ull(q.done), ull(q.receives.size()), q.limit);
}

void Ledger::limit_armed(HostId host, SrqId id, std::uint32_t limit) {
  SharedReceives& q = shared_.at({host, id});
  q.limit = limit;
  q.taken_at_most = taken_at_most(q);
}

void Ledger::limit_reached(HostId host, SrqId id, Time now) {
  SharedReceives& q = shared_.at({host, id});
  const std::uint64_t left = q.receives.size() - taken_at_most(q);
  if (q.limit == 0 || left >= q.limit)
    report_.add(now, "shared receives", "host %u: an event with at least %llu left, the limit is %u", host.v,
                ull(left), q.limit);
  q.limit = 0;
}

void Ledger::finish_shared(Time now) {
  for (const auto& [place, q] : shared_) {
    bool whole = true;  // false if a queue pair failed: receives that it held are gone
    for (const auto& [end, e] : endpoints_)
      whole = whole && (e->shared != &q || !(e->failed || e->destroyed));
    if (whole && q.done != q.done_end)
      report_.add(now, "shared receives", "host %u: %llu of the first %llu are done", place.first.v,
                  ull(q.done), ull(q.done_end));
  }
}

}  // namespace weft::check
