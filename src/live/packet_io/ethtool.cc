#include "live/packet_io/ethtool.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

namespace weft::live {
namespace {

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

}  // namespace

std::uint32_t receive_queues(const std::string& interface) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  return Asking(interface).ask(&channels)
             ? std::clamp(channels.combined_count + channels.rx_count, 1U, kMostQueues)
             : 1;
}

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

std::vector<std::pair<std::string, std::uint64_t>> statistics(const std::string& interface) {
  // A driver may count more from one question to the next, and the kernel then writes that many, whatever it
  // was told: there is room for far more than was counted.
  constexpr std::uint32_t kMost = 1U << 12U;
  constexpr std::size_t kRoom = 4 * kMost;
  Asking asking(interface);
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (!asking.ask(&driver) || driver.n_stats == 0 || driver.n_stats > kMost) return {};
  const std::size_t count = driver.n_stats;
  std::vector<std::uint32_t> names((sizeof(ethtool_gstrings) + kRoom * ETH_GSTRING_LEN) / 4 + 1);
  auto* const strings = reinterpret_cast<ethtool_gstrings*>(names.data());
  strings->cmd = ETHTOOL_GSTRINGS;
  strings->string_set = ETH_SS_STATS;
  strings->len = driver.n_stats;
  std::vector<std::uint64_t> values(sizeof(ethtool_stats) / 8 + kRoom);
  auto* const stats = reinterpret_cast<ethtool_stats*>(values.data());
  stats->cmd = ETHTOOL_GSTATS;
  stats->n_stats = driver.n_stats;
  if (!asking.ask(strings) || !asking.ask(stats)) return {};
  std::vector<std::pair<std::string, std::uint64_t>> all;
  for (std::size_t i = 0; i < std::min<std::size_t>({count, strings->len, stats->n_stats}); ++i) {
    const char* const text = reinterpret_cast<const char*>(strings->data) + i * ETH_GSTRING_LEN;
    all.emplace_back(std::string(text, strnlen(text, ETH_GSTRING_LEN)), stats->data[i]);
  }
  return all;
}

std::optional<Pause> pause_of(const std::string& interface) {
  ethtool_pauseparam pause{};
  pause.cmd = ETHTOOL_GPAUSEPARAM;
  if (!Asking(interface).ask(&pause)) return std::nullopt;
  return Pause{pause.rx_pause != 0, pause.tx_pause != 0};
}

}  // namespace weft::live
