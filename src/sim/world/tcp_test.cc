// Whole simulations with TCP: what arithmetic says of one flow, and that many flows through a bad network end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "sim/tcp/frame.h"
#include "sim/world/simulation.h"

namespace weft::sim {
namespace {

using ::testing::HasSubstr;

Scenario scenario(const std::string& text, const std::vector<std::string>& changes = {}) {
  const auto s = parse_scenario(text, "test", changes);
  EXPECT_TRUE(s.has_value()) << s.error().message;
  return *s;
}

std::unique_ptr<Simulation> finished(const Scenario& s, std::ostream* flows = nullptr) {
  auto run = std::make_unique<Simulation>(s, nullptr, flows);
  while (run->run(1'000'000)) {
  }
  return run;
}

// From host 0 to host 1, one flow.
constexpr const char* kOne = R"(
hosts = 2
[transport]
mode = "tcp"
[[traffic]]
pattern = "incast"
target = 1
sizes = "10kB"
)";

TEST(Tcp, AFlowThatFitsTheInitialWindowTakesTheIdealTime) {
  for (const char* size : {"1", "1000", "1024", "1025", "10240"}) {
    const auto run = finished(scenario(kOne, {std::string("traffic.sizes=") + size}));
    EXPECT_TRUE(run->complete());
    EXPECT_EQ(run->packets_in_use(), 0U);
    EXPECT_EQ(run->totals().retransmitted, 0U);
    EXPECT_NEAR(run->traffic()[0].summary().slowdown_mean, 1.0, 0.0011) << size;
  }
}

TEST(Tcp, ManyFlowsThroughANetworkThatLosesEnd) {
  for (const std::vector<std::string>& network :
       {std::vector<std::string>{"switch.buffer=60kB"},
        {"switch.kind=input-queued", "switch.buffer=20kB", "topology.routing=spray"},
        {"switch.pfc=true", "network.loss=0.5%", "network.duplicate=0.5%", "network.corrupt=0.5%"},
        {"network.queue=15kB", "topology.routing=fixed", "network.control_class=3", "network.reorder=1%"}}) {
    for (const char* flavour : {"sack", "newreno", "reno"}) {
      SCOPED_TRACE(network[0] + " " + flavour);
      std::vector<std::string> changes = network;
      changes.push_back(std::string("tcp.flavour=") + flavour);
      const auto run = finished(scenario(R"(
hosts = 16
[topology]
kind = "fat-tree"
[transport]
mode = "tcp"
[[traffic]]
sizes = "irn-heavy"
load = "60%"
flows = 200
)",
                                         changes));
      EXPECT_TRUE(run->complete());
      EXPECT_EQ(run->packets_in_use(), 0U);
      EXPECT_EQ(run->traffic()[0].summary().flows, 200U);
      EXPECT_GT(run->totals().retransmitted, 0U);
    }
  }
}

TEST(Tcp, WhatItDoesNotHaveIsRefused) {
  const auto mistake = [](std::vector<std::string> changes, const char* text = kOne) {
    const auto s = parse_scenario(text, "test.toml", changes);
    return s ? std::string("accepted") : s.error().message;
  };
  EXPECT_THAT(mistake({}), HasSubstr("accepted"));
  EXPECT_THAT(mistake({"traffic.verb=read"}), HasSubstr("traffic.verb: a stream of tcp"));
  EXPECT_THAT(mistake({"traffic.verb=mixed"}), HasSubstr("traffic.verb: a stream of tcp"));
  EXPECT_THAT(mistake({"transport.controller=dctcp"}), HasSubstr("transport.controller"));
  EXPECT_THAT(mistake({"tcp.flavour=vegas"}), HasSubstr("'vegas' is not one of sack, newreno, reno"));
  EXPECT_THAT(mistake({"tcp.initial_window=0"}), HasSubstr("tcp.initial_window"));
  EXPECT_THAT(mistake({"tcp.receive_window=1000"}), HasSubstr("hold no segment of 1024"));
  EXPECT_THAT(mistake({"tcp.rto_min=2s", "tcp.rto_max=1s"}), HasSubstr("tcp.rto_max"));
  EXPECT_THAT(mistake({"tcp.colour=red"}), HasSubstr("tcp.colour: there is no such setting"));
}

}  // namespace
}  // namespace weft::sim
