// What the monitor remembers: an SQLite file of series over time, and of slow lines. It is bounded: the
// oldest go when there are more than `keep_rows` samples (about 100 bytes each) or they are older than
// `keep_seconds`; of slow lines the newest kMostSlow stay.
//
//   series   number, name as Prometheus writes it
//   sample   at (Unix time, milliseconds), series, value
//   slow     at, program, process, what, took_ns; `seen` tells one that was read before
//
// One process writes; others may read meanwhile.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "monitor/metrics.h"

namespace weft::monitor {

inline constexpr std::uint64_t kMostSlow = 100'000;
inline constexpr std::uint64_t kMostAnswers = 10'000;  // rows of one answer

struct Keep {
  std::uint64_t rows = 1'000'000;
  std::uint64_t seconds = 7ULL * 86'400;
};
struct Sample {
  std::int64_t at_ms = 0;
  double value = 0;
};
struct Slow {
  std::int64_t at_ms = 0;
  std::string program;
  std::uint64_t pid = 0;
  std::string what;
  std::uint64_t took_ns = 0;
  std::string seen;  // names the line for ever
};

class History {
 public:
  static Result<std::unique_ptr<History>> open(const std::string& file, const Keep& keep);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // All values of one moment, or none; then what is too much or too old goes.
  Result<void> add(std::int64_t at_ms, const Metrics& metrics, const std::vector<Slow>& slow);

  // Oldest first, the newest kMostAnswers.
  Result<std::vector<Sample>> samples(const std::string& series, std::int64_t since_ms) const;
  Result<std::vector<Slow>> slow(std::int64_t since_ms) const;
  Result<std::vector<std::string>> series() const;  // by name, the first kMostAnswers
  Result<std::uint64_t> rows() const;

 private:
  struct Database;
  explicit History(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace weft::monitor
