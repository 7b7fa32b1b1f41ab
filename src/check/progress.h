// Progress within a stated bound: as long as somebody waits for something, something must happen.
//
// Something happens when a byte is placed, a request or receive completes, or a user posts. A requester
// whose request goes unanswered is charged at the latest after one verbs time-out, and fails once it has
// been charged more often than retry_cnt; an RNR delay puts this off once. So, whatever the network does:
//
//   bound = max over queue pairs of [ (retry_cnt + 1) x timeout + RNR delay + 64 turns ]
//           + sum of credit holds + transit
//
// where a turn is what a controller's lowest rate may keep a packet from leaving (nothing without one). Where
// path credit is bounded, what is in flight to a peer that is gone holds up the others until its second
// time-out; in the worst case every queue pair loses its credit in this way, one after the other.
// Transit is a round trip with every delay that the network can add, plus the time the slowest
// part of it needs for everything that may be under way. No probability enters. A queue pair whose
// time-out is zero ("never") has no bound, and a world with one must not lose packets.
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
  // Somebody waits. False once the bound is broken: the world may stop.
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
