#include "live/doctor/host.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

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

// One request to a network interface.
class Asking {
 public:
  explicit Asking(const std::string& interface) : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    std::strncpy(request_.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  }
  ~Asking() {
    if (fd_ >= 0) close(fd_);
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  bool ask(void* what) {
    request_.ifr_data = static_cast<char*>(what);
    return fd_ >= 0 && ioctl(fd_, SIOCETHTOOL, &request_) == 0;
  }

 private:
  int fd_;
  ifreq request_{};
};

// Whether a named feature of an interface is on. Features are numbered by the kernel as it pleases; their
// names say which is which. What ethtool hands out ends in arrays as long as it says beforehand.
std::optional<bool> feature(const std::string& interface, std::string_view name) {
  Asking asking(interface);
  alignas(ethtool_sset_info) std::array<char, sizeof(ethtool_sset_info) + sizeof(std::uint32_t)> sets{};
  auto* const set = reinterpret_cast<ethtool_sset_info*>(sets.data());
  set->cmd = ETHTOOL_GSSET_INFO;
  set->sset_mask = std::uint64_t{1} << ETH_SS_FEATURES;
  if (!asking.ask(set) || set->sset_mask == 0) return std::nullopt;
  const std::uint32_t count = set->data[0];
  std::vector<std::uint32_t> names((sizeof(ethtool_gstrings) + std::size_t{count} * ETH_GSTRING_LEN) / 4 + 1);
  auto* const strings = reinterpret_cast<ethtool_gstrings*>(names.data());
  strings->cmd = ETHTOOL_GSTRINGS;
  strings->string_set = ETH_SS_FEATURES;
  strings->len = count;
  if (!asking.ask(strings)) return std::nullopt;
  const std::uint32_t blocks = (count + 31) / 32;
  std::vector<std::uint32_t> bits(
      (sizeof(ethtool_gfeatures) + blocks * sizeof(ethtool_get_features_block)) / 4 + 1);
  auto* const features = reinterpret_cast<ethtool_gfeatures*>(bits.data());
  features->cmd = ETHTOOL_GFEATURES;
  features->size = blocks;
  if (!asking.ask(features)) return std::nullopt;
  for (std::uint32_t i = 0; i < count; ++i) {
    const char* const text = reinterpret_cast<const char*>(strings->data) + std::size_t{i} * ETH_GSTRING_LEN;
    if (std::string_view(text, strnlen(text, ETH_GSTRING_LEN)) != name) continue;
    return (features->features[i / 32].active >> (i % 32) & 1U) != 0;
  }
  return std::nullopt;
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

Host examine(WireKind kind, const wire::Address& address) {
  Host h;
  if (const auto wire = open_wire(kind, address)) {
    const WireFacts& facts = (*wire)->facts();
    const Interface interface = find_interface(address);
    h.loopback = interface.loopback;
    h.mtu = facts.mtu;
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
