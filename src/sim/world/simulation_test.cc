// Whole runs: numbers that can be worked out by hand, the same bytes for the same seed, every operation in
// roce and irn under observers, and scenarios that are refused.
#include "sim/world/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

namespace weft::sim {
namespace {

using ::testing::HasSubstr;

constexpr const char* kBase = R"(
hosts = 2
check = true
[network]
rate = "100Gbps"
delay = "1us"
[transport]
mode = "irn"
mtu = 1024
[[flow]]
size = "64KiB"
count = 100
depth = 8
)";

Scenario scenario(std::vector<std::string> changes = {}, const char* text = kBase) {
  const auto s = parse_scenario(text, "test", changes);
  EXPECT_TRUE(s.has_value()) << s.error().message;
  return *s;
}

std::unique_ptr<Simulation> finished(const Scenario& s) {
  auto run = std::make_unique<Simulation>(s);
  while (run->run(100'000)) {
  }
  return run;
}

void expect_clean(const Simulation& run) {
  EXPECT_TRUE(run.complete());
  EXPECT_EQ(run.packets_in_use(), 0U);
  ASSERT_NE(run.findings(), nullptr);
  EXPECT_TRUE(run.findings()->clean()) << run.findings()->text();
}

// A packet is 1024 bytes and 98 of headers, preamble and gap (frame.h): the link is never idle, so goodput is
// 1024 / 1122 of it, but for the round trip of the last ACK.
TEST(Simulation, ALosslessRunFillsTheLink) {
  const auto run = finished(scenario({"flow.count=2000"}));
  expect_clean(*run);
  const double expected = 100.0 * 1024 / (1024 + 98);
  EXPECT_NEAR(run->results()[0].goodput_bps() / 1e9, expected, expected * 0.002);
  EXPECT_EQ(run->totals().retransmitted, 0U);
  EXPECT_EQ(run->totals().packets_sent, 2000U * 64 * 2);  // each with its ACK
}

// One packet there and its ACK back, over two links each way.
TEST(Simulation, OneMessageTakesARoundTrip) {
  const auto run = finished(scenario({"flow.count=1", "flow.size=1000"}));
  expect_clean(*run);
  const Duration link = microseconds(1);
  const Rate rate = gigabits(100);
  const std::int64_t expected = (link * 4 + rate.time_for({1000 + 98}) * 2 + rate.time_for({70 + 16}) * 2).ps;
  EXPECT_EQ(run->results()[0].latencies.at(0).ps, expected);
}

TEST(Simulation, EveryOperationInBothModesUnderLoss) {
  for (const char* mode : {"roce", "irn"}) {
    for (const char* op : {"write", "write_imm", "send", "send_imm", "read"}) {
      SCOPED_TRACE(std::string(mode) + " " + op);
      const auto run = finished(
          scenario({"transport.mode=" + std::string(mode), "flow.op=" + std::string(op), "network.loss=2%",
                    "network.duplicate=1%", "network.corrupt=1%", "network.reorder=1%", "limit=20s"}));
      expect_clean(*run);
      EXPECT_EQ(run->results()[0].messages, 100U);
      EXPECT_GT(run->totals().retransmitted, 0U);
    }
    const auto run = finished(scenario({"transport.mode=" + std::string(mode), "flow.op=fetch_add",
                                        "flow.size=8", "network.loss=2%", "check=false"}));
    EXPECT_EQ(run->results()[0].messages, 100U);
  }
}

TEST(Simulation, SelectiveRetransmissionBeatsGoBackN) {
  const auto goodput = [](const char* mode) {
    return finished(scenario({"flow.count=1000", "network.loss=1%", std::string("transport.mode=") + mode}))
        ->results()[0]
        .goodput_bps();
  };
  EXPECT_GT(goodput("irn"), 1.3 * goodput("roce"));
}

// IRN §7: a sender that waits for several NACKs does not take late packets for lost ones.
TEST(Simulation, AThresholdOfNacksSparesRetransmissionsUnderReordering) {
  std::uint64_t resent[2];
  for (int i = 0; i < 2; ++i) {
    const auto run =
        finished(scenario({"network.reorder=2%", "network.reorder_by=400ns",
                           i == 0 ? "transport.nack_threshold=1" : "transport.nack_threshold=16"}));
    expect_clean(*run);
    resent[i] = run->totals().retransmitted;
  }
  EXPECT_GT(resent[0], 20U);
  EXPECT_LT(resent[1] * 5, resent[0]);
}

// IRN §4.3: each variant is a worse irn.
TEST(Simulation, VariantsOfIrnResendMoreOrWaitLonger) {
  struct Found {
    double goodput;
    std::uint64_t resent;
  };
  const auto with = [](const char* recovery) {
    const auto run = finished(scenario({"network.loss=2%", "flow.count=1000", recovery}));
    expect_clean(*run);
    return Found{run->results()[0].goodput_bps(), run->totals().retransmitted};
  };
  const Found whole = with("transport.recovery=own");
  const Found back = with("transport.recovery=irn-go-back-n");
  EXPECT_LT(back.goodput, whole.goodput * 0.95);
  EXPECT_GT(back.resent, whole.resent * 10);
  EXPECT_LT(with("transport.recovery=irn-no-sack").goodput, whole.goodput);
}

// IRN §4.3: with go-back-N a Timely that backs off on losses wastes less. Eight hosts, one receiver, short
// queues: without back-off only time-outs slow the senders down.
TEST(Simulation, BackingOffOnLossSparesGoBackNRetransmissions) {
  std::string text = R"(
hosts = 9
[network]
rate = "40Gbps"
delay = "2us"
queue = "60KiB"
[transport]
mode = "irn"
recovery = "irn-go-back-n"
)";
  for (int from = 1; from <= 8; ++from)
    text += "[[flow]]\nfrom = " + std::to_string(from) + "\nto = 0\nsize = \"1MiB\"\ncount = 5\ndepth = 4\n";
  const auto resent = [&](const char* controller) {
    const auto run = finished(scenario({std::string("transport.controller=") + controller}, text.c_str()));
    EXPECT_TRUE(run->complete());
    return run->totals().retransmitted;
  };
  EXPECT_LT(resent("timely-40g-backoff"), resent("timely-40g") * 7 / 10);
}

// IRN §4.3, "dynamically computed timeout values": a static time-out below the round trip sends everything
// twice. A measured one is longer than the round trip, and still finds losses.
TEST(Simulation, ADynamicTimeOutFollowsTheRoundTrip) {
  const auto resent = [](const char* rto) {
    const auto run = finished(scenario({"network.loss=1%", "network.delay=10us", "flow.size=1KiB",
                                        "flow.depth=1", "flow.count=1000", "transport.rto_low=10us", rto}));
    expect_clean(*run);
    return run->totals().retransmitted;
  };
  EXPECT_GT(resent("transport.rto=static"), 1000U);
  EXPECT_GT(resent("transport.rto=dynamic"), 5U);
  EXPECT_LT(resent("transport.rto=dynamic"), 60U);
}

TEST(Simulation, TheSameSeedGivesTheSameRecord) {
  const std::vector<std::string> lossy = {"network.loss=1%", "network.jitter=2us"};
  const std::string once = finished(scenario(lossy))->to_record().json();
  EXPECT_EQ(once, finished(scenario(lossy))->to_record().json());
  std::vector<std::string> other = lossy;
  other.push_back("seed=2");
  EXPECT_NE(once, finished(scenario(other))->to_record().json());
}

// Two senders, one receiver, short queues: what the switch drops is sent again, and counted.
TEST(Simulation, FullQueuesDropAndFlowsRecover) {
  const char* text = R"(
hosts = 3
[network]
queue = "20KiB"
[transport]
mode = "irn"
[[flow]]
from = 0
to = 2
count = 300
[[flow]]
from = 1
to = 2
count = 300
)";
  const auto run = finished(scenario({}, text));
  EXPECT_TRUE(run->complete());
  EXPECT_GT(run->totals().queue_drops, 0U);
  EXPECT_LE(run->totals().longest_queue, 20U * 1024);
  EXPECT_EQ(run->results()[0].failed + run->results()[1].failed, 0U);
}

TEST(Simulation, ADeadNetworkEndsInRetryExceeded) {
  const auto run = finished(scenario({"network.loss=100%", "transport.timeout=4", "flow.depth=1"}));
  EXPECT_EQ(run->results()[0].first_failure, WcStatus::kRetryExceeded);
  EXPECT_EQ(run->results()[0].messages, 0U);
}

TEST(Scenario, MistakesAreNamed) {
  const auto mistake = [](std::vector<std::string> changes, const char* text = kBase) {
    const auto s = parse_scenario(text, "test.toml", changes);
    return s ? std::string("accepted") : s.error().message;
  };
  EXPECT_THAT(mistake({"network.los=1%"}), HasSubstr("network.los: there is no such setting"));
  EXPECT_THAT(mistake({"network.loss=2"}), HasSubstr("network.loss"));
  EXPECT_THAT(mistake({"transport.mode=sctp"}), HasSubstr("'sctp' is not one of roce, irn"));
  EXPECT_THAT(mistake({"transport.mtu=300000"}), HasSubstr("transport.mtu"));
  EXPECT_THAT(mistake({"transport.mtu=1023"}), HasSubstr("multiple of 4"));
  EXPECT_THAT(mistake({"flow.to=7"}), HasSubstr("hosts are numbered 0 to 1"));
  EXPECT_THAT(mistake({"flow.from=1"}), HasSubstr("the same host"));
  EXPECT_THAT(mistake({"flow.op=fetch_add"}), HasSubstr("size 8"));
  EXPECT_THAT(mistake({"nonsense"}), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(mistake({"colour=red"}), HasSubstr("colour: there is no such setting"));
  EXPECT_THAT(mistake({"topology.kind=torus"}), HasSubstr("'torus' is not one of single, dumbbell"));
  EXPECT_THAT(mistake({"topology.kind=fat-tree", "hosts=20"}), HasSubstr("20 is not k^3/4"));
  EXPECT_THAT(mistake({"topology.kind=fat-tree", "topology.k=6", "hosts=20"}), HasSubstr("k^3/4 = 54"));
  EXPECT_THAT(mistake({"topology.kind=srnic", "hosts=20"}), HasSubstr("not one of 16, 64"));
  EXPECT_THAT(mistake({"topology.kind=file"}), HasSubstr("topology.file: name the file"));
  EXPECT_THAT(mistake({"topology.kind=file", "topology.file=no/such.txt"}),
              HasSubstr("'no/such.txt' cannot be read"));
  EXPECT_THAT(mistake({"topology.kind=file", "topology.file=/dev/zero"}), HasSubstr("cannot be read"));
  EXPECT_THAT(mistake({"topology.file=x.txt"}), HasSubstr("means nothing unless"));
  EXPECT_THAT(mistake({"topology.k=6"}), HasSubstr("topology.k: means nothing unless"));
  EXPECT_THAT(mistake({"topology.core_rate=1Gbps"}), HasSubstr("topology.core_rate: means nothing"));
  EXPECT_THAT(mistake({"switch.pfc=yes"}), HasSubstr("'yes' is not true or false"));
  EXPECT_THAT(mistake({"switch.xoff=10kB"}), HasSubstr("mean nothing without pfc"));
  EXPECT_THAT(mistake({"switch.pfc=true", "switch.buffer=9kB"}), HasSubstr("no room above the headroom"));
  EXPECT_THAT(mistake({"switch.pfc=true", "network.queue=9kB"}), HasSubstr("network.queue"));
  EXPECT_THAT(mistake({"switch.ecn=red", "switch.ecn_low=9kB"}), HasSubstr("ecn_high must be above"));
  EXPECT_THAT(mistake({"switch.pfc=true", "switch.credits=true"}), HasSubstr("pfc or credits, not both"));
  EXPECT_THAT(mistake({"switch.credits=true", "network.queue=9kB"}), HasSubstr("network.queue"));
  EXPECT_THAT(mistake({"switch.credits=true", "switch.buffer=1kB"}), HasSubstr("less than one frame"));
  EXPECT_THAT(mistake({"switch.alpha=1/0"}), HasSubstr("switch.alpha: '1/0'"));
  EXPECT_THAT(mistake({"network.delay=1"}), HasSubstr("network.delay"));
  EXPECT_THAT(mistake({"network.control_class=8"}), HasSubstr("network.control_class"));
  EXPECT_THAT(mistake({"transport.nack_threshold=5", "transport.bdp_cap=4"}),
              HasSubstr("transport: nack_threshold must be between 1 and bdp_cap"));
  EXPECT_THAT(mistake({"network.rate=1kbps"}), HasSubstr("slower than 1 Mb/s"));
  EXPECT_THAT(mistake({"switch.buffer=1125899906842624"}), HasSubstr("at most 1 TiB"));
  EXPECT_THAT(mistake({"bytes=true", "check=false"}), HasSubstr("bytes: real bytes are for the observers"));
  EXPECT_THAT(mistake({"bytes=true", "check=true", "flow.size=1GiB"}), HasSubstr("bytes of real memory"));
  EXPECT_THAT(mistake({"transport.recovery=irn-go-back-n", "transport.mode=roce"}),
              HasSubstr("irn-go-back-n is a variant of mode irn"));
  EXPECT_THAT(
      mistake({"transport.recovery=srnic-stateless", "transport.mode=srnic", "transport.nack_threshold=2"}),
      HasSubstr("transport.nack_threshold: only irn and srnic"));
  EXPECT_THAT(mistake({"transport.rto=dynamic", "transport.mode=roce"}),
              HasSubstr("transport.rto: mode roce"));
  EXPECT_THAT(mistake({"traffic.load=70%"}, "[[traffic]]\nflows = 3\nlaod = \"3%\""),
              HasSubstr("traffic.laod"));
  EXPECT_THAT(mistake({}, "[[traffic]]\npattern = \"poisson\""), HasSubstr("traffic.flows: give either"));
  EXPECT_THAT(mistake({}, "[[traffic]]\nsizes = \"nothing\"\nflows = 3"),
              HasSubstr("traffic.sizes: 'nothing' is neither"));
  EXPECT_THAT(mistake({}, "[[traffic]]\npattern = \"trace\""), HasSubstr("traffic.trace: name the file"));
  EXPECT_THAT(mistake({}, "hosts = 2"), HasSubstr("at least one [[flow]]"));
  EXPECT_THAT(mistake({}, "hosts = \n"), HasSubstr("line 1"));
  EXPECT_THAT(mistake({"switch.kind=a\nb"}), HasSubstr("'a?b' is not one of"));
  EXPECT_THAT(mistake({}, "[)topology]\n"), HasSubstr("line 1: Error while parsing key"));
  EXPECT_THAT(mistake({}, "flow = 3"), HasSubstr("list of tables"));
  EXPECT_THAT(mistake({}, "[network]\nloss = 0.01\n[[flow]]\n"), HasSubstr("written as a string"));
}

TEST(Scenario, EveryExampleIsValid) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path().string());
    ++examples;
    std::ifstream file(entry.path());
    ASSERT_TRUE(file);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto s = parse_scenario(text, entry.path().string(), {});
    EXPECT_TRUE(s.has_value()) << s.error().message;
  }
  EXPECT_GE(examples, 3);
}

// IRN §4.1's default case: the figures that the paper computes by hand.
TEST(Scenario, WhatWasLeftOpenIsComputedFromTheTopology) {
  std::ifstream file(WEFT_SOURCE_DIR "/examples/irn-default.toml");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const Scenario s = scenario({"transport.bdp_cap=0", "transport.rto_high=0"}, text.c_str());
  EXPECT_EQ(s.graph.hosts, 54U);
  EXPECT_EQ(s.graph.switches(), 45U);
  EXPECT_EQ(s.derived.reach.bdp.n, 120'000U);
  // The paper counts propagation only and finds about 110; ours includes serialisation at every hop.
  EXPECT_GE(s.transport.bdp_cap, 107U);
  EXPECT_LE(s.transport.bdp_cap, 118U);
  // Round trip and six full buffers of 240 KB: 24 us + 288 us, "approximately 320".
  EXPECT_NEAR(static_cast<double>(s.transport.rto_high.us()), 320, 10);
  EXPECT_EQ(s.derived.traffic_flows, 10'000U);
  EXPECT_EQ(std::accumulate(s.derived.flows_of_host.begin(), s.derived.flows_of_host.end(), 0U), 20'000U);
}

}  // namespace
}  // namespace weft::sim
