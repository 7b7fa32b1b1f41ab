// The audit complains of what is planted, and of nothing else.
#include "sim/world/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::sim {
namespace {

using ::testing::HasSubstr;

struct Subject {
  Subject() : network(fabric, *build_topology({}), {}, Prng(1)) {}
  std::string findings(bool at_rest = true) {
    check::Report report;
    audit({fabric, network, switches, hosts}, at_rest, report);
    return report.text();
  }
  Fabric fabric;
  Network network;
  SwitchConfig switches;
  EndpointCounters hosts;
};

TEST(Audit, PacketsSentAreThoseThatWentSomewhere) {
  Subject s;
  EXPECT_EQ(s.findings(), "");
  s.hosts.packets_sent = 3;
  EXPECT_THAT(s.findings(), HasSubstr("conservation: 3 packets sent, 0 duplicated"));
  s.hosts.packets_received = 2;
  s.hosts.corrupt_dropped = 1;
  EXPECT_EQ(s.findings(), "");
  s.fabric.packets.acquire();
  EXPECT_THAT(s.findings(false), HasSubstr("1 under way"));
  s.hosts.packets_sent = 4;
  EXPECT_EQ(s.findings(false), "");
  EXPECT_THAT(s.findings(true), HasSubstr("1 packets and 0 payloads are left"));
}

TEST(Audit, WhatIsStoppedAtTheEndIsSaid) {
  Subject s;
  s.network.uplink(1).pause(2, true);
  EXPECT_EQ(s.findings(false), "");
  EXPECT_THAT(s.findings(), HasSubstr("host1>edge0 is left stopped in class 2"));
}

TEST(Audit, AQueueAboveItsBoundIsSaid) {
  Subject s;
  const PacketRef ref = s.fabric.packets.acquire();
  s.fabric.packets.at(ref) = Packet{};
  s.fabric.packets.at(ref).frame = 1000;
  s.hosts.packets_sent = 1;
  s.network.uplink(0).pause(0, true);
  s.network.uplink(0).send(ref);
  EXPECT_EQ(s.findings(false), "");
  s.switches.queue = {999};
  EXPECT_THAT(s.findings(false), HasSubstr("host0>edge0 queued 1000 bytes, its bound is 999"));
}

}  // namespace
}  // namespace weft::sim
