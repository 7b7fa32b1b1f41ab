// A network as a graph: hosts with one link each, switches, links. Everything else about it (routes, round
// trips, buffers) is computed from this; the named ones are rows of the table in topologies.cc.
//
// Nodes are numbered: hosts from 0, then switches. A switch has a tier, for names and results only.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"

namespace weft::sim {

enum class Tier : std::uint8_t { kEdge, kAggregate, kCore };

struct Link {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  Rate rate{};
  Duration delay{};
};

struct Topology {
  std::uint32_t hosts = 0;
  std::vector<Tier> tiers;  // of each switch
  std::vector<Link> links;

  std::uint32_t switches() const { return static_cast<std::uint32_t>(tiers.size()); }
  std::uint32_t nodes() const { return hosts + switches(); }
  std::uint32_t switch_node(std::uint32_t index) const { return hosts + index; }
  std::string name(std::uint32_t node) const;  // "host3", "edge0", "core2"
  // By such a name, or as "h3" and "s5", the sixth switch of all.
  Result<std::uint32_t> node(const std::string& name) const;
  // All links between the nodes of "edge0-agg1".
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
