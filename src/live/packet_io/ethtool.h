// What an interface tells of itself by ethtool's requests.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::live {

inline constexpr std::uint32_t kMostQueues = 256;
// How many receive queues it has, kMostQueues at most; 1 if it does not tell.
std::uint32_t receive_queues(const std::string& interface);

// Whether a feature is on, by the name that `ethtool -k` shows, such as "tx-udp-segmentation".
std::optional<bool> feature(const std::string& interface, std::string_view name);

// The driver's own counters, by the names that `ethtool -S` shows; empty: it has none, or does not tell.
std::vector<std::pair<std::string, std::uint64_t>> statistics(const std::string& interface);

// Whether the interface stops its peer, and is stopped by it, with pause frames of the whole link. What is
// agreed for a priority (PFC) is not among ethtool's answers.
struct Pause {
  bool receive = false;
  bool send = false;
};
std::optional<Pause> pause_of(const std::string& interface);

}  // namespace weft::live
