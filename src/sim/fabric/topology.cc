#include "sim/fabric/topology.h"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace weft::sim {
namespace {

constexpr std::array<const char*, 3> kTierNames{"edge", "agg", "core"};

}  // namespace

std::string Topology::name(std::uint32_t node) const {
  if (node < hosts) return "host" + std::to_string(node);
  if (is_box(node)) return "box" + std::to_string(node - box_node(0));
  const std::uint32_t index = node - hosts;
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < index; ++i) before += tiers[i] == tiers[index] ? 1U : 0U;
  return kTierNames[static_cast<std::size_t>(tiers[index])] + std::to_string(before);
}

Result<std::uint32_t> Topology::node(const std::string& name) const {
  const std::size_t digits = std::min(name.find_first_of("0123456789"), name.size());
  const std::string_view kind = std::string_view(name).substr(0, digits);
  std::uint32_t n = 0;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + digits, end, n);
  if (read.ec == std::errc{} && read.ptr == end) {
    if ((kind == "h" || kind == "host") && n < hosts) return n;
    if (kind == "s" && n < switches()) return switch_node(n);
    if (kind == "box" && n < boxes.size()) return box_node(n);
    for (std::uint32_t s = 0; s < switches(); ++s) {
      if (kind == kTierNames[static_cast<std::size_t>(tiers[s])] && n-- == 0) return switch_node(s);
    }
  }
  return fail("'" + name + "' is not a node of this topology");
}

Result<std::vector<std::size_t>> Topology::links_named(const std::string& ends) const {
  const std::size_t dash = ends.find('-');
  if (dash == std::string::npos) return fail("'" + ends + "' is not two nodes such as edge0-agg1");
  const auto a = node(ends.substr(0, dash));
  if (!a) return tl::unexpected(a.error());
  const auto b = node(ends.substr(dash + 1));
  if (!b) return tl::unexpected(b.error());
  const auto fits = [&](std::uint32_t one, std::uint32_t other) {
    return std::pair{one, other} == std::pair{*a, *b} || std::pair{other, one} == std::pair{*a, *b};
  };
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (fits(links[i].a, links[i].b)) found.push_back(i);
  }
  for (const Span& s : spans()) {
    if (s.links == 1 || !fits(s.a, s.b)) continue;
    std::uint32_t at = s.a;
    std::size_t link = s.first;
    for (std::uint32_t n = 0; n < s.links; ++n) {
      found.push_back(link);
      at = links[link].a == at ? links[link].b : links[link].a;
      if (!is_box(at)) break;
      const BoxPlace& box = boxes[at - box_node(0)];
      link = box.site == link ? box.line : box.site;
    }
  }
  if (found.empty()) return fail("there is no link between " + name(*a) + " and " + name(*b));
  return found;
}

std::vector<Span> Topology::spans() const {
  std::vector<Span> all;
  all.reserve(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& l = links[i];
    if (!is_box(l.a) && !is_box(l.b)) {
      all.push_back({l.a, l.b, i, i, 1, l.delay});
      continue;
    }
    if (is_box(l.a) && is_box(l.b)) continue;
    Span s{is_box(l.a) ? l.b : l.a, 0, i, i, 1, l.delay};
    std::uint32_t at = is_box(l.a) ? l.a : l.b;
    for (; is_box(at); ++s.links) {
      const BoxPlace& box = boxes[at - box_node(0)];
      s.last = box.site == s.last ? box.line : box.site;
      at = links[s.last].a == at ? links[s.last].b : links[s.last].a;
      s.delay = s.delay + links[s.last].delay;
    }
    s.b = at;
    if (s.first < s.last) all.push_back(s);  // it is found from both ends
  }
  return all;
}

std::uint32_t Topology::insert_box(std::size_t link, std::uint32_t site, Rate rate, Duration delay) {
  const auto index = static_cast<std::uint32_t>(boxes.size());
  const std::uint32_t node = box_node(index);
  (links[link].a == site ? links[link].a : links[link].b) = node;
  // A box that stands on the other side of this link has it by the same number.
  boxes.push_back({links.size(), link});
  links.push_back({site, node, rate, delay});
  return index;
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
