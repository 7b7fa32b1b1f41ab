// Latency, bandwidth and message rate of requests over channels, in flows that are drawn:
//
//   closed loop   each channel has `outstanding` requests under way, and sends the next when one is answered
//   open loop     requests begin at `rate`, Poisson, whatever became of those before; what a request waited
//   for
//                 others to get out of the way is in its latency, as in a program's
//   elephants     so many of a hundred channels send `elephant` bytes in a closed loop; the others are the
//   mice
//
// When its time is over an open loop begins no more requests, and goes on for up to 3 s until all have an
// answer: the slowest must not be missing. Those seconds count, and elephants run on in them. What is left is
// unfinished.
//
// A request is `size` bytes, or as the distribution draws; its response is empty. It counts when the response
// is here: by then the far program has released it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "channel_tools/histogram.h"
#include "channel_tools/plans.h"
#include "channel_tools/session.h"

namespace weft::tools {

struct FlowResult {
  std::string name;
  std::uint64_t bytes = 0;
  Histogram times;
};
struct PerfResult {
  double seconds = 0;  // that were counted
  std::vector<FlowResult> flows;
  std::uint64_t failed = 0;      // requests without a response
  std::uint64_t overflown = 0;   // of an open loop, that never began because too many waited
  std::uint64_t unfinished = 0;  // of an open loop, that still waited or had no answer when it was given up
};
Result<PerfResult> perf(const Session& session, const PerfPlan& plan);

std::string text(const PerfResult& r);
std::string json_text(const PerfPlan& p, const PerfResult& r);

}  // namespace weft::tools
