// Credits: a link's throughput follows from how many there are, nothing is ever dropped or stuck, and all of
// them come back.
#include <gtest/gtest.h>

#include <memory>

#include "sim/fabric/network.h"

namespace weft::sim {
namespace {

constexpr std::uint32_t kFrame = 1000;

// Sends whenever its link lets it. It does not know whether credit or a busy link held it up.
struct Host {
  Host(Fabric& f, Network& n, std::uint32_t h) : fabric(f), network(n), number(h) {
    n.attach<&Host::arrive>(h, *this);
    n.uplink(h).on_idle<&Host::on_idle>(*this);
  }
  void plan(std::uint32_t to, std::uint32_t packets, std::uint8_t traffic_class = 0) {
    for (std::uint32_t i = 0; i < packets; ++i)
      todo.push_back(Transit{{}, {to}, number * 1000 + i % 7, kFrame, traffic_class});
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
      up.send(ref);
    }
    if (next != todo.size() && !up.paused(todo[next].traffic_class)) up.await_idle();
  }
  void arrive(const Transit& t, std::uint32_t) {
    EXPECT_TRUE(t.is_packet());
    last = fabric.timeline.now();
    ++got;
    fabric.release(t.packet);
  }
  Fabric& fabric;
  Network& network;
  std::uint32_t number;
  std::vector<Transit> todo;
  std::size_t next = 0;
  std::uint32_t got = 0;
  Time last{};
};

struct World {
  World(const TopologySpec& spec, const SwitchConfig& switches, Routing routing = Routing::kEcmp,
        std::uint64_t seed = 1) {
    NetworkConfig config;
    config.switches = switches;
    config.routing = routing;
    network = std::make_unique<Network>(fabric, *build_topology(spec), config, Prng(seed));
    for (std::uint32_t h = 0; h < network->topology().hosts; ++h)
      hosts.push_back(std::make_unique<Host>(fabric, *network, h));
  }
  void run(Time until = Time{} + seconds(10)) {
    for (const auto& h : hosts) h->pump();
    fabric.timeline.run(until, 100'000'000);
  }
  void expect_whole() const {
    std::size_t planned = 0;
    std::size_t got = 0;
    for (const auto& h : hosts) {
      planned += h->todo.size();
      got += h->got;
    }
    EXPECT_EQ(got, planned);
    EXPECT_EQ(fabric.packets.in_use(), 0U);
    EXPECT_TRUE(fabric.timeline.idle());
    for (const Switch& s : network->switches()) EXPECT_EQ(s.counters().dropped_full, 0U);
    for (const Port& p : network->ports()) {
      for (std::uint8_t k = 0; p.credited() && k < kClasses; ++k) EXPECT_EQ(p.credit(k), p.granted());
    }
  }
  Fabric fabric;
  std::unique_ptr<Network> network;
  std::vector<std::unique_ptr<Host>> hosts;
};

SwitchConfig credits(SwitchKind kind, std::uint64_t buffer, std::uint32_t classes = 1) {
  SwitchConfig c;
  c.kind = kind;
  c.credits = true;
  c.buffer = {buffer};
  c.largest_frame = kFrame;
  c.classes = classes;
  return c;
}

// A packet's credit is away for its serialisation, its way there, and its own way back. With credit for n
// packets there are n in each such round.
TEST(Credits, HalfOfWhatALinkHoldsIsHalfItsThroughput) {
  TopologySpec spec;
  spec.rate = gigabits(100);
  spec.delay = nanoseconds(1000);
  const std::int64_t each = 80'000;  // ps
  const std::int64_t round = each + 2 * 1'000'000 + 640;
  const std::uint64_t full = static_cast<std::uint64_t>((round + each - 1) / each);
  constexpr std::uint32_t kPackets = 5000;
  const auto share_of_line = [&](std::uint64_t packets) {
    World w(spec, credits(SwitchKind::kInputQueued, packets * kFrame));
    w.hosts[0]->plan(1, kPackets);
    w.run();
    w.expect_whole();
    return static_cast<double>(each) * kPackets / static_cast<double>(w.hosts[1]->last.ps);
  };
  EXPECT_GT(share_of_line(full), 0.99);
  EXPECT_GT(share_of_line(2 * full), 0.99);
  for (const std::uint64_t n : {full / 2, full / 4, std::uint64_t{1}}) {
    const double expected = static_cast<double>(n) * static_cast<double>(each) / static_cast<double>(round);
    EXPECT_NEAR(share_of_line(n), expected, 0.01 * expected) << n;
  }
}

// Random overload of a fat-tree with room for two frames at each port. Ways that go up and then down cannot
// wait for each other in a circle, so everything arrives, and back-pressure reaches the hosts.
TEST(Credits, NeverDropAndNeverStick) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    for (const SwitchKind kind : {SwitchKind::kInputQueued, SwitchKind::kOutputQueued}) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      TopologySpec spec;
      spec.kind = "fat-tree";
      spec.k = 4;
      const std::uint32_t classes = seed % 3 == 0 ? 2 : 1;
      const std::uint64_t each = (seed % 2 + 1) * kFrame;
      World w(spec, credits(kind, each * classes * (kind == SwitchKind::kInputQueued ? 1U : 4U), classes),
              seed % 2 == 0 ? Routing::kSpray : Routing::kEcmp, seed);
      Prng random(seed);
      for (std::uint32_t h = 0; h < 16; ++h) {
        for (int burst = 0; burst < 12; ++burst) {
          const std::uint32_t to = random.chance(750'000) ? static_cast<std::uint32_t>(random.below(2))
                                                          : static_cast<std::uint32_t>(random.below(16));
          const auto packets = static_cast<std::uint32_t>(1 + random.below(60));
          const auto traffic_class = static_cast<std::uint8_t>(classes == 2 ? random.below(2) * 3 : 0);
          if (to != h) w.hosts[h]->plan(to, packets, traffic_class);
        }
      }
      w.run();
      w.expect_whole();
      EXPECT_GT(w.network->uplink(5).paused_for().ps, 0);
      for (const Switch& s : w.network->switches())
        EXPECT_LE(s.counters().fullest, (kind == SwitchKind::kInputQueued ? 1U : 4U) * each * classes);
    }
  }
}

// One class out of credit does not stop another.
TEST(Credits, ClassesHaveTheirOwn) {
  TopologySpec spec;
  spec.hosts = 3;
  World w(spec, credits(SwitchKind::kInputQueued, 4 * kFrame, 2));
  w.hosts[0]->plan(2, 500, 0);
  w.hosts[1]->plan(2, 500, 0);
  w.run(Time{} + microseconds(20));
  EXPECT_TRUE(w.network->uplink(0).paused(0) || w.network->uplink(1).paused(0));
  EXPECT_FALSE(w.network->uplink(0).paused(3));
  w.run();
  w.expect_whole();
}

// A packet that a switch drops takes no room, so its credit comes back.
TEST(Credits, ComeBackForPacketsWithoutARoute) {
  TopologySpec spec;
  spec.kind = "dumbbell";
  spec.hosts = 2;
  World w(spec, credits(SwitchKind::kInputQueued, 30 * kFrame));
  w.network->set_link(2, false);
  w.network->reroute();
  w.hosts[0]->plan(1, 100);
  w.run();
  EXPECT_EQ(w.network->switches()[0].counters().dropped_no_route, 100U);
  EXPECT_EQ(w.network->uplink(0).credit(0), w.network->uplink(0).granted());
}

// Credit that was on the way when a link failed is not lost for ever.
TEST(Credits, AreGrantedAnewAfterAFailure) {
  TopologySpec spec;
  spec.kind = "dumbbell";
  spec.hosts = 4;
  World w(spec, credits(SwitchKind::kInputQueued, 30 * kFrame));
  for (std::uint32_t h = 0; h < 2; ++h) w.hosts[h]->plan(2, 2000);
  w.run(Time{} + microseconds(50));
  w.network->set_link(4, false);
  w.run(Time{} + microseconds(60));
  const Port& across = w.network->ports()[8];
  EXPECT_EQ(w.network->port_name(8), "edge0>edge1");
  EXPECT_FALSE(across.paused(0));
  w.network->set_link(4, true);
  w.run();
  EXPECT_GT(across.wire_counters().dropped_failed, 0U);
  EXPECT_EQ(w.hosts[2]->got + across.wire_counters().dropped_failed, 4000U);
  for (const Port& p : w.network->ports()) {
    if (p.credited()) {
      EXPECT_EQ(p.credit(0), p.granted());
    }
  }
}

}  // namespace
}  // namespace weft::sim
