// What a run's figures mean: which flows and which packets they count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "sim/world/whole_run.h"

namespace weft::sim {
namespace {

using ::testing::HasSubstr;

const char* const kBusy = R"(
seed = 5
hosts = 16
[topology]
kind = "fat-tree"
[network]
rate = "40Gbps"
delay = "2us"
[switch]
kind = "input-queued"
buffer = "60kB"
[transport]
mode = "irn"
mtu = 1024
bdp_cap = 110
rto_high = "320us"
loss_blocks = 256
[[traffic]]
pattern = "poisson"
sizes = "100kB"
load = "70%"
duration = "2ms"
)";

// --- [measure] ---

// A flow that does not end in time counts with its age.
TEST(Measure, FlowsThatAreCutOffCountWithTheirAge) {
  const std::vector<std::string> slow{"network.loss=20%",        "transport.mode=roce",
                                      "transport.give_up=false", "transport.roce_timeout=320us",
                                      "measure.from=500us",      "measure.until=1ms"};
  std::vector<std::string> cut = slow;
  cut.emplace_back("measure.cut_off=2ms");
  std::ostringstream rows;
  const auto run = finished(scenario(kBusy, cut), &rows);
  EXPECT_FALSE(run->complete());
  EXPECT_LE(run->now(), Time{} + milliseconds(3));
  const FlowStatistics& f = run->traffic()[0];
  EXPECT_GT(f.cut_off(), 0U);
  EXPECT_EQ(f.summary().flows, f.done() + f.cut_off());
  EXPECT_EQ(f.summary().flows, scenario(kBusy, cut).derived.measured_flows);
  // The oldest flow that was cut off began within the window and was under way for the rest of the run.
  EXPECT_GT(f.summary().fct_max_us, 2000);
  EXPECT_LE(f.summary().fct_max_us, 2500);
  const std::string text = rows.str();  // a line each for those that ended, and the header
  EXPECT_EQ(static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')), f.done() + 1);
  // With time enough the same flows take longer, and none is cut off.
  cut.back() = "measure.cut_off=5s";
  const auto whole = finished(scenario(kBusy, cut));
  EXPECT_TRUE(whole->complete());
  EXPECT_EQ(whole->traffic()[0].cut_off(), 0U);
  EXPECT_EQ(whole->traffic()[0].summary().flows, f.summary().flows);
  EXPECT_GT(whole->traffic()[0].summary().fct_mean_us, f.summary().fct_mean_us);
}

TEST(Measure, CutsOffAfterTheWindowOnly) {
  const auto open = parse_scenario(kBusy, "test", std::vector<std::string>{"measure.cut_off=1ms"});
  ASSERT_FALSE(open.has_value());
  EXPECT_THAT(open.error().message, HasSubstr("measure.until"));
}

// Exactly the flows that begin within the window are reported, and traffic goes on after it: the run ends
// with the last of them, while others are still under way.
TEST(Measure, CountsTheFlowsThatBeginInIt) {
  std::ostringstream all;
  finished(scenario(kBusy, {"traffic.load=30%", "traffic.duration=5ms"}), &all);
  std::uint64_t within = 0;
  std::istringstream rows(all.str());
  std::string row;
  std::getline(rows, row);
  while (std::getline(rows, row)) {
    std::istringstream cells(row);
    std::string cell;
    for (int i = 0; i < 7; ++i) std::getline(cells, cell, ',');
    const double start = std::stod(cell);
    within += start >= 500 && start < 1000 ? 1U : 0U;
  }
  ASSERT_GT(within, 20U);
  const Scenario s = scenario(
      kBusy, {"traffic.load=30%", "traffic.duration=5ms", "measure.from=500us", "measure.until=1ms"});
  EXPECT_EQ(s.derived.measured_flows, within);
  const auto run = finished(s);
  EXPECT_TRUE(run->complete());
  EXPECT_EQ(run->traffic()[0].summary().flows, within);
  EXPECT_GT(run->packets_in_use(), 0U);
  EXPECT_LT(run->now(), Time{} + milliseconds(5));
}

// Packets of the window are those between its ends: less than all of them, and drops in proportion.
TEST(Measure, CountsThePacketsSentInIt) {
  const auto whole = finished(scenario(kBusy));
  const auto part = finished(scenario(kBusy, {"measure.from=500us", "measure.until=1ms"}));
  EXPECT_EQ(whole->measured().data, whole->totals().data);
  EXPECT_EQ(whole->measured().data_drops, whole->totals().data_drops);
  EXPECT_GT(part->measured().data, whole->totals().data * 15 / 100);
  EXPECT_LT(part->measured().data, whole->totals().data * 40 / 100);
  EXPECT_GT(part->measured().data_drops, 0U);
}

// How the caller divides a run into several calls of run() does not show in the record.
TEST(Measure, EndsAtTheSamePlaceHoweverItIsRun) {
  const Scenario s = scenario(kBusy, {"measure.from=500us", "measure.until=1ms"});
  EXPECT_EQ(finished(s, nullptr, 1'000)->to_record().json(),
            finished(s, nullptr, 999'983)->to_record().json());
}

TEST(Measure, RefusesWindowsWithNothingInThem) {
  for (const auto& [from, until, says] :
       {std::tuple{"3ms", "4ms", "no flow begins"}, std::tuple{"1ms", "500us", "must be after"}}) {
    const auto s = parse_scenario(
        kBusy, "test",
        std::vector<std::string>{std::string("measure.from=") + from, std::string("measure.until=") + until});
    ASSERT_FALSE(s.has_value());
    EXPECT_THAT(s.error().message, HasSubstr(says));
  }
}

// --- load ---

// The same seed draws the same flows whatever the transport. Longer headers are additional load.
TEST(Load, DoesNotDependOnTheMode) {
  std::vector<std::string> starts;
  for (const char* mode : {"roce", "irn", "srnic"}) {
    for (const char* verb : {"write", "read"}) {
      const Scenario s =
          scenario(kBusy, {std::string("transport.mode=") + mode, std::string("traffic.verb=") + verb});
      const auto arrivals = make_arrivals(s.traffic[0], ground_of(s, 0));
      std::string text;
      for (Arrival a; (*arrivals)->next(a);) text += std::to_string(a.at.ps) + " ";
      starts.push_back(text);
    }
  }
  for (const std::string& each : starts) EXPECT_EQ(each, starts.front());
}

// Headers that a scenario adds are additional load, too: the flows stay the same.
TEST(Load, DoesNotDependOnExtraHeaders) {
  const Scenario plain = scenario(kBusy);
  const Scenario more = scenario(kBusy, {"nic.extra_header=16"});
  EXPECT_EQ(ground_of(plain, 0).packet_overhead, ground_of(more, 0).packet_overhead);
  const auto bytes = [](const Simulation& run) {
    std::uint64_t n = 0;
    for (const Port& p : run.network().ports()) n += p.counters().bytes;
    return n;
  };
  EXPECT_GT(bytes(*finished(more)), bytes(*finished(plain)) * 101 / 100);
}

// Two runs of the same flows: the quotient of their geometric means is the mean of log(one / other) over
// flows.
TEST(Measure, GeometricMeansPairFlowByFlow) {
  const auto of = [](std::initializer_list<std::int64_t> microseconds_taken) {
    FlowStatistics f;
    for (const std::int64_t us : microseconds_taken) {
      FlowDone done;
      done.took = microseconds(us);
      f.add(done, 1024);
    }
    return f.summary().fct_geometric_mean_us;
  };
  EXPECT_NEAR(of({1, 10, 100}), 10, 1e-9);
  EXPECT_NEAR(of({100, 1, 10}), 10, 1e-9);
  // One flow of four takes sixteen times as long: the fourth root of that, whichever flow it is.
  EXPECT_NEAR(of({16, 10, 100, 7}) / of({1, 10, 100, 7}), 2, 1e-9);
  EXPECT_NEAR(of({1, 10, 1600, 7}) / of({1, 10, 100, 7}), 2, 1e-9);
  EXPECT_EQ(of({}), 0);
}

// --- [nic] ---

// nic.ack_bytes is what an ACK occupies a link for, in the network and in the ideal time. Data packets stay
// as they are.
TEST(Nic, AnAcksSizeIsASetting) {
  const auto bytes = [](const Simulation& run) {
    std::uint64_t n = 0;
    for (const Port& p : run.network().ports()) n += p.counters().bytes;
    return n;
  };
  const std::vector<std::string> quiet{"traffic.load=1%", "traffic.verb=read"};
  std::vector<std::string> small = quiet;
  small.emplace_back("nic.ack_bytes=1");
  const auto usual = finished(scenario(kBusy, quiet));
  const auto tiny = finished(scenario(kBusy, small));
  ASSERT_EQ(usual->totals().retransmitted + tiny->totals().retransmitted, 0U);
  // 98 packets of 100 kB are acknowledged one by one: 86 bytes each, against data of 1106.
  const double saved = 1 - static_cast<double>(bytes(*tiny)) / static_cast<double>(bytes(*usual));
  EXPECT_NEAR(saved, 85.0 / (1106 + 86), 0.002);
  const Scenario wide = scenario(kBusy, {"traffic.load=1%", "traffic.verb=write", "nic.ack_bytes=200"});
  EXPECT_NEAR(finished(wide)->traffic()[0].summary().slowdown_mean, 1.0, 0.05);
  EXPECT_GT(wide.derived.base_rtt, scenario(kBusy, {"traffic.verb=write"}).derived.base_rtt);
}

// A lost packet is held back until it has been fetched again, and the NIC CHECKs that it heard of every
// repair beforehand. In every mode and for every verb all flows end, and the observers find nothing.
TEST(Nic, EveryModeAndVerbWaitsForItsRepairs) {
  for (const char* mode : {"roce", "irn", "srnic"}) {
    for (const char* verb : {"write", "send", "read"}) {
      const auto run = finished(
          scenario(kBusy, {std::string("transport.mode=") + mode, std::string("traffic.verb=") + verb,
                           "nic.retransmit_delay=2us", "traffic.duration=200us", "check=true"}));
      EXPECT_TRUE(run->complete()) << mode << ' ' << verb;
      EXPECT_GT(run->totals().retransmitted, 0U) << mode << ' ' << verb;
      EXPECT_TRUE(run->findings()->clean()) << mode << ' ' << verb << '\n' << run->findings()->text();
    }
  }
}

TEST(Nic, FetchingRepairsTakesTime) {
  const auto slow = finished(scenario(kBusy, {"nic.retransmit_delay=50us"}));
  const auto fast = finished(scenario(kBusy));
  EXPECT_TRUE(slow->complete());
  EXPECT_GT(slow->traffic()[0].summary().fct_mean_us, fast->traffic()[0].summary().fct_mean_us);
}

// --- buffers by the paper's rule ---

// With buffer = auto a port holds twice what the longest way holds, with and without PFC. RTO_high follows: a
// round trip and the time in which six full ports drain (IRN §4.1).
TEST(Auto, BuffersAreTwiceTheBdp) {
  for (const auto& [rate, bytes] :
       {std::pair{"10Gbps", 60'000U}, std::pair{"40Gbps", 240'000U}, std::pair{"100Gbps", 600'000U}}) {
    for (const char* pfc : {"false", "true"}) {
      const Scenario s =
          scenario(kBusy, {"hosts=54", "switch.buffer=auto", std::string("network.rate=") + rate,
                           std::string("switch.pfc=") + pfc, "transport.rto_high=0"});
      EXPECT_EQ(s.network.switches.buffer.n, bytes);
      EXPECT_NEAR(static_cast<double>(s.transport.rto_high.us()), 320, 10);
    }
  }
  const auto wrong = parse_scenario(kBusy, "test", std::vector<std::string>{"switch.buffer=plenty"});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().message, HasSubstr("switch.buffer"));
}

// --- drops and what is sent again ---

// Dropped ACKs do not count as dropped data. In a run without impairments every dropped data packet is sent
// again; any further packet that is sent again arrives twice.
TEST(Drops, AreOfDataOrOfControl) {
  for (const char* verb : {"write", "read"}) {
    const auto run = finished(scenario(kBusy, {std::string("traffic.verb=") + verb}));
    const Totals t = run->totals();
    EXPECT_GT(t.data_drops, 0U);
    EXPECT_LT(t.data_drops, t.queue_drops);
    EXPECT_GE(t.retransmitted, t.data_drops);
    EXPECT_EQ(t.retransmitted, t.data_drops + t.received_twice);
    EXPECT_GT(t.after_timeout, 0U);
    EXPECT_LT(t.after_timeout, t.retransmitted);
  }
}

// RoCE's READ responses go out again because they are asked for again; they are retransmissions all the same.
TEST(Drops, ResponsesOfRoceThatGoOutAgainAreCounted) {
  const char* const text = R"(
seed = 2
hosts = 2
[network]
loss = "1%"
[transport]
mode = "roce"
[[flow]]
op = "read"
size = "64KiB"
count = 50
depth = 1
)";
  const auto run = finished(scenario(text));
  EXPECT_TRUE(run->complete());
  EXPECT_EQ(run->totals().data, 50U * 65U + run->totals().retransmitted);
  EXPECT_GT(run->totals().retransmitted, run->totals().lost);
}

// --- slowdown of the data alone ---

// Alone in the network the data of a flow takes its ideal time, too. With other flows the slowdown of the
// data alone is larger, because the constant time of the other way is taken off.
TEST(Slowdown, OfTheDataAlone) {
  const auto alone = finished(scenario(kBusy, {"traffic.load=1%", "traffic.duration=1ms"}));
  EXPECT_NEAR(alone->traffic()[0].summary().slowdown_data_mean, 1.0, 0.05);
  const FlowStatistics::Summary busy = finished(scenario(kBusy))->traffic()[0].summary();
  EXPECT_GT(busy.slowdown_data_mean, busy.slowdown_mean);
}

TEST(Tail, OfSinglePacketsRisesFromThe90thToThe99Point9th) {
  const auto run = finished(scenario(kBusy, {"traffic.sizes=1000", "traffic.duration=100us"}));
  const FlowStatistics::Summary s = run->traffic()[0].summary();
  EXPECT_EQ(s.small, s.flows);
  ASSERT_EQ(s.small_tail.size(), 19U);
  EXPECT_EQ(s.small_tail.front().per_mille, 900U);
  EXPECT_EQ(s.small_tail.back().per_mille, 999U);
  for (std::size_t i = 1; i < s.small_tail.size(); ++i) EXPECT_GE(s.small_tail[i].us, s.small_tail[i - 1].us);
  EXPECT_DOUBLE_EQ(s.small_tail[9].us, s.small_p99_us);
}

}  // namespace
}  // namespace weft::sim
