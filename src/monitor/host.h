// What this host knows of its network beside the programs (X-RDMA §6.2: PFC status, queue drops, buffer use):
//
//   UDP        datagrams that the kernel dropped for want of buffer, and what waits in RoCE's own sockets
//   interfaces drops of the kernel's counters, by reason; pause frames, by link and by priority, as far as a
//              driver counts them under names with "pause" or "pfc" in them; whether pause is agreed
//
// A switch's queues are the switch's to tell.
#pragma once
#include <string>

#include "monitor/metrics.h"

namespace weft::monitor {

inline constexpr std::size_t kMostInterfaces = 64;  // by name; further ones are not told

// `root` is empty, but in tests: where /proc is.
void tell_host(Metrics& metrics, const std::string& root = "");

}  // namespace weft::monitor
