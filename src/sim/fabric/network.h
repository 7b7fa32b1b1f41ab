// A topology come to life: ports, switches with their routes, and the figures that follow from the graph.
//
// Hosts are attached from outside: `uplink(h)` is the port that host h sends by, and what is for it arrives
// at what attach() names. Impairments act on the links into hosts, so each packet meets them once per way.
//
// A link that fails loses what is on it and what is still sent into it: ports go on sending, and what waits
// in their queues is lost, too, until reroute() is called and switches choose among the shortest ways that
// are left. A switch drops a packet that has no way left. While a link is failed, neither PFC nor credits
// stop its ports. At its repair both ends learn which classes PFC has stopped and how much credit there is.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "sim/fabric/switch.h"
#include "sim/fabric/topology.h"

namespace weft::sim {

struct NetworkConfig {
  SwitchConfig switches;
  Routing routing = Routing::kEcmp;
  impair::ImpairConfig impair;
  // Hosts and switches may run apart in time (timeline.h): nothing but the network connects them, and nobody
  // watches them in order of time. They do if every link takes long enough for that to pay.
  bool apart = false;
};

// What a transport and a buffer are sized by. IRN §4.1 has the formulas.
struct Reach {
  std::uint32_t hops = 0;        // links of the longest of the shortest ways
  Duration one_way{};            // its propagation delay
  Rate rate{};                   // of the slowest host link
  Bytes bdp{};                   // rate x 2 one_way
  std::uint32_t most_ports = 0;  // of a switch
  Bytes fullest_switch{};        // all that one switch may buffer; 0: unbounded
  Bytes headroom{};              // largest of any port
};

// Of a box: towards its site, towards the line.
enum class BoxSide : std::uint8_t { kSite, kLine };

class Network {
 public:
  // `topology` is valid.
  Network(Fabric& fabric, const Topology& topology, const NetworkConfig& config, Prng random);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  Port& uplink(std::uint32_t host) { return *uplinks_[host]; }
  template <auto Member, class T>
  void attach(std::uint32_t host, T& nic) {
    downlinks_[host]->connect<Member>(nic, 0);
    downlinks_[host]->leads_to_host();
  }

  // What arrives at a box arrives by node.Member(transit, side); it sends by the port of a side.
  Port& box_port(std::uint32_t box, BoxSide side) { return *box_ports_[box][static_cast<std::size_t>(side)]; }
  template <auto Member, class T>
  void attach_box(std::uint32_t box, T& node) {
    const BoxPlace& b = topology_.boxes[box];
    for (const auto& [side, link] : {std::pair{BoxSide::kSite, b.site}, std::pair{BoxSide::kLine, b.line}}) {
      const std::size_t into = 2 * link + (topology_.links[link].a == topology_.box_node(box) ? 1U : 0U);
      ports_[into].connect<Member>(node, static_cast<std::uint32_t>(side));
    }
  }

  const Topology& topology() const { return topology_; }
  const std::deque<Switch>& switches() const { return switches_; }
  // Port 2 i is link i from a to b, port 2 i + 1 from b to a.
  const std::deque<Port>& ports() const { return ports_; }
  std::string port_name(std::size_t port) const;
  Reach reach() const;
  // The ports on one of the ways between two hosts, with all links in order.
  std::vector<const Port*> way(std::uint32_t from, std::uint32_t to) const;

  void set_link(std::size_t link, bool up);
  bool link_up(std::size_t link) const { return up_[link]; }
  // From now on switches know which links are up.
  void reroute();

 private:
  void arrange_time(Fabric& fabric) const;
  void route();
  void grant_credits();
  // The switch at the far end of a port, and the number of the far end's port there; false for a host.
  bool far_switch(std::size_t port, Switch*& at, std::uint32_t& number);

  struct Neighbour {
    std::uint32_t node;    // behind boxes, if there are any
    std::size_t link;      // at the switch
    std::size_t far_link;  // at the node
    std::uint16_t port;    // of the switch
    Port* egress;
  };

  Topology topology_;
  NetworkConfig config_;
  Attachment attachment_;
  std::deque<Port> ports_;
  std::deque<Switch> switches_;
  std::vector<Port*> uplinks_;
  std::vector<Port*> downlinks_;
  std::vector<std::array<Port*, 2>> box_ports_;  // by side
  std::vector<std::vector<Neighbour>> near_;     // of each switch
  std::vector<bool> up_;                         // each link
  std::vector<Routes> intact_;                   // each switch's, before the first reroute()
};

// The same from the topology alone, without a Network.
Reach reach_of(const Topology& topology, const SwitchConfig& switches);

}  // namespace weft::sim
