// Which way a switch sends a packet. Hosts are told apart by the switch that they hang off: a switch knows,
// for every such switch, the ports that begin a shortest path to it. Among several,
//
//   ecmp    by a hash of the flow, salted per switch: one flow takes one way
//   spray   at random, packet by packet: packets of a flow overtake each other
//   fixed   by destination: all that goes to one host takes one way, the same for all flows
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/prng.h"
#include "sim/fabric/packet.h"

namespace weft::sim {

// Hashes the ends of a flow to 32 bits, so that a switch only has to mix in its salt.
inline std::uint32_t flow_hash(std::uint32_t from, std::uint32_t to, std::uint32_t flow) {
  std::uint64_t z = (std::uint64_t{from} << 40U) ^ (std::uint64_t{to} << 20U) ^ flow;
  z = (z ^ (z >> 30U)) * 0xBF58'476D'1CE4'E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D0'49BB'1331'11EBULL;
  return static_cast<std::uint32_t>(z >> 32U);
}

enum class Routing : std::uint8_t { kEcmp, kSpray, kFixed };

// Where each host is: shared by all switches of a network.
struct Attachment {
  std::vector<std::uint16_t> switch_of;  // by host: index of its switch
  std::vector<std::uint16_t> port_of;    // by host: that switch's port
};

class Routes {
 public:
  static constexpr std::uint32_t kNoPort = UINT32_MAX;

  Routes(const Attachment& where, std::uint32_t self, Routing policy, Prng random)
      : where_(where), self_(self), policy_(policy), random_(random) {
    salt_ = static_cast<std::uint32_t>(random_.next());
  }

  // `ports` begin the shortest ways to the hosts of switch `to`.
  void add(std::uint32_t to, std::span<const std::uint16_t> ports);

  void clear() {
    group_of_.clear();
    groups_.assign(1, Group{});
    members_.clear();
  }

  // Any port that leads there; for inspecting the network, not for sending.
  std::uint32_t any_port(const Transit& t) const {
    const Group g = groups_[group_of_[where_.switch_of[t.destination.v]]];
    return members_[g.first];
  }

  std::uint32_t port_for(const Transit& t) {
    if (t.destination.v >= where_.switch_of.size()) return kNoPort;
    const std::uint32_t to = where_.switch_of[t.destination.v];
    if (to == self_) return where_.port_of[t.destination.v];
    if (to >= group_of_.size()) return kNoPort;
    const Group g = groups_[group_of_[to]];
    if (g.count <= 1) return g.count == 0 ? kNoPort : members_[g.first];
    return members_[g.first + pick(t, g.count)];
  }

 private:
  struct Group {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  std::uint32_t pick(const Transit& t, std::uint32_t count) {
    switch (policy_) {
      case Routing::kEcmp: {
        std::uint32_t h = (t.flow ^ salt_) * 0x9E37'79B1U;
        h = (h ^ (h >> 15U)) * 0x85EB'CA77U;
        return static_cast<std::uint32_t>((std::uint64_t{h ^ (h >> 13U)} * count) >> 32U);
      }
      case Routing::kSpray:
        return static_cast<std::uint32_t>(random_.below(count));
      case Routing::kFixed:
        break;
    }
    return t.destination.v % count;
  }

  const Attachment& where_;
  std::uint32_t self_;
  Routing policy_;
  std::uint32_t salt_ = 0;
  Prng random_;
  std::vector<std::uint16_t> group_of_;  // by switch
  std::vector<Group> groups_{Group{}};   // the first: no way
  std::vector<std::uint16_t> members_;
};

}  // namespace weft::sim
