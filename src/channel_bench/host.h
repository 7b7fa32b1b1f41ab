// What the machine has for a measurement: cores, and how much of the time others had them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::bench {

// Pins this process to a core; -1: it runs anywhere.
void pin(int core);
// The core of an end, 0 or 1; -1 where there are fewer than two.
int core_of(unsigned end);

// Processor time of the calling thread.
std::uint64_t thread_ns();
// Processor time of this process with all its threads, and of its children that ended.
std::uint64_t processor_ns();

struct Noise {
  unsigned cores = 0;
  double load = 0;                       // before it began: processes that ran or wanted to
  std::optional<double> waited_percent;  // of the time of the ends' cores, which others had; unknown: nothing
  double stolen_percent = 0;             // of the time of all cores, by other machines of the same host
  bool known() const { return waited_percent.has_value(); }
  bool busy() const { return waited_percent.value_or(0) > kQuiet || stolen_percent > kQuiet; }
  std::string sentence() const;

  static constexpr double kQuiet = 5;  // percent; a quiet machine has up to 4 in a run of a second
};

// From its making until end(). Others' time is what the kernel counts as busy of the ends' cores, but for
// the time of both ends with their soft NICs. Ends that are not pinned have all cores.
class Listening {
 public:
  Listening(bool pinned, std::uint64_t far_ns);
  Noise end(std::uint64_t far_ns) const;

 private:
  std::vector<int> cores_;
  std::uint64_t began_;
  std::uint64_t stolen_;
  bool apart_;
  std::optional<std::uint64_t> busy_;
  std::uint64_t own_;  // of both ends
  double load_;
};

}  // namespace weft::bench
