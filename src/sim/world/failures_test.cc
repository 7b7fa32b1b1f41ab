// Links that fail and come back: what is lost, where packets go meanwhile, and what transports make of it.
#include "sim/world/failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/world/simulation.h"

namespace weft::sim {
namespace {

using ::testing::HasSubstr;

constexpr const char* kDumbbell = R"(
hosts = 2
check = true
bytes = true
limit = "10s"
[topology]
kind = "dumbbell"
[network]
delay = "10us"
reconverge = "200us"
[transport]
mode = "irn"
[[flow]]
size = "64KiB"
count = 100
depth = 8
[[failure]]
link = "edge0-edge1"
at = "300us"
repair = "2ms"
)";

Scenario scenario(std::string text, const std::vector<std::string>& changes = {}) {
  const auto s = parse_scenario(text, "test", changes);
  EXPECT_TRUE(s.has_value()) << s.error().message;
  return *s;
}

std::unique_ptr<Simulation> finished(const Scenario& s) {
  auto run = std::make_unique<Simulation>(s);
  while (run->run(1'000'000)) {
  }
  EXPECT_TRUE(run->complete());
  EXPECT_EQ(run->packets_in_use(), 0U);
  EXPECT_TRUE(run->findings()->clean()) << run->findings()->text();
  return run;
}

TEST(Failures, ATransportGoesOnAfterARepair) {
  for (const char* mode : {"roce", "irn", "srnic"}) {
    SCOPED_TRACE(mode);
    const auto run = finished(scenario(kDumbbell, {std::string("transport.mode=") + mode}));
    EXPECT_EQ(run->results()[0].messages, 100U);
    EXPECT_GT(run->results()[0].last_completion, Time{} + milliseconds(2));
    EXPECT_GT(run->totals().failed_links, 0U);
    EXPECT_GT(run->totals().no_route, 0U) << "switches knew, and there was no other way";
  }
}

TEST(Failures, ATransportGivesUpOnALinkThatStaysDown) {
  for (const char* mode : {"roce", "irn", "srnic"}) {
    SCOPED_TRACE(mode);
    const auto run = finished(scenario(
        kDumbbell, {std::string("transport.mode=") + mode, "failure.repair=0s", "transport.timeout=6"}));
    EXPECT_LT(run->results()[0].messages, 100U);
    EXPECT_GT(run->results()[0].failed, 0U);
    EXPECT_EQ(run->results()[0].first_failure, WcStatus::kRetryExceeded);
  }
}

// A sender without a window fills the link. Packets are lost that were on it when it failed, and those sent
// into it while it is down.
TEST(Failures, WhatIsOnTheLinkAndWhatIsSentIntoItIsLost) {
  const Scenario s = scenario(kDumbbell, {"transport.mode=roce", "flow.size=4MiB", "flow.count=1",
                                          "network.reconverge=10ms", "failure.repair=315us"});
  const auto run = finished(s);
  const Port& across = run->network().ports()[4];
  EXPECT_EQ(run->network().port_name(4), "edge0>edge1");
  const Duration each = across.serialisation(1024 + 12 + kEthernetIpUdpBytes + kPreambleFcsGapBytes + 4);
  const std::int64_t expected = (microseconds(10) + microseconds(15)).ps / each.ps;
  EXPECT_NEAR(static_cast<double>(across.wire_counters().dropped_failed), static_cast<double>(expected), 2);
}

// After the routes have changed nothing more is sent to a dead end; flows that began before it go another
// way.
TEST(Failures, TrafficGoesRoundAFailedLink) {
  const Scenario s = scenario(R"(
hosts = 16
check = true
limit = "1s"
[topology]
kind = "fat-tree"
[network]
reconverge = "30us"
[transport]
mode = "irn"
[[traffic]]
pattern = "permutation"
sizes = "2MiB"
[[failure]]
link = "edge0-agg0"
at = "40us"
[[failure]]
links = 2
at = "50us"
)");
  ASSERT_EQ(s.derived.link_changes.size(), 3U);
  Simulation run(s);
  // Queues that were bound for the dead link run out for a while.
  while (run.run(1) && run.now() < Time{} + microseconds(150)) {
  }
  const std::uint64_t lost = run.totals().failed_links;
  EXPECT_GT(lost, 0U);
  while (run.run(1'000'000)) {
  }
  EXPECT_EQ(run.totals().failed_links, lost);
  EXPECT_EQ(run.totals().no_route, 0U);
  EXPECT_TRUE(run.complete());
  EXPECT_EQ(run.traffic()[0].done(), 16U);
  EXPECT_TRUE(run.findings()->clean()) << run.findings()->text();
  EXPECT_GT(run.traffic()[0].summary().slowdown_mean, 1.0) << "of the intact network's ideal";
}

// When a link fails, ports that PFC had stopped go on; at its repair they stop again. Nothing is dropped for
// want of room.
TEST(Failures, PfcLosesNoBufferToAFailure) {
  for (const char* kind : {"input-queued", "output-queued"}) {
    for (const char* link : {"edge0-agg0", "host0-edge0", "host5-edge2", "s8-s16"}) {
      SCOPED_TRACE(std::string(kind) + " " + link);
      const auto run =
          finished(scenario(R"(
hosts = 16
check = true
limit = "10s"
[topology]
kind = "fat-tree"
[switch]
pfc = true
xoff = "4kB"
[transport]
mode = "irn"
timeout = 10
[[traffic]]
pattern = "incast"
total = "4MB"
target = 0
[[failure]]
at = "60us"
repair = "160us"
)",
                            {std::string("switch.kind=") + kind, std::string("failure.link=") + link}));
      EXPECT_EQ(run->totals().queue_drops, 0U);
      EXPECT_GT(run->totals().pauses, 0U);
      EXPECT_GT(run->totals().failed_links, 0U);
      EXPECT_EQ(run->traffic()[0].failed(), 0U);
    }
  }
}

// Two failures of one link: it is up again when both are repaired.
TEST(Failures, OverlappingFailuresOfOneLinkAreOneOutage) {
  const std::string text =
      std::string(kDumbbell) + "[[failure]]\nlink = \"s1-s0\"\nat = \"1ms\"\nrepair = \"4ms\"\n";
  EXPECT_GT(finished(scenario(text))->results()[0].last_completion, Time{} + milliseconds(4));
}

TEST(Failures, MistakesAreNamed) {
  const auto mistake = [](const std::vector<std::string>& changes) {
    const auto s = parse_scenario(kDumbbell, "test", changes);
    return s ? std::string("accepted") : s.error().message;
  };
  EXPECT_THAT(mistake({"failure.link=edge0-edge9"}), HasSubstr("failure.link: 'edge9' is not a node"));
  EXPECT_THAT(mistake({"failure.link=h0-h1"}), HasSubstr("no link between host0 and host1"));
  EXPECT_THAT(mistake({"failure.link=edge0"}), HasSubstr("not two nodes such as"));
  EXPECT_THAT(mistake({"failure.links=1"}), HasSubstr("either link or links"));
  EXPECT_THAT(mistake({"failure.link=", "failure.links=2"}),
              HasSubstr("more than the 1 links between switches"));
  EXPECT_THAT(mistake({"failure.repair=200us"}), HasSubstr("failure.repair must come after at"));
  EXPECT_THAT(mistake({"network.reconverge=soon"}), HasSubstr("network.reconverge"));
}

}  // namespace
}  // namespace weft::sim
