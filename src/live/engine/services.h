// What a host answers on queue pair 1: the connection manager (core/cm/cm.h) and capability discovery
// (core/cm/discovery.h), driven by a shard.
//
// A shard looks at it in every turn, so what it asks most often is kept here as plain values: whether there
// is something to send, whether there is news, and when the next time-out is due. All calls
// that may change the manager or the discovery go through manager() or discovery(), which assume that there
// is something to send, or news. poll() finds out the first, and the time-out, when it has nothing left;
// poll_event() finds out the second.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "core/cm/cm.h"
#include "core/cm/discovery.h"

namespace weft::live {

class GeneralServices {
 public:
  explicit GeneralServices(const cm::CmConfig& cm = {}, const cm::DiscoveryConfig& discovery = {})
      : manager_(cm), discovery_(discovery) {}

  cm::Cm& manager() {
    to_send_ = news_ = true;
    return manager_;
  }
  const cm::Cm& manager() const { return manager_; }
  cm::Discovery& discovery() {
    to_send_ = true;
    return discovery_;
  }
  const cm::Discovery& discovery() const { return discovery_; }

  // --- the shard's ---
  void take(Time now, const cm::MadFacts& facts, std::span<const std::uint8_t> mad) {
    if (!manager().on_mad(now, facts, mad) && !discovery().on_mad(now, facts, mad)) ++strangers_;
    forget_news();
  }
  void fire(Time now) {
    manager().on_timer(now);
    discovery().on_timer(now);
    forget_news();
  }
  bool has_to_send() const { return to_send_; }
  // The next message. False: nothing is left to send, and the next deadline is known again.
  bool poll(cm::MadOut& out) {
    if (manager_.poll_mad(out) || discovery_.poll_mad(out)) return true;
    to_send_ = false;
    deadline_ = std::min(manager_.next_deadline(), discovery_.next_deadline());
    return false;
  }
  Time next_deadline() const { return deadline_; }

  // --- the Nic's ---
  bool poll_event(cm::CmEvent& out) {
    if (!news_) return false;
    news_ = manager_.poll_event(out);
    return news_;
  }
  // Datagrams to queue pair 1 of a management class that weft does not speak.
  std::uint64_t strangers() const { return strangers_; }

 private:
  // Whoever waits for an answer looks again by itself (Nic::ask).
  void forget_news() {
    for (cm::PeerId peer; discovery_.poll_news(peer);) {
    }
  }
  cm::Cm manager_;
  cm::Discovery discovery_;
  bool to_send_ = false;
  bool news_ = false;
  Time deadline_ = kNever;
  std::uint64_t strangers_ = 0;
};

}  // namespace weft::live
