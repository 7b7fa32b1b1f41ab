// The emulated long line (`weft wan link`): what comes in by one port leaves by the other, later by `delay`,
// at `rate`, behind a queue of bounded length, less what is lost. Both directions are alike and independent.
//
//   port ---> queue, at most `queue` bytes ---> rate ---> loss ---> delay, in order ---> other port
//
// A train of UDP packets is cut first: a line carries frames, and loses one at a time. Trains of TCP stay
// whole; they take the line for as long as their frames would, and share one fate.
//
// Frames on the line lie back to back in a ring of fixed size. No clock and no system call of its own.
#pragma once
#include <memory>

#include "core/impair/impair.h"
#include "wan/box/port.h"

namespace weft::wan {

struct LongLineConfig {
  Duration delay{};
  Rate rate{};              // not 0
  Bytes queue{16'000'000};  // that wait for the rate
  std::uint32_t loss = 0;   // millionths
  std::uint64_t seed = 1;
};

struct LineCounters {
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
  std::uint64_t lost = 0;        // by chance
  std::uint64_t drop_queue = 0;  // the queue was full
  std::uint64_t drop_cut = 0;    // while the line was cut
  std::uint64_t carried = 0;
  std::uint64_t carried_bytes = 0;
  Bytes longest_queue{};
  // What the emulation itself adds: how much later than they should frames left.
  Duration most_late{};
  std::uint64_t late_us = 0;  // the sum over all frames
};

class LongLine {
 public:
  LongLine(const LongLineConfig& config, Port& a, Port& b);
  ~LongLine();

  bool turn(Time now);
  Time next_due(Time now) const;
  // A line that is cut carries nothing, and loses what is on it.
  void cut(bool yes);
  bool is_cut() const { return cut_; }
  // Of what came in by port 0, or by port 1.
  const LineCounters& counters(std::size_t from) const;

 private:
  struct Direction;
  void take(Time now, Direction& d);
  void enqueue(Time now, Direction& d, const std::uint8_t* data, std::uint32_t bytes, const Offload& offload);
  bool give(Time now, Direction& d);

  LongLineConfig config_;
  bool cut_ = false;
  std::unique_ptr<std::uint8_t[]> piece_;  // a frame of a train
  std::unique_ptr<Direction> directions_[2];
};

}  // namespace weft::wan
