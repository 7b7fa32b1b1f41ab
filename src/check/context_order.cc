#include "check/context_order.h"

namespace weft::check {

void ContextOrder::asked(Qpn qpn, std::uint32_t channel, std::uint64_t tag) {
  contexts_[qpn].waiting.push_back({channel, tag});
}

void ContextOrder::granted(Qpn qpn, std::uint32_t channel, std::uint64_t tag, Time now) {
  Context& c = contexts_[qpn];
  ++c.in_use;
  if (c.reads != 0)
    report_.add(now, "context in use", "queue pair %u: granted while its context is on the way", qpn.v);
  if (c.waiting.empty()) {
    report_.add(now, "context grant", "queue pair %u: a grant that nothing asked for", qpn.v);
    return;
  }
  const Request first = c.waiting.front();
  c.waiting.pop_front();
  if (first.channel != channel || first.tag != tag) {
    report_.add(
        now, "context order",
        "queue pair %u: granted channel %u's request %llu before channel %u's request %llu, which came first",
        qpn.v, channel, static_cast<unsigned long long>(tag), first.channel,
        static_cast<unsigned long long>(first.tag));
  }
}

void ContextOrder::released(Qpn qpn, bool dirty, Time now) {
  Context& c = contexts_[qpn];
  if (c.in_use == 0) {
    report_.add(now, "context grant", "queue pair %u: released without a grant", qpn.v);
    return;
  }
  --c.in_use;
  c.changed = c.changed || (dirty && written_back_);
}

void ContextOrder::forgot(Qpn qpn, Time now) {
  moved(qpn, "forgotten", now);
  contexts_[qpn].changed = false;
}

void ContextOrder::moved(Qpn qpn, const char* how, Time now) {
  if (contexts_[qpn].in_use != 0)
    report_.add(now, "context in use", "queue pair %u: %s while a stage uses it", qpn.v, how);
}

void ContextOrder::read_begun(Qpn qpn, Time now) {
  moved(qpn, "read from memory", now);
  Context& c = contexts_[qpn];
  if (c.changed)
    report_.add(now, "context written back",
                "queue pair %u: read from memory before its changes were written", qpn.v);
  if (++c.reads > 1)
    report_.add(now, "context reads", "queue pair %u: read from memory twice at once", qpn.v);
  reads_.push_back(qpn);
}

void ContextOrder::read_ended(Qpn qpn, Time now) {
  if (reads_.empty() || reads_.front() != qpn) {
    report_.add(now, "context reads", "queue pair %u: its read ended before an earlier one", qpn.v);
    return;
  }
  reads_.pop_front();
  --contexts_[qpn].reads;
}

void ContextOrder::written(Qpn qpn, Time now) {
  moved(qpn, "written to memory", now);
  contexts_[qpn].changed = false;
}

void ContextOrder::finish(Time now) {
  for (const auto& [qpn, c] : contexts_) {
    if (!c.waiting.empty())
      report_.add(now, "context grant", "queue pair %u: %zu requests were never granted", qpn.v,
                  c.waiting.size());
  }
}

}  // namespace weft::check
