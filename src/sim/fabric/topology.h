// A network as a graph: hosts with one link each, switches, links. Everything else about it (routes, round
// trips, buffers) is computed from this; the named ones are rows of the table in topologies.cc.
//
// Nodes are numbered: hosts from 0, then switches, then boxes. A switch has a tier, for names and results
// only. A box stands in a link and makes two of it; it neither routes nor is routed to, so for hosts and
// switches the link is still one (Span).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/impair/impair.h"

namespace weft::sim {

enum class Tier : std::uint8_t { kEdge, kAggregate, kCore };

struct Link {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  Rate rate{};
  Duration delay{};
  impair::ImpairConfig impair{};  // of this link, both ways
};

// A box in a link: the links on its two sides.
struct BoxPlace {
  std::size_t site = 0;
  std::size_t line = 0;
};

// What hosts and switches take for a link: one, or several with boxes between them.
struct Span {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::size_t first = 0;  // the link at `a`
  std::size_t last = 0;   // the link at `b`
  std::uint32_t links = 1;
  Duration delay{};
};

struct Topology {
  std::uint32_t hosts = 0;
  std::vector<Tier> tiers;  // of each switch
  std::vector<Link> links;
  std::vector<BoxPlace> boxes;

  std::uint32_t switches() const { return static_cast<std::uint32_t>(tiers.size()); }
  std::uint32_t nodes() const { return hosts + switches() + static_cast<std::uint32_t>(boxes.size()); }
  std::uint32_t switch_node(std::uint32_t index) const { return hosts + index; }
  std::uint32_t box_node(std::uint32_t index) const { return hosts + switches() + index; }
  bool is_switch(std::uint32_t node) const { return node >= hosts && node < hosts + switches(); }
  bool is_box(std::uint32_t node) const { return node >= hosts + switches(); }
  // In the order of their first links.
  std::vector<Span> spans() const;
  // Puts a box into a link, with its site at node `site`, an end of the link, by a link of this rate and
  // delay. The old link becomes the one on its other side. Returns the box's index.
  std::uint32_t insert_box(std::size_t link, std::uint32_t site, Rate rate, Duration delay);
  std::string name(std::uint32_t node) const;  // "host3", "edge0", "core2", "box1"
  // By such a name, or as "h3" and "s5", the sixth switch of all.
  Result<std::uint32_t> node(const std::string& name) const;
  // All links between the nodes of "edge0-agg1"; with boxes in between, those of the whole way.
  Result<std::vector<std::size_t>> links_named(const std::string& ends) const;
  // Every host has one link, to a switch, and can reach every other.
  Result<void> validate() const;
};

// What people choose. The row of a topology says which of these settings it uses.
struct TopologySpec {
  std::string kind = "single";
  std::uint32_t hosts = 0;  // 0: two, or as many as `k` makes
  std::uint32_t k = 0;      // fat-tree: ports of a switch; 0: as many as k^3/4 = hosts asks for
  Rate rate = gigabits(100);
  Rate core_rate{};  // between switches; 0: as `rate`
  Duration delay = microseconds(1);
  std::string file;  // file: its content
};

struct TopologyRow {
  const char* name;
  const char* text;
  const char* uses;  // settings of [topology] beside rate and delay
  Result<Topology> (*build)(const TopologySpec&);
};
std::span<const TopologyRow> topologies();
Result<Topology> build_topology(const TopologySpec& spec);

// Lines "hosts N", "switches N", "link A B [RATE] [DELAY]" with nodes h0… and s0…; # begins a comment.
Result<Topology> parse_topology(const std::string& text, Rate rate, Duration delay);

}  // namespace weft::sim
