#include "live/doctor/host.h"

#include <net/if.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

#include "live/packet_io/ethtool.h"
#include "live/wires/interfaces.h"

namespace weft::live {
namespace {

// The first line of a file of the kernel's; empty if there is none.
std::string line_of(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::uint32_t processors() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(CPU_COUNT(&mine), 1));
}

// "QUOTA PERIOD" in microseconds, or "max PERIOD", of the group that this process sees as its root.
std::optional<double> quota() {
  const std::string line = line_of("/sys/fs/cgroup/cpu.max");
  std::uint64_t time = 0;
  std::uint64_t period = 0;
  if (std::sscanf(line.c_str(), "%lu %lu", &time, &period) != 2 || period == 0) return std::nullopt;
  return static_cast<double>(time) / static_cast<double>(period);
}

}  // namespace

Host examine(WireKind kind, const Addresses& own) {
  Host h;
  if (const auto wire = open_wire(kind, own)) {
    const WireFacts& facts = (*wire)->facts();
    const Interface interface = find_interface(own.first);
    h.loopback = interface.loopback;
    h.mtu = facts.mtu;
    h.ip_header = static_cast<std::uint32_t>(facts.own.header_bytes());
    h.receive_buffer = facts.receive_buffer;
    h.trains = facts.identification_counts;
    std::array<char, IF_NAMESIZE> name{};
    if (interface.index != 0 && if_indextoname(interface.index, name.data()) != nullptr) {
      h.interface = name.data();
      h.cuts_late = feature(h.interface, "tx-udp-segmentation");
    }
  } else {
    h.wire_refused = wire.error().message;
  }
  h.processors = processors();
  h.processor_quota = quota();
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) h.descriptors = files.rlim_cur;
  h.clock_source = line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  h.shared_memory = access("/dev/shm", W_OK | X_OK) == 0;
  return h;
}

}  // namespace weft::live
