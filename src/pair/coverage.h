// Counts of what happened in a swarm world. A row that stays zero through a long run means that the swarm
// does not test that feature. The Device's own counters do the same for the inside of the transport.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::pair {

// X(name, sentence)
#define WEFT_COVERAGE(X)                                                       \
  X(inline_requests, "requests whose bytes were copied when they were posted") \
  X(empty_messages, "messages without a byte")                                 \
  X(gathered_messages, "messages gathered from several pieces of memory")      \
  X(fetch_adds, "fetch-and-adds executed")                                     \
  X(swaps_done, "compare-and-swaps that found what they expected")             \
  X(swaps_refused, "compare-and-swaps that found something else")              \
  X(atomics_faulted, "atomics whose memory was gone")                          \
  X(fences_behind_reads, "fenced requests posted behind a READ or atomic")     \
  X(windows_bound, "memory windows bound by a request")                        \
  X(windows_used, "WRITEs through a memory window")                            \
  X(windows_missed, "WRITEs through a memory window that is shut")             \
  X(windows_shut_here, "memory windows shut by a local invalidation")          \
  X(windows_shut_by_peer, "memory windows shut by the peer's SEND")            \
  X(binds_beyond, "binds refused for what they cover")                         \
  X(binds_without_right, "binds refused for want of a right")                  \
  X(binds_foreign, "binds refused across protection domains")                  \
  X(binds_in_use, "binds refused because the window was open")                 \
  X(shared_taken, "messages that took a shared receive")                       \
  X(shared_dry, "messages refused because the shared receives ran out")        \
  X(shared_limits, "shared receive queues that fell below their limit")        \
  X(shared_last, "failed queue pairs that gave their shared receives up")      \
  X(varied_irn, "queue pairs whose recovery is a variant of irn's")            \
  X(varied_srnic, "queue pairs whose recovery is a variant of srnic's")        \
  X(drained_busy, "queue pairs drained with requests under way")               \
  X(drained_idle, "queue pairs drained with nothing under way")

enum class Covered : std::size_t {
#define WEFT_X(name, text) name,
  WEFT_COVERAGE(WEFT_X)
#undef WEFT_X
      kCount
};

inline constexpr std::size_t kCoveredCount = static_cast<std::size_t>(Covered::kCount);

struct CoveredInfo {
  const char* name;
  const char* text;
};
inline constexpr std::array<CoveredInfo, kCoveredCount> kCoveredInfo{{
#define WEFT_X(name, text) {#name, text},
    WEFT_COVERAGE(WEFT_X)
#undef WEFT_X
}};

class Coverage {
 public:
  void hit(Covered c) { ++values_[static_cast<std::size_t>(c)]; }
  std::uint64_t get(std::size_t index) const { return values_[index]; }

 private:
  std::array<std::uint64_t, kCoveredCount> values_{};
};

}  // namespace weft::pair
