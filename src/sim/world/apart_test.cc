// Nodes that run apart in time (sim/engine/window_queue.h) give the same run as all events in order of time:
// the same record but for the checkers' own lines, and the same finished flows in the same order. With
// `check` a run goes in order of time.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "sim/world/whole_run.h"

namespace weft::sim {
namespace {

constexpr const char* kText = R"(
seed = 5
limit = "20ms"
[topology]
kind = "fat-tree"
k = 4
[network]
rate = "100Gbps"
delay = "700ns"
[switch]
kind = "output-queued"
buffer = "300kB"
[transport]
mode = "irn"
[[traffic]]
pattern = "poisson"
sizes = "cache-follower-approx"
load = "80%"
duration = "60us"
verb = "mixed"
[[traffic]]
pattern = "incast"
sizes = "30kB"
fan_in = 9
requests = 3
every = "20us"
)";

struct Ran {
  std::string record;
  std::string flows;
  std::uint64_t events = 0;
};

Ran ran(std::vector<std::string> changes, bool check, const std::string& more) {
  changes.emplace_back(check ? "check=true" : "check=false");
  std::ostringstream flows;
  const auto run = finished(scenario(kText + more, changes), &flows, 10'000);
  if (check) {
    EXPECT_TRUE(run->findings()->clean());
  }
  std::istringstream all(run->to_record().json());
  std::string record;
  for (std::string line; std::getline(all, line);) {
    if (line.find("\"check\"") != std::string::npos || line.find("\"findings\"") != std::string::npos)
      continue;
    if (line.ends_with(',')) line.pop_back();
    record += line + "\n";
  }
  return {record, flows.str(), run->totals().events};
}

void same(const std::vector<std::string>& changes, const std::string& more = "") {
  const Ran apart = ran(changes, false, more);
  const Ran together = ran(changes, true, more);
  EXPECT_GT(apart.events, 10'000U);
  EXPECT_EQ(apart.events, together.events);
  EXPECT_EQ(apart.record, together.record);
  EXPECT_EQ(apart.flows, together.flows);
}

TEST(Apart, DropsAndRepairs) { same({}); }
TEST(Apart, PausesOfPfc) {
  same({"transport.mode=roce", "switch.pfc=true", "switch.kind=input-queued", "switch.buffer=120kB"});
}
TEST(Apart, Credits) { same({"switch.kind=input-queued", "switch.buffer=120kB", "switch.credits=true"}); }
TEST(Apart, MarksAndControllersThatCloseTheirQueuePairs) {
  same({"transport.mode=srnic", "transport.controller=dctcp", "switch.ecn=step", "switch.ecn_low=30kB"});
}
TEST(Apart, PacedPackets) { same({"transport.controller=timely"}); }
TEST(Apart, SprayedAndJittered) {
  same({"topology.routing=spray", "network.jitter=300ns", "network.loss=0.5%", "network.duplicate=0.5%"});
}
TEST(Apart, AWindowOfMeasurement) {
  same({"measure.from=10us", "measure.until=40us", "measure.cut_off=15us", "transport.controller=dcqcn"});
}
TEST(Apart, LinksThatFail) { same({}, "[[failure]]\nlinks = 3\nat = \"11us\"\nrepair = \"37us\"\n"); }
TEST(Apart, ADetailedNic) { same({"nic.design=srnic", "transport.mode=srnic"}); }

}  // namespace
}  // namespace weft::sim
