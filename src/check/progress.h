// Progress within a stated bound: as long as somebody waits for something, something must happen.
//
// Something happens when a byte is placed or a request or receive completes. Let
//
//   p     probability that a packet is lost or spoilt, either way the same
//   q     1 - (1 - p)^2: a packet and its answer do not both get through
//   step  the longest a sender waits before it tries again: the longest retransmission time-out with
//         its back-off, the longest RNR delay, a round trip with every delay the network can add, and
//         the time the slowest link needs for everything in flight
//   n     the smallest number with q^n < 10^-9, at least 2
//
// then a gap of more than n x step is a violation: n independent tries have failed in a row, or nobody
// tried. Over a million worlds with a hundred gaps each near the bound, a tenth of a false alarm is to be
// expected; swarm worlds see fewer than one such gap each. Integer arithmetic throughout.
#pragma once
#include <cstdint>

#include "check/report.h"
#include "core/base/units.h"

namespace weft::check {

struct ProgressFacts {
  std::uint32_t loss = 0;  // p in millionths
  Duration step{};
};

Duration progress_bound(const ProgressFacts& facts);

class Progress {
 public:
  Progress(const ProgressFacts& facts, Report& report) : bound_(progress_bound(facts)), report_(report) {}

  void happened(Time now) { last_ = now; }
  // Somebody waits. False once the bound is broken: the world may stop.
  bool waiting(Time now);
  Duration bound() const { return bound_; }
  Duration longest_gap() const { return longest_; }

 private:
  Duration bound_;
  Duration longest_{};
  Time last_{};
  Report& report_;
};

}  // namespace weft::check
