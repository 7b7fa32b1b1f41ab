// What a host answers on queue pair 1: the connection manager (core/cm/cm.h), driven by a shard.
//
// A shard looks at it in every turn, so what it asks most often is kept here as plain values: whether there
// is something to send, whether there is news, and when the next time-out is due. All calls that may change
// the manager go through manager(), which marks these as out of date; the shard renews them when it sends.
#pragma once
#include <cstdint>
#include <span>

#include "core/cm/cm.h"

namespace weft::live {

class GeneralServices {
 public:
  explicit GeneralServices(const cm::CmConfig& config) : manager_(config) {}

  cm::Cm& manager() {
    to_send_ = news_ = true;
    return manager_;
  }
  const cm::Cm& manager() const { return manager_; }

  // --- the shard's ---
  void take(Time now, const cm::MadFacts& facts, std::span<const std::uint8_t> mad) {
    if (!manager().on_mad(now, facts, mad)) ++strangers_;
  }
  void fire(Time now) { manager().on_timer(now); }
  bool has_to_send() const { return to_send_; }
  // The next message. False: nothing is left to send, and the next deadline is known again.
  bool poll(cm::MadOut& out) {
    if (manager_.poll_mad(out)) return true;
    to_send_ = false;
    deadline_ = manager_.next_deadline();
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
  cm::Cm manager_;
  bool to_send_ = false;
  bool news_ = false;
  Time deadline_ = kNever;
  std::uint64_t strangers_ = 0;
};

}  // namespace weft::live
