// Wall time and memory of this process, for benchmarks and progress bars. Nothing that a run computes may
// depend on either.
#pragma once
#include <cstdint>

namespace weft::cli {

class Stopwatch {
 public:
  Stopwatch();
  double seconds() const;  // since it was made

 private:
  std::int64_t start_ns_;
};

// The machine's steady clock, as statistics pages have it.
std::uint64_t steady_ns();
// The machine's clock as people have it, milliseconds since 1970: for what is remembered.
std::int64_t unix_ms();
void sleep_seconds(double seconds);

// Wall time from some moment on.
double wall_seconds();

// Processor time this process has used: what wall time would be on a machine of one's own.
double processor_seconds();

// The most memory this process ever had resident, in bytes.
std::uint64_t peak_memory();

}  // namespace weft::cli
