#include "channel_bench/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "channel_tools/session.h"

namespace weft::bench {
namespace {

std::vector<int> allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

// Of all cores together, in ticks (proc(5)).
std::uint64_t stolen_ticks() {
  std::ifstream in("/proc/stat");
  std::string name;
  in >> name;
  std::uint64_t value = 0;
  for (int column = 1; column <= 8 && in >> value; ++column) {
    if (column == 8) return value;
  }
  return 0;
}

}  // namespace

void pin(int core) {
  if (core < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(core), &set);
  (void)sched_setaffinity(0, sizeof set, &set);  // where it is refused it runs anywhere
}

int core_of(unsigned end) {
  static const std::vector<int> cores = allowed();  // before anybody was pinned
  return cores.size() < 2 ? -1 : cores[end];
}

std::uint64_t waited_for_a_core_ns() {
  std::ifstream in("/proc/self/schedstat");
  std::uint64_t ran = 0;
  std::uint64_t waited = 0;
  in >> ran >> waited;
  return waited;
}

std::string Noise::sentence() const {
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(),
                "%s: an end waited %.1f %% of the time for its core, other machines had %.1f %% of %u cores; "
                "load %.1f before",
                busy() ? "the machine was busy, so figures say little" : "the machine was quiet",
                waited_percent, stolen_percent, cores, load);
  return text.data();
}

Listening::Listening()
    : began_(tools::now_ns()), stolen_(stolen_ticks()), waited_(waited_for_a_core_ns()), load_(0) {
  std::ifstream in("/proc/loadavg");
  in >> load_;
}

Noise Listening::end(std::uint64_t far_waited_ns) const {
  Noise n;
  n.cores = static_cast<unsigned>(std::max<std::size_t>(1, allowed().size()));
  n.cores = std::max(n.cores, static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
  n.load = load_;
  const auto ns = static_cast<double>(std::max<std::uint64_t>(1, tools::now_ns() - began_));
  const std::uint64_t worse = std::max(far_waited_ns, waited_for_a_core_ns() - waited_);
  n.waited_percent = 100 * static_cast<double>(worse) / ns;
  const double tick_ns = 1e9 / static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
  n.stolen_percent = 100 * static_cast<double>(stolen_ticks() - stolen_) * tick_ns / (ns * n.cores);
  return n;
}

}  // namespace weft::bench
