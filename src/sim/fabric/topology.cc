#include "sim/fabric/topology.h"

namespace weft::sim {

std::string Topology::name(std::uint32_t node) const {
  if (node < hosts) return "host" + std::to_string(node);
  const std::uint32_t index = node - hosts;
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < index; ++i) before += tiers[i] == tiers[index] ? 1U : 0U;
  constexpr const char* kNames[] = {"edge", "agg", "core"};
  return kNames[static_cast<std::size_t>(tiers[index])] + std::to_string(before);
}

Result<void> Topology::validate() const {
  if (hosts < 2) return fail("topology: there are fewer than two hosts");
  if (switches() == 0) return fail("topology: there is no switch");
  if (hosts > 65535 || switches() > 65534) return fail("topology: more than 65535 hosts or switches");
  std::vector<std::uint32_t> links_of(nodes(), 0);
  std::vector<std::vector<std::uint32_t>> near(switches());
  for (const Link& l : links) {
    if (l.a == l.b) return fail("topology: a link from " + name(l.a) + " to itself");
    ++links_of[l.a];
    ++links_of[l.b];
    if (l.a < hosts && l.b < hosts) return fail("topology: a link between two hosts");
    if (l.a < hosts || l.b < hosts) continue;
    near[l.a - hosts].push_back(l.b - hosts);
    near[l.b - hosts].push_back(l.a - hosts);
  }
  for (std::uint32_t h = 0; h < hosts; ++h) {
    if (links_of[h] != 1)
      return fail("topology: " + name(h) + " has " + std::to_string(links_of[h]) + " links and needs one");
  }
  std::vector<bool> seen(switches(), false);
  std::vector<std::uint32_t> reached{0};
  seen[0] = true;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const std::uint32_t n : near[reached[i]]) {
      if (!seen[n]) reached.push_back(n);
      seen[n] = true;
    }
  }
  if (reached.size() != switches()) return fail("topology: not every switch can be reached from every other");
  return {};
}

}  // namespace weft::sim
