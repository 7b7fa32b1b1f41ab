// Switches, PFC, ECN, routing and topologies: closed forms where there are any, invariants under random
// traffic elsewhere.
#include "sim/fabric/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace weft::sim {
namespace {

using ::testing::HasSubstr;

// A host without a transport: sends planned frames when its link is free, obeys PFC, and notes what arrives.
struct Host {
  Host(Fabric& f, Network& n, std::uint32_t h) : fabric(f), network(n), number(h) {
    n.attach<&Host::arrive>(h, *this);
    n.uplink(h).on_idle<&Host::on_idle>(*this);
  }
  void plan(std::uint32_t to, std::uint32_t packets, std::uint32_t flow, std::uint8_t traffic_class = 0) {
    for (std::uint32_t i = 0; i < packets; ++i) todo.push_back(Transit{{}, {to}, flow, 1000, traffic_class});
  }
  void on_idle(Time) { pump(); }
  void pump() {
    Port& up = network.uplink(number);
    while (next != todo.size() && up.free_for(todo[next].traffic_class)) {
      const Transit& t = todo[next++];
      const PacketRef ref = fabric.packets.acquire();
      Packet& p = fabric.packets.at(ref);
      p = Packet{};
      p.frame = t.bytes;
      p.destination = t.destination;
      p.flow = t.flow;
      p.traffic_class = t.traffic_class;
      p.ecn_capable = true;
      up.send(ref);
    }
    if (next != todo.size() && !up.paused(todo[next].traffic_class)) up.await_idle();
  }
  void arrive(const Transit& t, std::uint32_t) {
    if (t.is_pfc()) {
      network.uplink(number).pause(t.traffic_class, t.kind == Transit::Kind::kPause);
      ++pfc_frames;
      return pump();
    }
    EXPECT_EQ(t.destination.v, number);
    flows.push_back(t.flow);
    times.push_back(fabric.timeline.now().ps);
    marked += t.congested ? 1U : 0U;
    fabric.release(t.packet);
  }

  Fabric& fabric;
  Network& network;
  std::uint32_t number;
  std::vector<Transit> todo;
  std::size_t next = 0;
  std::vector<std::uint32_t> flows;  // in order of arrival
  std::vector<std::int64_t> times;
  std::uint32_t marked = 0;
  std::uint32_t pfc_frames = 0;
};

struct World {
  World(const TopologySpec& spec, const NetworkConfig& config, std::uint64_t seed = 1) {
    const auto topology = build_topology(spec);
    EXPECT_TRUE(topology.has_value()) << topology.error().message;
    network = std::make_unique<Network>(fabric, *topology, config, Prng(seed));
    for (std::uint32_t h = 0; h < topology->hosts; ++h)
      hosts.push_back(std::make_unique<Host>(fabric, *network, h));
  }
  void run() {
    for (const auto& h : hosts) h->pump();
    fabric.timeline.run(Time{} + seconds(10), 100'000'000);
  }
  std::uint64_t drops() const {
    std::uint64_t n = 0;
    for (const Switch& s : network->switches())
      n += s.counters().dropped_full + s.counters().dropped_no_route;
    return n;
  }
  std::uint64_t delivered() const {
    std::uint64_t n = 0;
    for (const auto& h : hosts) n += h->flows.size();
    return n;
  }
  std::uint64_t planned() const {
    std::uint64_t n = 0;
    for (const auto& h : hosts) n += h->todo.size();
    return n;
  }
  Fabric fabric;
  std::unique_ptr<Network> network;
  std::vector<std::unique_ptr<Host>> hosts;
};

TopologySpec star(std::uint32_t hosts) {
  TopologySpec s;
  s.hosts = hosts;
  return s;
}

TopologySpec tree(std::uint32_t k) {
  TopologySpec s;
  s.kind = "fat-tree";
  s.k = k;
  return s;
}

// --- topologies -----------------------------------------------------------------------------------

TEST(Topology, SizesAreThoseOfThePapers) {
  const auto count = [](const Topology& t, Tier tier) {
    return std::count(t.tiers.begin(), t.tiers.end(), tier);
  };
  // IRN §4.1: 54 servers, 45 switches of 6 ports; §4.4: 128 and 250 servers.
  for (const auto& [k, hosts] : {std::pair{6U, 54U}, {8U, 128U}, {10U, 250U}}) {
    const auto t = build_topology(tree(k));
    ASSERT_TRUE(t.has_value());
    EXPECT_EQ(t->hosts, hosts);
    EXPECT_EQ(t->switches(), 5 * k * k / 4);
    EXPECT_EQ(t->links.size(), 3U * hosts) << "full bisection";
  }
  // SRNIC §6.3.
  struct Setting {
    std::uint32_t servers;
    long edge, aggregate, core;
  };
  for (const Setting& s :
       {Setting{16, 1, 0, 0}, {64, 4, 4, 0}, {256, 8, 8, 0}, {1024, 64, 64, 16}, {4096, 128, 128, 64}}) {
    TopologySpec spec = star(s.servers);
    spec.kind = "srnic";
    const auto t = build_topology(spec);
    ASSERT_TRUE(t.has_value()) << t.error().message;
    EXPECT_EQ(t->hosts, s.servers);
    EXPECT_EQ(count(*t, Tier::kEdge), s.edge);
    EXPECT_EQ(count(*t, Tier::kAggregate), s.aggregate);
    EXPECT_EQ(count(*t, Tier::kCore), s.core);
    // 1:1 subscription: what comes in from below an edge switch fits through its links upwards.
    std::map<std::uint32_t, std::int64_t> balance;
    for (const Link& l : t->links) {
      if (l.a < t->hosts) balance[l.b] += static_cast<std::int64_t>(l.rate.bps);
      if (l.a >= t->hosts && t->tiers[l.a - t->hosts] == Tier::kEdge)
        balance[l.a] -= static_cast<std::int64_t>(l.rate.bps);
    }
    for (const auto& [node, bps] : balance) {
      EXPECT_EQ(bps, s.aggregate == 0 ? 1'600'000'000'000 : 0) << t->name(node);
    }
  }
}

// IRN §4.1: 40 Gb/s, 2 us, 6 hops make 120 KB; buffers of 240 KB per port and 6 ports; the upstream link
// holds 20 KB.
TEST(Topology, ReachIsWhatThePaperComputes) {
  TopologySpec spec = tree(6);
  spec.rate = gigabits(40);
  spec.delay = microseconds(2);
  SwitchConfig c;
  c.kind = SwitchKind::kInputQueued;
  c.buffer = {240'000};
  c.largest_frame = 1122;
  const Reach r = reach_of(*build_topology(spec), c);
  EXPECT_EQ(r.hops, 6U);
  EXPECT_EQ(r.one_way, microseconds(12));
  EXPECT_EQ(r.bdp.n, 120'000U);
  EXPECT_EQ(r.most_ports, 6U);
  EXPECT_EQ(r.fullest_switch.n, 6U * 240'000U);
  EXPECT_EQ(r.headroom.n, 20'000U + 3 * 1122 + 2 * Port::kPfcFrameBytes);
}

TEST(Topology, AFileListsNodesAndLinks) {
  TopologySpec spec;
  spec.kind = "file";
  spec.file =
      "# two racks\nhosts 3\nswitches 2\nlink h0 s0\nlink h1 s0 25Gbps\nlink h2 s1 25Gbps 5us\nlink s0 s1 "
      "10Gbps\n";
  const auto t = build_topology(spec);
  ASSERT_TRUE(t.has_value()) << t.error().message;
  EXPECT_EQ(t->hosts, 3U);
  EXPECT_EQ(t->links.at(0).rate, gigabits(100)) << "the default";
  EXPECT_EQ(t->links.at(2).delay, microseconds(5));
  EXPECT_EQ(reach_of(*t, {}).hops, 3U);
  spec.hosts = 3;
  EXPECT_TRUE(build_topology(spec).has_value());
  spec.hosts = 4;
  EXPECT_EQ(build_topology(spec).error().message, "hosts: 4, but the topology file has 3; leave it out");
  spec.hosts = 0;
  const auto refused = [&](const char* text) {
    spec.file = text;
    const auto wrong = build_topology(spec);
    return wrong ? std::string("accepted") : wrong.error().message;
  };
  EXPECT_THAT(refused("hosts 2\nswitches 1\nlink h0 s0\nlink h1 s1\n"),
              HasSubstr("line 4: 's1' is not a node"));
  EXPECT_THAT(refused("hosts 2\nswitches 1\nlink h0 s0\n"), HasSubstr("host1 has 0 links"));
  EXPECT_THAT(refused("hosts 2\nswitches 2\nlink h0 s0\nlink h1 s1\n"), HasSubstr("not every switch"));
  EXPECT_THAT(refused("hosts 2\nswitches 1\nlink h0 s0 fast\n"), HasSubstr("rate"));
  EXPECT_THAT(refused("hosts 2\nrouters 1\n"), HasSubstr("'routers' is not one of"));
  EXPECT_THAT(refused("hosts 1\nswitches 1\nlink h0 s0\n"), HasSubstr("fewer than two hosts"));
  EXPECT_THAT(refused("hosts 2\nswitches 1\nlink h0 h1\n"), HasSubstr("between two hosts"));
}

// --- routing --------------------------------------------------------------------------------------

TEST(Routing, EveryHostReachesEveryOther) {
  for (const Routing r : {Routing::kEcmp, Routing::kSpray, Routing::kFixed}) {
    NetworkConfig config;
    config.routing = r;
    World w(tree(4), config);
    for (std::uint32_t from = 0; from < 16; ++from) {
      for (std::uint32_t to = 0; to < 16; ++to) {
        if (from != to) w.hosts[from]->plan(to, 2, from * 16 + to);
      }
    }
    w.run();
    EXPECT_EQ(w.delivered(), 16U * 15U * 2U);
    EXPECT_EQ(w.drops(), 0U);
    for (const Switch& s : w.network->switches()) EXPECT_EQ(s.buffered(), 0U);
    EXPECT_EQ(w.fabric.packets.in_use(), 0U);
  }
}

// Host 0's edge switch has k/2 ways up. One flow takes one of them under ecmp and fixed, all of them when
// sprayed; many flows to one host take all of them under ecmp and one when fixed.
TEST(Routing, PoliciesDifferInWhoSharesAWay) {
  const auto ways_up = [](Routing routing, std::uint32_t flows) {
    NetworkConfig config;
    config.routing = routing;
    World w(tree(8), config);
    for (std::uint32_t f = 0; f < flows; ++f) w.hosts[0]->plan(127, 256 / flows, f * 0x9E37'79B9U);
    w.run();
    EXPECT_EQ(w.delivered(), 256U);
    std::uint32_t used = 0;
    for (const Port* p : w.network->switches()[0].ports()) used += p->counters().packets != 0 ? 1U : 0U;
    return used;
  };
  EXPECT_EQ(ways_up(Routing::kEcmp, 1), 1U);
  EXPECT_EQ(ways_up(Routing::kSpray, 1), 4U);
  EXPECT_EQ(ways_up(Routing::kFixed, 1), 1U);
  EXPECT_EQ(ways_up(Routing::kEcmp, 64), 4U);
  EXPECT_EQ(ways_up(Routing::kFixed, 64), 1U);
}

// --- disciplines ----------------------------------------------------------------------------------

// Two links feed an output at once, one with ten times as many packets. Both disciplines serve these two in
// turns: round robin by design, one queue for all because the packets arrive in turns. A third input joins
// late and tells the disciplines apart: with virtual output queues it does not wait behind the others.
TEST(Discipline, AnInputQueuedSwitchServesItsInputsByTurns) {
  const auto third_waits = [](SwitchKind kind) {
    NetworkConfig config;
    config.switches.kind = kind;
    World w(star(4), config);
    w.hosts[0]->plan(3, 400, 0);
    w.hosts[1]->plan(3, 400, 1);
    for (const auto& h : w.hosts) h->pump();
    w.fabric.timeline.run(Time{} + microseconds(20), UINT64_MAX);
    w.hosts[2]->plan(3, 1, 2);
    const std::size_t before = w.hosts[3]->flows.size();
    w.run();
    const auto& flows = w.hosts[3]->flows;
    return static_cast<std::size_t>(std::find(flows.begin(), flows.end(), 2U) - flows.begin()) - before;
  };
  // One link delay and two serialisations are about 40 packets of the output's.
  EXPECT_LT(third_waits(SwitchKind::kInputQueued), 45U);
  EXPECT_GT(third_waits(SwitchKind::kOutputQueued), 100U);
}

TEST(Discipline, TheHigherClassGoesFirst) {
  World w(star(3), {});
  w.hosts[0]->plan(2, 200, 0, 1);
  w.hosts[1]->plan(2, 200, 1, 5);
  w.run();
  const auto& flows = w.hosts[2]->flows;
  ASSERT_EQ(flows.size(), 400U);
  // The low class gets through before the first of the high class arrives, then not until the last has left.
  const auto last_high = std::find(flows.rbegin(), flows.rend(), 1U).base() - flows.begin();
  EXPECT_LE(last_high, 203);
}

// Choudhury and Hahne: one hot queue settles at alpha / (1 + alpha) of the buffer.
TEST(Discipline, ADynamicThresholdLeavesRoomForOthers) {
  for (const auto& [alpha_64, part] : {std::pair{64U, 0.5}, {16U, 0.2}, {256U, 0.8}}) {
    NetworkConfig config;
    config.switches.buffer = {200'000};
    config.switches.alpha_64 = alpha_64;
    World w(star(4), config);
    for (std::uint32_t h = 0; h < 3; ++h) w.hosts[h]->plan(3, 1000, h);
    w.run();
    EXPECT_GT(w.drops(), 0U);
    const Switch& s = w.network->switches()[0];
    EXPECT_NEAR(static_cast<double>(s.ports()[3]->counters().longest_queue), part * 200'000, 1500)
        << alpha_64;
    EXPECT_EQ(w.delivered() + w.drops(), w.planned());
  }
}

TEST(Discipline, AnInputBufferBelongsToItsPort) {
  NetworkConfig config;
  config.switches.kind = SwitchKind::kInputQueued;
  config.switches.buffer = {30'000};
  World w(star(4), config);
  w.hosts[0]->plan(3, 500, 0);
  w.hosts[1]->plan(3, 500, 1);
  w.hosts[2]->plan(1, 500, 2);  // an output of its own: nothing of it may be lost
  w.run();
  EXPECT_EQ(w.hosts[1]->flows.size(), 500U);
  EXPECT_GT(w.drops(), 0U);
  EXPECT_LE(w.network->switches()[0].counters().fullest, 30'000U);
  EXPECT_GT(w.network->switches()[0].counters().fullest, 29'000U);
}

// --- ECN ------------------------------------------------------------------------------------------

TEST(Ecn, AStepMarksWhatJoinsALongerQueue) {
  NetworkConfig config;
  config.switches.ecn = {EcnConfig::Kind::kStep, 10'000, 0, 0};
  World w(star(3), config);
  w.hosts[0]->plan(2, 30, 0);
  w.hosts[1]->plan(2, 30, 1);
  w.run();
  // In each slot two frames come and one leaves. The first of all finds the link free; the queue then grows
  // by one a slot and each slot's two see it at n and n + 1 packets, the joining one included: from slot 10
  // on both are above 10, in slot 9 one is.
  EXPECT_EQ(w.hosts[2]->marked, 2U * 20U + 1U);
}

TEST(Ecn, RedMarksMoreTheLongerTheQueue) {
  const auto marked = [](std::uint64_t low, std::uint64_t high, std::uint32_t probability) {
    NetworkConfig config;
    config.switches.ecn = {EcnConfig::Kind::kRed, low, high, probability};
    World w(star(3), config);
    w.hosts[0]->plan(2, 2000, 0);
    w.hosts[1]->plan(2, 2000, 1);
    w.run();
    return w.hosts[2]->marked;
  };
  // The queue sweeps evenly from 0 to 2 MB: half of what joins between low and high is marked at
  // probability 1.
  EXPECT_NEAR(marked(0, 2'001'000, 1'000'000), 2000, 150);
  EXPECT_NEAR(marked(0, 2'001'000, 100'000), 200, 60);
  EXPECT_NEAR(marked(0, 1'000'000, 100'000), 2000 + 100, 60) << "all above high";
}

// --- PFC ------------------------------------------------------------------------------------------

// Random overload of a fat-tree in two classes: nothing is ever dropped, nothing is stuck, buffers stay
// within bounds, pauses reach the hosts, every X-OFF is followed by an X-ON.
TEST(Pfc, NeverDropsAndNeverSticks) {
  std::uint64_t at_hosts = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    for (const SwitchKind kind : {SwitchKind::kInputQueued, SwitchKind::kOutputQueued}) {
      SCOPED_TRACE("seed " + std::to_string(seed) +
                   (kind == SwitchKind::kInputQueued ? " input" : " output"));
      NetworkConfig config;
      config.switches.kind = kind;
      config.switches.pfc = true;
      config.switches.largest_frame = 1000;
      const std::uint64_t headroom =
          pfc_headroom(gigabits(100), microseconds(1), 1000, Port::kPfcFrameBytes).n;
      // Not a byte more than the arithmetic asks for. Two classes may both have to be stopped, each with
      // headroom.
      const bool two_classes = seed % 3 == 0;
      config.switches.classes = seed % 3 == 0 ? 2 : 1;
      config.switches.buffer = {(kind == SwitchKind::kInputQueued ? 1U : 4U) * config.switches.classes *
                                (headroom + 4'000)};
      config.routing = seed % 2 == 0 ? Routing::kSpray : Routing::kEcmp;
      World w(tree(4), config, seed);
      Prng random(seed);
      for (std::uint32_t h = 0; h < 16; ++h) {
        for (int burst = 0; burst < 12; ++burst) {
          // Three hosts in four send to the same two.
          const std::uint32_t to = random.chance(750'000) ? static_cast<std::uint32_t>(random.below(2))
                                                          : static_cast<std::uint32_t>(random.below(16));
          if (to != h)
            w.hosts[h]->plan(to, static_cast<std::uint32_t>(random.between(1, 80)),
                             static_cast<std::uint32_t>(random.next()),
                             two_classes ? static_cast<std::uint8_t>(random.below(2)) : std::uint8_t{0});
        }
      }
      w.run();
      EXPECT_EQ(w.drops(), 0U);
      EXPECT_EQ(w.delivered(), w.planned());
      EXPECT_EQ(w.fabric.packets.in_use(), 0U);
      EXPECT_TRUE(w.fabric.timeline.idle());
      for (const Switch& s : w.network->switches()) {
        EXPECT_LE(s.counters().fullest, config.switches.buffer.n);
        EXPECT_EQ(s.buffered(), 0U);
      }
      for (const Port& p : w.network->ports()) {
        for (std::uint8_t k = 0; k < 2; ++k) EXPECT_FALSE(p.paused(k));
      }
      for (const auto& h : w.hosts) at_hosts += h->pfc_frames;
    }
  }
  EXPECT_GT(at_hosts, 100U);
}

// Without headroom the same traffic is dropped, so the test above can fail.
TEST(Pfc, WithoutHeadroomItDrops) {
  NetworkConfig config;
  config.switches.kind = SwitchKind::kInputQueued;
  config.switches.pfc = true;
  config.switches.buffer = {12'000};
  config.switches.xoff = {10'000};
  World w(star(4), config);
  for (std::uint32_t h = 0; h < 3; ++h) w.hosts[h]->plan(3, 300, h);
  w.run();
  EXPECT_GT(w.drops(), 0U);
}

TEST(Pfc, StopsOneClassAndNotTheOther) {
  NetworkConfig config;
  config.switches.pfc = true;
  config.switches.buffer = {1'000'000};
  config.switches.xoff = {20'000};
  World w(star(4), config);
  w.hosts[0]->plan(3, 400, 0, 0);
  w.hosts[1]->plan(3, 400, 1, 0);
  w.hosts[2]->plan(3, 50, 2, 4);
  w.run();
  const Port& up0 = w.network->uplink(0);
  EXPECT_GT(up0.paused_for().ps, microseconds(5).ps);
  EXPECT_EQ(w.network->uplink(2).paused_for().ps, 0);
  EXPECT_EQ(w.delivered(), 850U);
  // Two senders into one link: each is stopped about half of the time that its 400 packets take in the end.
  const double busy = 2 * 400 * 80'000;
  EXPECT_NEAR(static_cast<double>(up0.paused_for().ps) / busy, 0.5, 0.15);
}

// --- histograms -----------------------------------------------------------------------------------

TEST(Histogram, QuantilesAreRightToAFifth) {
  Histogram h;
  for (std::uint64_t v = 1; v <= 100'000; ++v) h.add(v);
  for (const std::uint64_t q : {10U, 50U, 90U, 99U}) {
    const auto exact = static_cast<double>(q) * 1000;
    const auto found = static_cast<double>(h.quantile(q, 100));
    EXPECT_GE(found, exact);
    EXPECT_LE(found, exact * 1.25);
  }
  h.add(0, 900'000);
  EXPECT_EQ(h.quantile(50, 100), 0U);
  EXPECT_EQ(h.total(), 1'000'000U);
}

}  // namespace
}  // namespace weft::sim
