// What is free: in the machine (/proc/meminfo), and in every control group above this process, each of which
// may have a bound of its own (cgroup v2: memory.max, memory.current; the kernel gives back what memory.stat
// calls inactive_file when memory is needed).
#include "cli/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

namespace weft::cli {
namespace {

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

// "NAME value" or "NAME: value kB" in a file of such lines.
std::uint64_t named(const std::string& file, const std::string& name) {
  std::ifstream in(file);
  std::string word;
  std::uint64_t value = 0;
  while (in >> word) {
    if (word == name && in >> value) return value;
  }
  return 0;
}

// The file's only number; `kAny` if it says "max" or is not there.
std::uint64_t only(const std::string& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? value : kAny;
}

std::uint64_t free_in_groups() {
  std::ifstream in("/proc/self/cgroup");
  std::string line;
  std::uint64_t least = kAny;
  while (std::getline(in, line)) {
    if (!line.starts_with("0::/")) continue;
    for (std::string group = line.substr(3); !group.empty(); group.resize(group.rfind('/'))) {
      const std::string folder = "/sys/fs/cgroup" + group + "/";
      const std::uint64_t most = only(folder + "memory.max");
      if (most == kAny) continue;
      const std::uint64_t idle = named(folder + "memory.stat", "inactive_file");
      const std::uint64_t taken = only(folder + "memory.current");
      const std::uint64_t used = taken == kAny || taken < idle ? 0 : taken - idle;
      least = std::min(least, most - std::min(most, used));
    }
  }
  return least;
}

std::uint64_t free_in_machine() {
  const std::uint64_t kilobytes =
      named("/proc/meminfo", "MemAvailable:") + named("/proc/meminfo", "SwapFree:");
  return kilobytes == 0 ? kAny : kilobytes * 1024U;
}

}  // namespace

void limit_memory() {
  const std::uint64_t most = std::min(free_in_machine(), free_in_groups());
  const std::uint64_t taken = named("/proc/self/status", "VmData:") * 1024U;
  rlimit limit{};
  // Sanitizers take address space by terabytes beforehand: there the limit would mean nothing.
  if (most == kAny || taken > most || getrlimit(RLIMIT_DATA, &limit) != 0) return;
  if (limit.rlim_cur <= taken + most) return;
  limit.rlim_cur = taken + most;
  setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace weft::cli
