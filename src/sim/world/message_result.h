// What a table [[messages]] came to, over channels (channel_run.h) or over plain queue pairs (plain_run.h).
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/units.h"
#include "record/record.h"

namespace weft::sim {

// What became of a table's messages.
struct MessageResult {
  std::uint64_t messages = 0;  // taken by the far program; requests that were answered
  std::uint64_t failed = 0;
  std::uint64_t bytes = 0;    // payload, both ways
  std::uint64_t lost = 0;     // channels that closed before they were done
  const char* why = nullptr;  // the first of them did
  Time first{kNever};
  Time last{};
  // A message: from the program's call to the far program's hands. A request: to its response.
  std::vector<Duration> latencies;
  std::vector<Duration> connects;    // from asking for a channel to having it
  std::vector<Duration> reconnects;  // from closing one to having the next
  // With upgrade_at: latencies on channels that stay, begun before it, and from then until the last is back;
  // and messages of all channels done in the upgrade, and in as long a time before it.
  std::vector<Duration> calm;
  std::vector<Duration> storm;
  Time upgrade_at{};
  Time upgraded{};  // zero: nobody did
  std::vector<Time> done_at;

  Duration elapsed() const { return messages == 0 ? Duration{} : last - first; }
  double goodput_bps() const {
    const Duration t = elapsed();
    return t.ps == 0 ? 0.0 : static_cast<double>(bytes) * 8e12 / static_cast<double>(t.ps);
  }
};

record::Record to_record(const MessageResult& result);

// The median and so on of durations, in microseconds.
struct Quantiles {
  double mean_us = 0;
  double p50_us = 0;
  double p99_us = 0;
  double max_us = 0;
};
Quantiles quantiles_of(std::vector<Duration> all);

}  // namespace weft::sim
