// What an interface tells of itself by ethtool's requests.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::live {

inline constexpr std::uint32_t kMostQueues = 256;
// How many receive queues it has, kMostQueues at most; 1 if it does not tell.
std::uint32_t receive_queues(const std::string& interface);

// Whether a feature is on, by the name that `ethtool -k` shows, such as "tx-udp-segmentation".
std::optional<bool> feature(const std::string& interface, std::string_view name);

}  // namespace weft::live
