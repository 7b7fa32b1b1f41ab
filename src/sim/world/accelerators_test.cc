// Boxes and long lines in scenarios: what they do for a flow, what they may not do to it, and what is
// refused.
#include <gtest/gtest.h>

#include <memory>

#include "sim/world/simulation.h"

namespace weft::sim {
namespace {

const char* const kLongLine = R"(
seed = 1
hosts = 2
[topology]
kind = "dumbbell"
[network]
rate = "10Gbps"
delay = "1us"
[transport]
mode = "roce"
mtu = 4096
[[line]]
link = "edge0-edge1"
distance = "200km"
[[accelerator]]
link = "edge0-edge1"
[[flow]]
size = "4KiB"
count = 6000
depth = 64
)";

using Changes = std::vector<std::string>;

Result<Scenario> scenario(const Changes& changes, const std::string& text = kLongLine) {
  return parse_scenario(text, "test", changes);
}

std::unique_ptr<Simulation> run(const Changes& changes, const std::string& text = kLongLine) {
  const auto s = scenario(changes, text);
  EXPECT_TRUE(s.has_value()) << (s ? "" : s.error().message);
  auto simulation = std::make_unique<Simulation>(*s);
  while (simulation->run(UINT64_MAX)) {
  }
  EXPECT_TRUE(simulation->complete());
  const check::Report* found = simulation->findings();
  EXPECT_TRUE(found == nullptr || found->clean()) << found->text();
  EXPECT_EQ(simulation->packets_in_use(), 0U);
  return simulation;
}

double goodput(const Simulation& s) { return s.results()[0].goodput_bps() / 1e9; }
std::uint64_t count(const Simulation& s, std::size_t box, wan::BoxCounter c) {
  return s.boxes()[box]->box().counters().get(c);
}
std::string mistake(const Changes& changes, const std::string& text = kLongLine) {
  const auto s = scenario(changes, text);
  return s ? "" : s.error().message;
}

TEST(LongLine, TakesFiveMicrosecondsAKilometre) {
  const auto s = scenario({"accelerator.acknowledge=none"});
  ASSERT_TRUE(s.has_value());
  // 200 km and two links of 1 us.
  EXPECT_EQ(s->derived.reach.one_way, microseconds(1002));
  EXPECT_EQ(s->derived.reach.hops, 3U);
  EXPECT_TRUE(s->graph.boxes.empty());
}

TEST(LongLine, BoxesAreNodesAndLinksOfTheirOwn) {
  const auto s = scenario({});
  ASSERT_TRUE(s.has_value());
  ASSERT_EQ(s->graph.boxes.size(), 2U);
  EXPECT_EQ(s->graph.links.size(), 5U);
  EXPECT_EQ(s->graph.name(s->graph.box_node(1)), "box1");
  EXPECT_EQ(s->derived.reach.one_way, microseconds(1004));
  // For hosts and switches the way between the two is still one link.
  EXPECT_EQ(s->graph.spans().size(), 3U);
  EXPECT_EQ(s->graph.links_named("edge0-edge1")->size(), 3U);
  EXPECT_EQ(s->graph.links_named("box0-box1")->size(), 1U);
}

// 64 messages of 4 KiB in a round trip of 2 ms are 1 Gb/s; boxes fill the line.
TEST(LongLine, IsFilledByBoxesAndNotByAShortQueue) {
  for (const char* seed : {"seed=2", "seed=3"})
    EXPECT_EQ(count(*run({seed}), 0, wan::BoxCounter::owned), 1U) << seed;
  const double without = goodput(*run({"accelerator.acknowledge=none"}));
  const auto with = run({});
  EXPECT_NEAR(without, 1.04, 0.1);
  EXPECT_GT(goodput(*with), 2.5 * without);  // it begins without
  EXPECT_GT(count(*with, 0, wan::BoxCounter::taken), 3000U);
  EXPECT_EQ(count(*with, 1, wan::BoxCounter::given), count(*with, 0, wan::BoxCounter::taken));
}

// Observers at the hosts notice nothing, whatever the line does.
TEST(LongLine, LosesDuplicatesAndReordersUnnoticed) {
  for (const char* acknowledge : {"early", "far"}) {
    const auto s =
        run({"check=true", "bytes=true", "line.loss=2%", "line.duplicate=1%", "line.corrupt=1%",
             "line.reorder=1%", std::string("accelerator.acknowledge=") + acknowledge, "line.distance=20km"});
    EXPECT_GT(count(*s, 0, wan::BoxCounter::line_resent), 50U) << acknowledge;
  }
}

// Nor do they with parity, real bytes and all; and most of what is lost is never asked for.
TEST(LongLine, RestoresByParityUnnoticed) {
  const auto s =
      run({"check=true", "bytes=true", "line.loss=1%", "line.reorder=1%", "accelerator.parity=16+3"});
  const std::uint64_t restored = count(*s, 1, wan::BoxCounter::restored);
  EXPECT_GT(restored, 20U);
  EXPECT_LT(count(*s, 0, wan::BoxCounter::line_resent), restored / 2);
  EXPECT_EQ(count(*s, 1, wan::BoxCounter::restored_wrong), 0U);
  EXPECT_NE(mistake({"accelerator.parity=16"}).find("accelerator.parity: '16' is not like 16+2"),
            std::string::npos);
}

// The line alone is cut, so no switch finds another way; what was acknowledged waits.
TEST(LongLine, IsCutForAWhileAndNothingIsLost) {
  const std::string cut =
      std::string(kLongLine) + "[[failure]]\nlink = \"box0-box1\"\nat = \"40ms\"\nrepair = \"70ms\"\n";
  const auto s = run({"check=true", "bytes=true", "flow.count=20000"}, cut);
  EXPECT_EQ(s->results()[0].failed, 0U);
  EXPECT_GT(s->totals().failed_links, 0U);
  EXPECT_EQ(s->totals().no_route, 0U);
}

// A requester that has asked for all that it may is silent until the first answer comes, a round trip later.
TEST(LongLine, IsNotLeftWhileReadsAreAnswered) {
  const auto s = run({"transport.mode=irn", "line.distance=1000km", "flow.op=read", "flow.size=64KiB",
                      "flow.count=2000", "flow.depth=128"});
  EXPECT_GT(goodput(*s), 5.0);
  EXPECT_EQ(count(*s, 0, wan::BoxCounter::owned), 1U);
  EXPECT_LT(count(*s, 0, wan::BoxCounter::drop_waiting), 300U);
}

// Without it each loss is the requester's, and it asks for everything behind.
TEST(LongLine, RepairsAnswersWhereItIsTold) {
  const Changes reads = {"check=true",      "bytes=true",    "flow.op=read",   "flow.size=64KiB",
                         "flow.count=2000", "flow.depth=64", "line.loss=0.5%", "line.distance=100km"};
  Changes with = reads;
  with.push_back("accelerator.repair_answers=true");
  const auto off = run(reads);
  const auto on = run(with);
  EXPECT_EQ(count(*off, 1, wan::BoxCounter::answers_kept), 0U);
  EXPECT_GT(count(*on, 1, wan::BoxCounter::answers_resent), 10U);
  EXPECT_GT(goodput(*on), 1.5 * goodput(*off));
}

// What the responder's side still waits for is in the store, and no more than that.
TEST(LongLine, AStoreTooSmallHoldsTheSenderBack) {
  const auto s = run({"check=true", "accelerator.store=200kB", "flow.count=3000"});
  EXPECT_GT(count(*s, 0, wan::BoxCounter::drop_full), 0U);
  EXPECT_LE(s->boxes()[0]->box().most_stored().n, 200'000U);
}

// 4 KiB every 10 us are 3.3 Gb/s.
TEST(Box, IsNoFasterThanItsCore) {
  const auto s = run({"accelerator.frame_time=10us", "flow.count=20000", "line.distance=10km"});
  EXPECT_LT(goodput(*s), 3.3);
  EXPECT_GT(goodput(*s), 1.6);  // its core also takes what comes back
}

TEST(Box, PassesAModeThatItDoesNotKnow) {
  const auto s = run({"transport.mode=irn", "check=true", "bytes=true", "flow.count=500"});
  EXPECT_GT(count(*s, 0, wan::BoxCounter::passed), 500U);
}

const char* const kTree = R"(
seed = 3
hosts = 16
check = true
bytes = true
[topology]
kind = "fat-tree"
[network]
rate = "10Gbps"
loss = "0.1%"
delay = "5us"
[transport]
mode = "roce"
[[accelerator]]
near = "h0-s0"
far = "h5-s2"
[[flow]]
from = 0
to = 5
size = "64KiB"
count = 700
[[flow]]
from = 5
to = 0
op = "send"
size = "3KiB"
count = 12000
[[flow]]
from = 0
to = 7
size = "64KiB"
count = 700
)";

// Boxes at two hosts of a fat tree: what goes to other hosts passes, and is not held up by them.
TEST(Boxes, AtTwoHostsTakeWhatIsBetweenThemOnly) {
  const auto s = run({}, kTree);
  for (const std::size_t box : {0U, 1U}) EXPECT_GT(count(*s, box, wan::BoxCounter::taken), 1000U);
  EXPECT_LT(s->results()[2].elapsed().ps, milliseconds(300).ps);
}

TEST(Boxes, WorkWhereNodesRunApartInTime) {
  const auto apart = run({"check=false", "bytes=false"}, kTree);
  EXPECT_GT(count(*apart, 0, wan::BoxCounter::taken), 1000U);
}

TEST(Accelerator, IsRefusedInOneSentence) {
  EXPECT_EQ(mistake({"accelerator.link=edge0-edge7"}),
            "test: accelerator.link: 'edge7' is not a node of this topology");
  EXPECT_EQ(mistake({"accelerator.near=host0-edge0"}),
            "test: accelerator: give either link, or near and far, the links in which the two boxes stand");
  EXPECT_EQ(mistake({"accelerator.acknowledge=soon"}),
            "test: accelerator.acknowledge: 'soon' is not one of early, far, none");
  EXPECT_EQ(mistake({"accelerator.store=1kB"}), "test: accelerator.store: less than 100kB holds no traffic");
  EXPECT_EQ(mistake({"topology.routing=spray"}),
            "test: accelerator: routing = spray takes packets of a connection past the boxes, choose ecmp or "
            "fixed");
  EXPECT_EQ(mistake({"switch.credits=true"}),
            "test: accelerator: boxes give no credit back, choose pfc or neither");
  EXPECT_EQ(mistake({"accelerator.give_up=1ms"}),
            "test: accelerator.give_up must be longer than a partner may be silent, 100 ms here");
  EXPECT_EQ(mistake({}, std::string(kLongLine) + "[[accelerator]]\nlink = \"edge0-edge1\"\n"),
            "test: accelerator.link: other boxes stand at edge0-edge1 already");
}

TEST(LongLine, IsRefusedInOneSentence) {
  EXPECT_EQ(mistake({"line.link=host0-host1"}), "test: line.link: there is no link between host0 and host1");
  EXPECT_EQ(mistake({"line.distance=10"}).substr(0, 26), "test: line.distance: '10' ");
  EXPECT_EQ(mistake({}, std::string(kLongLine) + "[[line]]\nlink = \"edge1-edge0\"\n"),
            "test: line.link: edge1-edge0 has another [[line]] already");
}

}  // namespace
}  // namespace weft::sim
