// Two simulated hosts whose managers meet over the NICs' own links.
#include "sim/nic/services.h"

#include <gtest/gtest.h>

#include <vector>

#include "sim/nic/ideal_nic.h"

namespace weft::sim {
namespace {

struct Host {
  Host(Exchange& exchange, Fabric& fabric, std::uint32_t n, const PortConfig& link,
       const DeviceConfig& device)
      : out(fabric, link, Prng(n)),
        nic(exchange, fabric, {n}, device, out, Framing::kWire, nullptr),
        services(nic.endpoint(), out, manager(n), {}) {}
  static cm::CmConfig manager(std::uint32_t n) {
    cm::CmConfig c;
    c.max_connections = 4;
    c.max_listeners = 1;
    c.seed = n;
    return c;
  }
  std::vector<cm::CmEventKind> hear() {
    std::vector<cm::CmEventKind> kinds;
    for (cm::CmEvent e; services.manager().poll_event(e);) {
      kinds.push_back(e.kind);
      last = e.conn;
    }
    return kinds;
  }
  Port out;
  IdealNic nic;
  Services services;
  cm::ConnId last{};
};

// A request, its answer, and the last word arrive, each after the link's delay.
TEST(SimulatedServices, MeetOverTheLinksOfTheirNics) {
  using enum cm::CmEventKind;
  using Kinds = std::vector<cm::CmEventKind>;
  Fabric fabric;
  Exchange exchange;
  PortConfig link;
  link.rate = gigabits(40);
  link.delay = microseconds(2);
  DeviceConfig device;
  device.max_qp = 4;
  device.qpn_bits = 2;
  Host a(exchange, fabric, 0, link, device);
  Host b(exchange, fabric, 1, link, device);
  a.out.connect<&IdealNic::arrive>(b.nic, 0);
  b.out.connect<&IdealNic::arrive>(a.nic, 0);
  cm::ListenAttr door;
  door.port = 7;
  ASSERT_TRUE(b.services.manager().listen(door).has_value());
  cm::ConnectAttr call;
  call.local = address_of({0});
  call.peer = address_of({1});
  call.port = 7;
  const auto conn = a.services.manager().connect(call, Time{});
  ASSERT_TRUE(conn.has_value());
  a.services.pump();
  const auto run = [&](std::int64_t us) { fabric.timeline.run(Time{} + microseconds(us), 1000); };
  run(3);
  EXPECT_EQ(b.hear(), Kinds{kConnectRequest});
  ASSERT_TRUE(b.services.manager().accept(b.last, {}, fabric.timeline.now()).has_value());
  b.services.pump();
  run(6);
  EXPECT_EQ(a.hear(), Kinds{kConnectResponse});
  ASSERT_TRUE(a.services.manager().establish(*conn, fabric.timeline.now()).has_value());
  a.services.pump();
  run(9);
  EXPECT_EQ(b.hear(), Kinds{kEstablished});
  EXPECT_EQ(fabric.packets.in_use(), 0U);
  EXPECT_EQ(fabric.payloads.in_use(), 0U);
}

// A lost question of the discovery is asked again when it is due.
TEST(SimulatedServices, AskAgainWhenItIsTime) {
  Fabric fabric;
  Exchange exchange;
  PortConfig link;
  link.delay = microseconds(2);
  link.impair.loss = impair::kMillion;
  DeviceConfig device;
  device.max_qp = 4;
  device.qpn_bits = 2;
  Host a(exchange, fabric, 0, link, device);
  Host b(exchange, fabric, 1, link, device);
  a.out.connect<&IdealNic::arrive>(b.nic, 0);
  b.out.connect<&IdealNic::arrive>(a.nic, 0);
  const auto look = [&] {
    return a.services.discovery()
        .look_up(fabric.timeline.now(), address_of({0}), address_of({1}), {1})
        .knowledge;
  };
  EXPECT_EQ(look(), cm::Knowledge::kAsking);
  a.services.pump();
  fabric.timeline.run(Time{} + milliseconds(30), 1000);
  EXPECT_EQ(look(), cm::Knowledge::kSilent);
  EXPECT_EQ(a.services.discovery().counters().queries, 3U);
}

}  // namespace
}  // namespace weft::sim
