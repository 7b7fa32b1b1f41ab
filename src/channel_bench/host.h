// What the machine has for a measurement: cores, and how much of the time others had them.
#pragma once
#include <cstdint>
#include <string>

namespace weft::bench {

// Pins this process to a core; -1: it runs anywhere.
void pin(int core);
// The core of an end, 0 or 1; -1 where there are fewer than two.
int core_of(unsigned end);

// How long this process has waited for a core while it could have run.
std::uint64_t waited_for_a_core_ns();

struct Noise {
  unsigned cores = 0;
  double load = 0;            // before it began: processes that ran or wanted to
  double waited_percent = 0;  // of the time an end waited for its core, the worse of the two
  double stolen_percent = 0;  // of the time of all cores, by other machines of the same host
  bool busy() const { return waited_percent > kQuiet || stolen_percent > kQuiet; }
  std::string sentence() const;

  // Percent. An end shares its core with the soft NIC's thread, which is 2 to 3 of them on a quiet machine.
  static constexpr double kQuiet = 5;
};

// From its making until end().
class Listening {
 public:
  Listening();
  Noise end(std::uint64_t far_waited_ns) const;

 private:
  std::uint64_t began_;
  std::uint64_t stolen_;
  std::uint64_t waited_;
  double load_;
};

}  // namespace weft::bench
