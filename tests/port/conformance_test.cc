// The conformance program over the worlds in virtual time: the simulated NIC, also beside memory that holds
// nothing, and the pair world under its referee, with and without loss, in every mode.
#include "tests/port/conformance.h"

#include <gtest/gtest.h>

#include <numeric>

#include "pair/world_port.h"
#include "sim/fabric/topology.h"
#include "sim/nic/ideal_nic.h"

namespace weft {
namespace {

using port_test::Client;
using port_test::Server;

ConnectTerms terms_for(wire::Mode mode) {
  ConnectTerms t;
  t.mode = mode;
  t.timeout = 10;
  t.min_rnr_timer = 1;
  return t;
}

class EveryMode : public ::testing::TestWithParam<wire::Mode> {};

// Runs programs whenever their NIC made progress.
struct Runner final : sim::NicObserver {
  void progressed(sim::HostId host, Time now) override { parties[host.v]->act(now); }
  Application* parties[2] = {};
};

TEST_P(EveryMode, ASimulatedNicIsAPort) {
  sim::Fabric fabric;
  Exchange exchange;
  Runner runner;
  sim::PortConfig link;
  link.rate = gigabits(100);
  link.delay = microseconds(1);
  sim::Port out0(fabric, link, Prng(1));
  sim::Port out1(fabric, link, Prng(2));
  DeviceConfig config;
  config.max_qp = 8;
  sim::IdealNic nic0(exchange, fabric, {0}, config, out0, sim::Framing::kWire, &runner);
  sim::IdealNic nic1(exchange, fabric, {1}, config, out1, sim::Framing::kWire, &runner);
  out0.connect<&sim::IdealNic::arrive>(nic1, 0);
  out1.connect<&sim::IdealNic::arrive>(nic0, 0);
  Server server(nic1, terms_for(GetParam()));
  Client client(nic0, terms_for(GetParam()), nic1.address());
  runner.parties[0] = &client;
  runner.parties[1] = &server;
  for (int turn = 0; turn < 100 && !(client.done() && server.done()); ++turn) {
    client.act(fabric.timeline.now());
    server.act(fabric.timeline.now());
    fabric.timeline.run(fabric.timeline.now() + milliseconds(1), 1'000'000);
  }
  EXPECT_EQ(client.failure(), "");
  EXPECT_EQ(server.failure(), "");
  EXPECT_TRUE(client.done() && server.done());
}

// A terabyte that holds nothing, beside memory that holds bytes: one is counted, the other arrives.
TEST_P(EveryMode, MemoryThatHoldsNothingStandsBesideMemoryThatHoldsBytes) {
  sim::Fabric fabric;
  Exchange exchange;
  sim::PortConfig link;
  link.rate = gigabits(100);
  link.delay = microseconds(1);
  sim::Port out0(fabric, link, Prng(1));
  sim::Port out1(fabric, link, Prng(2));
  DeviceConfig config;
  config.max_qp = 8;
  sim::IdealNic nic0(exchange, fabric, {0}, config, out0, sim::Framing::kWire, nullptr);
  sim::IdealNic nic1(exchange, fabric, {1}, config, out1, sim::Framing::kWire, nullptr);
  out0.connect<&sim::IdealNic::arrive>(nic1, 0);
  out1.connect<&sim::IdealNic::arrive>(nic0, 0);
  sim::Nic* nics[2] = {&nic0, &nic1};
  PortMemory bytes[2];
  PortMemory counted[2];
  ConnectEnd ends[2];
  CqId cq[2];
  for (int i = 0; i < 2; ++i) {
    cq[i] = *nics[i]->create_cq(16);
    ends[i] = {nics[i]->address(), *nics[i]->create_qp({cq[i], cq[i], {}, false}), terms_for(GetParam())};
    bytes[i] = *nics[i]->allocate(4096, kLocalWrite | kRemoteWrite, MemoryKind::kBytes);
    counted[i] = *nics[i]->allocate(1ULL << 40U, kLocalWrite | kRemoteWrite, MemoryKind::kCounted);
    EXPECT_TRUE(counted[i].bytes.empty());
    EXPECT_EQ(bytes[i].bytes.size(), 4096U);
  }
  ASSERT_TRUE(exchange.join(nic0, ends[0], nic1, ends[1]));
  std::iota(bytes[0].bytes.begin(), bytes[0].bytes.end(), std::uint8_t{1});
  const std::vector<std::uint8_t> before(bytes[1].bytes.begin(), bytes[1].bytes.end());
  const PortMemory* ways[4][2] = {
      {&counted[0], &counted[1]}, {&counted[0], &bytes[1]}, {&bytes[0], &counted[1]}, {&bytes[0], &bytes[1]}};
  for (const auto& [from, to] : ways) {
    const Sge piece{from->address, 4096, from->lkey};
    SendWr wr;
    wr.sges = {&piece, 1};
    wr.opcode = WrOpcode::kWrite;
    wr.flags = kSendSignaled;
    wr.remote_address = to->address;
    wr.rkey = to->rkey;
    ASSERT_EQ(nic0.post_send(ends[0].qpn, {&wr, 1}).taken, 1U);
    nic0.ring();
    fabric.timeline.run(fabric.timeline.now() + milliseconds(1), 1'000'000);
    Completion c;
    ASSERT_EQ(nic0.poll(cq[0], {&c, 1}), 1U);
    EXPECT_EQ(c.status, WcStatus::kSuccess);
    const bool carried = from == &bytes[0] && to == &bytes[1];
    EXPECT_TRUE(std::equal(before.begin(), before.end(), bytes[1].bytes.begin()) != carried);
  }
  EXPECT_TRUE(std::equal(bytes[0].bytes.begin(), bytes[0].bytes.end(), bytes[1].bytes.begin()));
  EXPECT_EQ(nic1.endpoint().counters().bytes_placed, 4U * 4096U);
}

struct Users final : pair::Programs {
  Users(Client& c, Server& s) : client(c), server(s) {}
  Time next_wake() const override { return kNever; }
  void act(pair::World&, Time now) override {
    for (int turn = 0; turn < 4; ++turn) {  // as often as they answer each other without a packet
      client.act(now);
      server.act(now);
    }
  }
  bool waiting() const override { return !(client.done() && server.done()); }
  Client& client;
  Server& server;
};

TEST_P(EveryMode, AHostOfAPairWorldIsAPort) {
  for (const std::uint32_t loss : {0U, 50'000U}) {
    pair::WorldConfig config;
    for (DeviceConfig& d : config.hosts) d.loss_blocks = 64, d.max_qp = 8;
    config.network.loss = loss;
    config.network.delay = microseconds(2);
    config.rate = gigabits(100);
    pair::World world(config);
    Exchange exchange;
    pair::WorldPort port0(exchange, world, 0, 3);
    pair::WorldPort port1(exchange, world, 1, 4);
    Server server(port1, terms_for(GetParam()));
    Client client(port0, terms_for(GetParam()), port1.address());
    Users users(client, server);
    world.run(users);
    EXPECT_EQ(client.failure(), "") << loss;
    EXPECT_EQ(server.failure(), "") << loss;
    EXPECT_TRUE(client.done() && server.done());
    EXPECT_TRUE(world.referee().report().clean()) << world.referee().report().text();
  }
}

INSTANTIATE_TEST_SUITE_P(Port, EveryMode,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& p) { return std::string(wire::mode_name(p.param)); });

}  // namespace
}  // namespace weft
