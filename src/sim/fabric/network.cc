#include "sim/fabric/network.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace weft::sim {
namespace {

// Switches as a graph of their own, with the hosts that hang off each.
struct Graph {
  struct Edge {
    std::uint32_t to;
    Duration delay;
    std::uint32_t links;
  };
  // A switch knows of its own links only: a cut between two boxes goes unnoticed.
  explicit Graph(const Topology& t, const std::vector<bool>& up = {})
      : edges(t.switches()), host_delay(t.switches(), Duration{-1}), host_links(t.switches(), 1) {
    for (const Span& l : t.spans()) {
      if (!up.empty() && !(up[l.first] && up[l.last])) continue;
      for (const auto& [from, to] : {std::pair{l.a, l.b}, std::pair{l.b, l.a}}) {
        if (from < t.hosts) continue;
        const std::uint32_t s = from - t.hosts;
        if (to < t.hosts) {
          host_delay[s] = std::max(host_delay[s], l.delay);
          host_links[s] = std::max(host_links[s], l.links);
        } else {
          edges[s].push_back({to - t.hosts, l.delay, l.links});
        }
      }
    }
  }
  std::vector<std::vector<Edge>> edges;
  std::vector<Duration> host_delay;  // longest; negative where there is no host
  std::vector<std::uint32_t> host_links;

  struct Distance {
    std::uint32_t hops = UINT32_MAX;
    Duration delay{};
    std::uint32_t links = 0;
  };
  // The distance from every switch to `to`: the fewest hops, and the delay of the slowest way with that many.
  std::vector<Distance> distances(std::uint32_t to) const {
    std::vector<Distance> d(edges.size());
    std::vector<std::uint32_t> order{to};
    d[to].hops = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::uint32_t at = order[i];
      for (const Edge& e : edges[at]) {
        if (d[e.to].hops == UINT32_MAX) {
          d[e.to].hops = d[at].hops + 1U;
          order.push_back(e.to);
        }
        if (d[e.to].hops != d[at].hops + 1U) continue;
        d[e.to].delay = std::max(d[e.to].delay, d[at].delay + e.delay);
        d[e.to].links = std::max(d[e.to].links, d[at].links + e.links);
      }
    }
    return d;
  }
};

}  // namespace

Reach reach_of(const Topology& t, const SwitchConfig& c) {
  const Graph g(t);
  Reach r;
  for (std::uint32_t to = 0; to < t.switches(); ++to) {
    if (g.host_delay[to].ps < 0) continue;
    const auto d = g.distances(to);
    for (std::uint32_t from = 0; from < t.switches(); ++from) {
      if (g.host_delay[from].ps < 0 || d[from].hops == UINT32_MAX) continue;
      r.hops = std::max(r.hops, d[from].links + g.host_links[from] + g.host_links[to]);
      r.one_way = std::max(r.one_way, d[from].delay + g.host_delay[from] + g.host_delay[to]);
    }
  }
  std::vector<std::uint64_t> ports(t.nodes(), 0);
  for (const Link& l : t.links) {
    ++ports[l.a];
    ++ports[l.b];
    if ((l.a < t.hosts || l.b < t.hosts) && (r.rate.bps == 0 || l.rate < r.rate)) r.rate = l.rate;
    if (t.is_switch(l.a) || t.is_switch(l.b))
      r.headroom = std::max(r.headroom, pfc_headroom(l.rate, l.delay, c.largest_frame, Port::kPfcFrameBytes));
  }
  __extension__ using Wide = unsigned __int128;
  r.bdp = {static_cast<std::uint64_t>(Wide{r.rate.bps} * static_cast<std::uint64_t>(2 * r.one_way.ps) /
                                      8'000'000'000'000ULL)};
  const auto first = ports.begin() + t.hosts;
  const std::uint64_t most = *std::max_element(first, first + t.switches());
  r.most_ports = static_cast<std::uint32_t>(most);
  r.fullest_switch = {c.kind == SwitchKind::kInputQueued ? c.buffer.n * most : c.buffer.n};
  return r;
}

Network::Network(Fabric& fabric, const Topology& topology, const NetworkConfig& config, Prng random)
    : topology_(topology), config_(config), near_(topology.switches()), up_(topology.links.size(), true) {
  attachment_.switch_of.resize(topology.hosts);
  attachment_.port_of.resize(topology.hosts);
  uplinks_.resize(topology.hosts);
  box_ports_.resize(topology.boxes.size());
  downlinks_.resize(topology.hosts);
  std::vector<std::uint32_t> degree(topology.nodes(), 0);
  for (const Link& l : topology.links) {
    ++degree[l.a];
    ++degree[l.b];
  }
  arrange_time(fabric);
  const auto node = [&](std::uint32_t n) {
    return fabric.apart ? NodeId{Fabric::kTogether.v + 1U + n} : Fabric::kTogether;
  };
  const bool voq = config.switches.kind == SwitchKind::kInputQueued;
  std::uint64_t label = 0;
  for (const Link& l : topology.links) {
    for (const auto& [from, to] : {std::pair{l.a, l.b}, std::pair{l.b, l.a}}) {
      PortConfig c{l.rate, l.delay, {}, {}, 1, node(from), node(to)};
      // A link's own impairments stand for the network's.
      c.impair = to < topology.hosts && l.impair.clean() ? config.impair : l.impair;
      if (from < topology.hosts) {
        c.queue = config.switches.queue;
      } else if (voq) {
        c.inputs = degree[from];
      }
      ports_.emplace_back(fabric, c, random.fork(label++));
    }
  }
  for (std::uint32_t s = 0; s < topology.switches(); ++s) {
    // Two statements, because compilers evaluate the arguments of a call in different orders.
    const Prng ways = random.fork(label + 2U * s);
    const Prng marks = random.fork(label + 2U * s + 1U);
    switches_.emplace_back(fabric, config.switches, Routes(attachment_, s, config.routing, ways), marks);
  }
  for (const Span& l : topology.spans()) {
    for (const auto& [from, to, own, far] :
         {std::tuple{l.a, l.b, l.first, l.last}, std::tuple{l.b, l.a, l.last, l.first}}) {
      const std::size_t egress = 2 * own + (topology.links[own].a == from ? 0U : 1U);
      const std::size_t ingress = egress ^ 1U;
      if (from < topology.hosts) {
        uplinks_[from] = &ports_[egress];
        downlinks_[from] = &ports_[ingress];
        continue;
      }
      const std::uint32_t s = from - topology.hosts;
      const std::uint32_t number = switches_[s].add_port(ports_[egress]);
      ports_[ingress].connect<&Switch::arrive>(switches_[s], number);
      near_[s].push_back({to, own, far, static_cast<std::uint16_t>(number), &ports_[egress]});
      if (to >= topology.hosts) continue;
      attachment_.switch_of[to] = static_cast<std::uint16_t>(s);
      attachment_.port_of[to] = static_cast<std::uint16_t>(number);
    }
  }
  for (std::uint32_t i = 0; i < topology.boxes.size(); ++i) {
    const BoxPlace& b = topology.boxes[i];
    for (const auto& [side, link] : {std::pair{BoxSide::kSite, b.site}, std::pair{BoxSide::kLine, b.line}})
      box_ports_[i][static_cast<std::size_t>(side)] =
          &ports_[2 * link + (topology.links[link].a == topology.box_node(i) ? 0U : 1U)];
  }
  if (config.switches.credits) grant_credits();
  route();
}

// Longer windows than two microseconds gain nothing. The window is the same whether nodes run apart or not,
// because programs settle at its end.
void Network::arrange_time(Fabric& fabric) const {
  constexpr Duration kLongest = microseconds(2);
  constexpr Duration kShortest = nanoseconds(100);
  Duration shortest = kLongest;
  for (const Link& l : topology_.links) shortest = std::min(shortest, l.delay);
  const bool pays = shortest >= kShortest;
  fabric.apart = config_.apart && pays;
  fabric.timeline.set_window(pays ? shortest : kLongest, fabric.apart);
}

void Network::grant_credits() {
  for (std::size_t p = 0; p < ports_.size(); ++p) {
    Switch* to = nullptr;
    std::uint32_t number = 0;
    if (!far_switch(p, to, number)) continue;  // hosts have no buffer bound
    const std::uint64_t share = credit_share(config_.switches, to->ports().size());
    to->set_share(share);
    ports_[p].grant(share, config_.switches.largest_frame, ports_[p ^ 1U]);
  }
}

bool Network::far_switch(std::size_t port, Switch*& at, std::uint32_t& number) {
  const Link& l = topology_.links[port / 2];
  const std::uint32_t to = port % 2 == 0 ? l.b : l.a;
  if (!topology_.is_switch(to)) return false;
  at = &switches_[to - topology_.hosts];
  for (const Neighbour& n : near_[to - topology_.hosts]) {
    if (n.egress == &ports_[port ^ 1U]) number = n.port;
  }
  return true;
}

void Network::route() {
  const Graph g(topology_, up_);
  std::vector<std::uint16_t> ports;
  for (std::uint32_t to = 0; to < topology_.switches(); ++to) {
    if (g.host_delay[to].ps < 0) continue;
    const auto d = g.distances(to);
    for (std::uint32_t s = 0; s < topology_.switches(); ++s) {
      if (s == to || d[s].hops == UINT32_MAX) continue;
      ports.clear();
      for (const Neighbour& n : near_[s]) {
        if (up_[n.link] && up_[n.far_link] && n.node >= topology_.hosts &&
            d[n.node - topology_.hosts].hops + 1U == d[s].hops)
          ports.push_back(n.port);
      }
      switches_[s].routes().add(to, ports);
    }
  }
}

void Network::reroute() {
  if (intact_.empty()) {
    for (const Switch& s : switches_) intact_.push_back(s.routes());
  }
  for (Switch& s : switches_) s.routes().clear();
  route();
}

void Network::set_link(std::size_t link, bool up) {
  if (up_[link] == up) return;
  up_[link] = up;
  for (const std::size_t p : {2 * link, 2 * link + 1}) up ? ports_[p].repair() : ports_[p].fail();
  for (const std::size_t p : {2 * link, 2 * link + 1}) {
    Switch* to = nullptr;
    std::uint32_t number = 0;
    const bool into_switch = far_switch(p, to, number);
    if (config_.switches.credits) {
      if (up && into_switch) ports_[p].grant_again(to->buffered_from(number));
      continue;
    }
    const std::uint32_t stopped = up && into_switch ? to->stopped(number) : 0;
    for (std::uint8_t k = 0; k < kClasses; ++k) {
      const bool stop = (stopped >> k & 1U) != 0;
      if (ports_[p].paused(k) == stop) continue;
      Transit pfc;
      pfc.traffic_class = k;
      pfc.kind = stop ? Transit::Kind::kPause : Transit::Kind::kResume;
      ports_[p ^ 1U].tell(pfc);
    }
  }
}

std::string Network::port_name(std::size_t port) const {
  const Link& l = topology_.links[port / 2];
  const std::string a = topology_.name(l.a);
  const std::string b = topology_.name(l.b);
  return port % 2 == 0 ? a + ">" + b : b + ">" + a;
}

Reach Network::reach() const { return reach_of(topology_, config_.switches); }

std::vector<const Port*> Network::way(std::uint32_t from, std::uint32_t to) const {
  std::vector<const Port*> ports;
  // A port, and those of boxes behind it.
  const auto through = [&](const Port* p) {
    ports.push_back(p);
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < box_ports_.size(); ++i) {
        const BoxPlace& b = topology_.boxes[i];
        for (const auto& [in, out] : {std::pair{b.site, BoxSide::kLine}, std::pair{b.line, BoxSide::kSite}}) {
          const std::size_t into =
              2 * in + (topology_.links[in].a == topology_.box_node(static_cast<std::uint32_t>(i)) ? 1U : 0U);
          if (ports.back() != &ports_[into]) continue;
          ports.push_back(box_ports_[i][static_cast<std::size_t>(out)]);
          more = true;
        }
      }
    }
  };
  through(uplinks_[from]);
  std::uint32_t at = attachment_.switch_of[from];
  Transit probe;
  probe.destination = {to};
  while (at != attachment_.switch_of[to]) {
    const Routes& routes = intact_.empty() ? switches_[at].routes() : intact_[at];
    const std::uint32_t out = routes.any_port(probe);
    const Neighbour& n = near_[at][out];
    through(n.egress);
    at = n.node - topology_.hosts;
  }
  for (const Neighbour& n : near_[at]) {
    if (n.node == to) through(n.egress);
  }
  return ports;
}

}  // namespace weft::sim
