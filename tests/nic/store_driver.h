// Drives a context store through virtual time: requests that come when the driver wants, a memory with delays
// of its own, stages that hold what they are granted for a while. The order observer looks on. Everything
// else is counted, so that two stores, or a store and an oracle, can be compared grant by grant.
#pragma once
#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "check/context_order.h"
#include "sim/nic/context/store.h"

namespace weft::sim {

class StoreDriver final : public ContextMemory, public StoreObserver {
 public:
  struct Ask {
    Time at{};
    Qpn qpn = kNoQpn;
    StoreChannel channel = StoreChannel::kDescriptor;
    Duration held{};  // from grant to release
    bool dirty = false;
    bool address = false;  // looks up the send queue's address instead
  };

  // `latency` of the next read.
  StoreDriver(const Design& design, std::function<Duration()> latency)
      : order(report, design.context.write_back),
        latency_(std::move(latency)),
        store(make_store(design, this)) {
    store->observe(this);
  }

  // All of it, in the order of time; a channel without an index holds its later requests up.
  void run(const std::vector<Ask>& asks) {
    std::vector<std::deque<std::uint64_t>> queues(kChannels);
    asks_ = &asks;
    std::size_t next = 0;
    for (;;) {
      Time t = store->next_event();
      if (next < asks.size()) t = std::min(t, std::max(now, asks[next].at));
      if (!reads_.empty()) t = std::min(t, reads_.front().at);
      if (!held_.empty()) t = std::min(t, held_.top().at);
      t = std::min(t, store->next_grant_at());
      if (t == kNever) break;
      CHECK_OP(t.ps, >=, now.ps);
      now = t;
      store->advance(now);
      while (!held_.empty() && held_.top().at <= now) {
        const Held h = held_.top();
        held_.pop();
        store->release(h.qpn, h.dirty, now);
      }
      while (!reads_.empty() && reads_.front().at <= now) {
        const Qpn qpn = reads_.front().qpn;
        reads_.pop_front();
        store->fetched(qpn, now);
      }
      ContextGrant g;
      while (store->next_grant(now, g)) {
        grants.push_back(g);
        const Ask& ask = asks[g.tag];
        if (ask.held.ps == 0) {
          store->release(g.qpn, ask.dirty, now);
        } else {
          held_.push({now + ask.held, g.qpn, ask.dirty});
        }
      }
      for (; next < asks.size() && asks[next].at <= now; ++next) {
        if (asks[next].address) {
          store->queue_address(asks[next].qpn, now);
        } else {
          queues[static_cast<std::size_t>(asks[next].channel)].push_back(next);
        }
      }
      for (std::size_t c = 0; c < kChannels; ++c) {
        const auto channel = static_cast<StoreChannel>(c);
        for (; !queues[c].empty() && store->can_request(channel); queues[c].pop_front())
          store->request({asks[queues[c].front()].qpn, channel, queues[c].front()}, now);
      }
    }
    order.finish(now);
  }

  void read(Qpn qpn, Bytes, Time at) override {
    ++reads;
    const Time end = at + latency_();
    reads_.push_back({qpn, reads_.empty() ? end : std::max(end, reads_.back().at)});
  }
  void write(Qpn, Bytes, Time) override { ++writes; }
  void asked(const ContextRequest& r, Time) override {
    order.asked(r.qpn, static_cast<std::uint32_t>(r.channel), r.tag);
  }
  void granted(const ContextGrant& g, Time at) override {
    order.granted(g.qpn, static_cast<std::uint32_t>(g.channel), g.tag, at);
  }
  void released(Qpn qpn, bool dirty, Time at) override { order.released(qpn, dirty, at); }
  void forgot(Qpn qpn, Time at) override { order.forgot(qpn, at); }
  void read_begun(Qpn qpn, Time at) override { order.read_begun(qpn, at); }
  void read_ended(Qpn qpn, Time at) override { order.read_ended(qpn, at); }
  void written(Qpn qpn, Time at) override { order.written(qpn, at); }

  static constexpr std::size_t kChannels = 3;
  Time now{};
  check::Report report;
  check::ContextOrder order;
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::vector<ContextGrant> grants;  // tag: the place in the asks

 private:
  struct Read {
    Qpn qpn;
    Time at;
  };
  struct Held {
    Time at;
    Qpn qpn;
    bool dirty;
    bool operator<(const Held& o) const { return at > o.at; }
  };
  std::function<Duration()> latency_;
  const std::vector<Ask>* asks_ = nullptr;
  std::deque<Read> reads_;
  std::priority_queue<Held> held_;

 public:
  std::unique_ptr<ContextStore> store;
};

}  // namespace weft::sim
