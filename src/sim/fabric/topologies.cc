// The named topologies.
#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/parse.h"
#include "sim/fabric/topology.h"

namespace weft::sim {
namespace {

Rate between_switches(const TopologySpec& s) { return s.core_rate.bps != 0 ? s.core_rate : s.rate; }

std::uint32_t hosts_or_two(const TopologySpec& s) { return s.hosts != 0 ? s.hosts : 2; }

Result<Topology> single(const TopologySpec& s) {
  Topology t;
  t.hosts = hosts_or_two(s);
  t.tiers = {Tier::kEdge};
  for (std::uint32_t h = 0; h < t.hosts; ++h) t.links.push_back({h, t.switch_node(0), s.rate, s.delay});
  return t;
}

//  hosts 0 … n/2-1 -- edge0 ===== edge1 -- hosts n/2 … n-1
Result<Topology> dumbbell(const TopologySpec& s) {
  Topology t;
  t.hosts = hosts_or_two(s);
  t.tiers = {Tier::kEdge, Tier::kEdge};
  const std::uint32_t left = (t.hosts + 1) / 2;
  for (std::uint32_t h = 0; h < t.hosts; ++h)
    t.links.push_back({h, t.switch_node(h < left ? 0 : 1), s.rate, s.delay});
  t.links.push_back({t.switch_node(0), t.switch_node(1), between_switches(s), s.delay});
  return t;
}

// Pods of `edges` edge and `aggregates` aggregation switches, all connected inside the pod; aggregation
// switch a of every pod is connected to the same `uplinks` core switches.
struct Pods {
  std::uint32_t pods = 0;
  std::uint32_t edges = 0;
  std::uint32_t aggregates = 0;
  std::uint32_t uplinks = 0;
  std::uint32_t hosts_per_edge = 0;
};

Topology clos(const Pods& p, const TopologySpec& s) {
  Topology t;
  t.hosts = p.pods * p.edges * p.hosts_per_edge;
  t.tiers.insert(t.tiers.end(), p.pods * p.edges, Tier::kEdge);
  t.tiers.insert(t.tiers.end(), p.pods * p.aggregates, Tier::kAggregate);
  t.tiers.insert(t.tiers.end(), p.uplinks * p.aggregates, Tier::kCore);
  const auto edge = [&](std::uint32_t pod, std::uint32_t i) { return t.switch_node(pod * p.edges + i); };
  const auto aggregate = [&](std::uint32_t pod, std::uint32_t i) {
    return t.switch_node(p.pods * p.edges + pod * p.aggregates + i);
  };
  const auto core = [&](std::uint32_t i) { return t.switch_node(p.pods * (p.edges + p.aggregates) + i); };
  const Rate inner = between_switches(s);
  for (std::uint32_t h = 0; h < t.hosts; ++h)
    t.links.push_back({h, t.switch_node(h / p.hosts_per_edge), s.rate, s.delay});
  for (std::uint32_t pod = 0; pod < p.pods; ++pod) {
    for (std::uint32_t a = 0; a < p.aggregates; ++a) {
      for (std::uint32_t e = 0; e < p.edges; ++e)
        t.links.push_back({edge(pod, e), aggregate(pod, a), inner, s.delay});
      for (std::uint32_t c = 0; c < p.uplinks; ++c)
        t.links.push_back({aggregate(pod, a), core(a * p.uplinks + c), inner, s.delay});
    }
  }
  return t;
}

Result<Topology> fat_tree(const TopologySpec& s) {
  std::uint32_t k = s.k;
  if (k == 0) {
    for (k = 2; k < 64 && k * k * k / 4 < s.hosts;) k += 2;
    if (k * k * k / 4 != s.hosts)
      return fail("hosts: " + std::to_string(s.hosts) +
                  " is not k^3/4 for an even k up to 64: 16, 54, 128, 250, …");
  }
  if (s.hosts != 0 && s.hosts != k * k * k / 4)
    return fail("hosts: " + std::to_string(s.hosts) + " is not the k^3/4 = " + std::to_string(k * k * k / 4) +
                " that topology.k asks for");
  if (k < 2 || k > 64 || k % 2 != 0)
    return fail("topology.k: " + std::to_string(k) + " is not an even number from 2 to 64");
  return clos({k, k / 2, k / 2, k / 2, k / 2}, s);
}

// SRNIC §6.3's five settings, (ToR, aggregate, core) = (1,0,0), (4,4,0), (8,8,0), (64,64,16), (128,128,64).
// The paper gives the smallest and largest number of servers; those between, and the pods, follow from its
// 1:1 subscription of 100 Gb/s servers by 400 Gb/s links.
struct SrnicRow {
  std::uint32_t servers;
  Pods pods;
};
constexpr std::array kSrnic{SrnicRow{16, {1, 1, 0, 0, 16}}, SrnicRow{64, {1, 4, 4, 0, 16}},
                            SrnicRow{256, {1, 8, 8, 0, 32}}, SrnicRow{1024, {16, 4, 4, 4, 16}},
                            SrnicRow{4096, {16, 8, 8, 8, 32}}};

Result<Topology> srnic(const TopologySpec& s) {
  TopologySpec filled = s;
  if (s.core_rate.bps == 0) filled.core_rate = {s.rate.bps * 4};
  for (const SrnicRow& r : kSrnic) {
    if (r.servers == s.hosts) return clos(r.pods, filled);
  }
  return fail("hosts: " + std::to_string(s.hosts) + " is not one of 16, 64, 256, 1024, 4096");
}

Result<Topology> from_file(const TopologySpec& s) {
  auto t = parse_topology(s.file, s.rate, s.delay);
  if (t && s.hosts != 0 && s.hosts != t->hosts)
    return fail("hosts: " + std::to_string(s.hosts) + ", but the topology file has " +
                std::to_string(t->hosts) + "; leave it out");
  return t;
}

constexpr std::array kTopologies{
    TopologyRow{"single", "hosts around one switch", "hosts", single},
    TopologyRow{"dumbbell", "two switches and the link between them, half of the hosts at each",
                "hosts, core_rate", dumbbell},
    TopologyRow{"fat-tree", "three tiers of k-port switches, k^3/4 hosts (k = 6, 8, 10: 54, 128, 250)",
                "k or hosts, core_rate", fat_tree},
    TopologyRow{"srnic", "SRNIC's Clos settings of 16, 64, 256, 1024, 4096 hosts, 1:1, core_rate = 4 x rate",
                "hosts, core_rate", srnic},
    TopologyRow{"file", "hosts, switches and links listed in a text file", "file", from_file},
};

// Takes the first word off a line; empty when there is none.
std::string next_word(std::string_view& line) {
  const auto begin = std::min(line.find_first_not_of(" \t\r"), line.size());
  const auto end = std::min(line.find_first_of(" \t\r", begin), line.size());
  std::string word(line.substr(begin, end - begin));
  line.remove_prefix(end);
  return word;
}

Result<void> read_link(Topology& t, std::string_view& line, Link link) {
  for (std::uint32_t* end : {&link.a, &link.b}) {
    const auto node = t.node(next_word(line));
    if (!node) return tl::unexpected(node.error());
    *end = *node;
  }
  if (const std::string word = next_word(line); !word.empty()) {
    const auto rate = parse_rate("rate", word);
    if (!rate) return tl::unexpected(rate.error());
    link.rate = *rate;
  }
  if (const std::string word = next_word(line); !word.empty()) {
    const auto delay = parse_duration("delay", word);
    if (!delay) return tl::unexpected(delay.error());
    link.delay = *delay;
  }
  t.links.push_back(link);
  return {};
}

Result<void> read_line(Topology& t, std::string_view line, Rate rate, Duration delay) {
  line = line.substr(0, line.find('#'));
  const std::string word = next_word(line);
  if (word.empty()) return {};
  if (word == "hosts" || word == "switches") {
    if (!t.links.empty()) return fail("'" + word + "' must come before the first link");
    const auto n = parse_integer(word, next_word(line), 1, 65535);
    if (!n) return tl::unexpected(n.error());
    if (word == "hosts") {
      t.hosts = static_cast<std::uint32_t>(*n);
    } else {
      t.tiers.assign(static_cast<std::size_t>(*n), Tier::kEdge);
    }
  } else if (word == "link") {
    if (const auto ok = read_link(t, line, {0, 0, rate, delay}); !ok) return ok;
  } else {
    return fail("'" + word + "' is not one of hosts, switches, link");
  }
  if (const std::string more = next_word(line); !more.empty())
    return fail("'" + more + "' is one word too many");
  return {};
}

}  // namespace

std::span<const TopologyRow> topologies() { return kTopologies; }

Result<Topology> build_topology(const TopologySpec& spec) {
  for (const TopologyRow& row : kTopologies) {
    if (spec.kind != row.name) continue;
    if (spec.k != 0 && row.build != fat_tree)
      return fail("topology.k: means nothing unless topology.kind is fat-tree");
    if (spec.core_rate.bps != 0 && (row.build == single || row.build == from_file))
      return fail("topology.core_rate: means nothing where topology.kind is " + spec.kind);
    auto t = row.build(spec);
    if (!t) return t;
    if (const auto ok = t->validate(); !ok) return tl::unexpected(ok.error());
    return t;
  }
  std::string all;
  for (const TopologyRow& row : kTopologies) all += (all.empty() ? "" : ", ") + std::string(row.name);
  return fail("topology.kind: '" + spec.kind + "' is not one of " + all);
}

Result<Topology> parse_topology(const std::string& text, Rate rate, Duration delay) {
  Topology t;
  std::string_view rest = text;
  for (std::uint32_t number = 1; !rest.empty(); ++number) {
    const auto end = std::min(rest.find('\n'), rest.size());
    if (const auto ok = read_line(t, rest.substr(0, end), rate, delay); !ok)
      return fail("topology file, line " + std::to_string(number) + ": " + ok.error().message);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return t;
}

}  // namespace weft::sim
