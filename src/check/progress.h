// Progress within a stated bound: while a user or a queue pair waits for something, something must happen.
//
// Something happens when a byte is placed, an answer tells its requester something new, a request or receive
// completes, a queue pair fails, or a user posts or takes a queue pair away. A requester whose request goes
// unanswered is charged at the latest after one verbs time-out, and fails once it has been charged more often
// than retry_cnt; an RNR delay puts this off once. Its time-outs count from when it last learned something;
// the bytes in question may have been placed almost one time-out earlier. A roce requester that probes may
// learn that its probe alone arrived: the rest goes out again, with a time-out that is not charged. That
// happens once, because a second time takes another answer.
//
// A responder that refuses a message keeps its receives until the READ responses before it are acknowledged,
// or until it falls silent. The last time that its requester asked for them again was before that one failed
// or was taken away. So, whatever the network does:
//
//   bound = max over queue pairs of [ time-outs x timeout + RNR delay, silence of a responder ] + 64 turns
//           + sum of credit holds + transit
//
// where the time-outs are retry_cnt + 1, and one more where roce probes, and a turn is what a controller's
// lowest rate may keep a packet from leaving (nothing without one). Where path credit is bounded, a queue
// pair whose peer is gone holds its credit until its second time-out, and the others wait. In the worst case
// this happens to every queue pair, one after the other. Transit is a round trip with every delay that the
// network can add, plus the time the slowest part of it needs for everything that may be under way. No
// probability enters. A queue pair whose time-out is zero ("never") has no bound, and a world with one must
// not lose packets.
#pragma once
#include <cstdint>

#include "check/facts.h"
#include "check/report.h"
#include "core/base/units.h"

namespace weft::check {

class Progress {
 public:
  Progress(Duration transit, Report& report) : transit_(transit), report_(report) {}

  void connected(const QpFacts& facts);
  void happened(Time now) { last_ = now; }
  // Called while something is awaited. False once the bound is broken: the world may stop.
  bool waiting(Time now);
  Duration bound() const { return patience_ + held_ + transit_; }
  Duration longest_gap() const { return longest_; }

 private:
  Duration transit_;
  Duration patience_{};
  Duration held_{};
  Duration longest_{};
  Time last_{};
  Report& report_;
};

}  // namespace weft::check
