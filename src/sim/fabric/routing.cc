#include "sim/fabric/routing.h"

#include <algorithm>

namespace weft::sim {

void Routes::add(std::uint32_t to, std::span<const std::uint16_t> ports) {
  if (group_of_.size() <= to) group_of_.resize(to + 1U, 0);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const auto first = members_.begin() + static_cast<std::ptrdiff_t>(groups_[g].first);
    if (groups_[g].count == ports.size() && std::equal(ports.begin(), ports.end(), first)) {
      group_of_[to] = static_cast<std::uint16_t>(g);
      return;
    }
  }
  group_of_[to] = static_cast<std::uint16_t>(groups_.size());
  groups_.push_back({static_cast<std::uint32_t>(members_.size()), static_cast<std::uint32_t>(ports.size())});
  members_.insert(members_.end(), ports.begin(), ports.end());
}

}  // namespace weft::sim
