// Whole simulations against answers that queueing theory, arithmetic or conservation give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "sim/traffic/variates.h"
#include "sim/world/ideal.h"
#include "sim/world/whole_run.h"

namespace weft::sim {
namespace {

void expect_clean(const Simulation& run) {
  EXPECT_TRUE(run.complete());
  EXPECT_EQ(run.packets_in_use(), 0U);
  if (run.findings() == nullptr) return;
  EXPECT_TRUE(run.findings()->clean()) << run.findings()->text();
}

// --- M/D/1 ----------------------------------------------------------------------------------------

// Poisson arrivals of equal frames at a link: the mean wait is rho / (2 (1 - rho)) services
// (Pollaczek and Khinchine).
class PoissonSource {
 public:
  PoissonSource(Fabric& fabric, Port& port, std::uint64_t gap_ps, std::uint32_t packets)
      : fabric_(fabric),
        port_(port),
        actor_(fabric.timeline.add<&PoissonSource::on_wake>(*this)),
        gap_ps_(gap_ps),
        left_(packets) {
    again();
  }
  void on_wake(Time now) {
    const PacketRef ref = fabric_.packets.acquire();
    Packet& p = fabric_.packets.at(ref);
    p = Packet{};
    p.frame = 1000;
    came.push_back(now.ps);
    port_.send(ref);
    if (--left_ != 0) again();
  }
  void arrive(const Transit& t, std::uint32_t) {
    left.push_back(fabric_.timeline.now().ps);
    fabric_.release(t.packet);
  }
  std::vector<std::int64_t> came;
  std::vector<std::int64_t> left;

 private:
  void again() {
    fabric_.timeline.wake(
        actor_, fabric_.timeline.now() + Duration{static_cast<std::int64_t>(exponential(random_, gap_ps_))});
  }
  Fabric& fabric_;
  Port& port_;
  ActorId actor_;
  std::uint64_t gap_ps_;
  std::uint32_t left_;
  Prng random_{11};
};

TEST(KnownAnswer, AnMD1QueueWaitsAsLongAsTheFormulaSays) {
  for (const double rho : {0.3, 0.6, 0.8, 0.9}) {
    Fabric f;
    Port port(f, {.rate = gigabits(100), .delay = {}, .queue = {}, .impair = {}, .inputs = 1}, Prng(1));
    constexpr double kService = 80'000;
    constexpr std::uint32_t kPackets = 400'000;
    PoissonSource source(f, port, static_cast<std::uint64_t>(kService / rho), kPackets);
    port.connect<&PoissonSource::arrive>(source, 0);
    f.timeline.run(kNever, UINT64_MAX);
    ASSERT_EQ(source.left.size(), kPackets);
    double wait = 0;
    for (std::size_t i = 0; i < kPackets; ++i)
      wait += static_cast<double>(source.left[i] - source.came[i]) - kService;
    const double expected = rho / (2 * (1 - rho)) * kService;
    EXPECT_NEAR(wait / kPackets, expected, expected * (rho > 0.85 ? 0.06 : 0.03)) << rho;
    EXPECT_NEAR(static_cast<double>(port.found_waiting().quantile(0, 1)), 0.0, 0.1);
  }
}

// --- shares of a link -----------------------------------------------------------------------------

constexpr const char* kShared = R"(
hosts = 5
[switch]
kind = "input-queued"
pfc = true
[transport]
timeout = 0
[[traffic]]
pattern = "incast"
target = 4
sizes = "4MB"
)";

// Four equal senders, one link, round robin: each gets a quarter, and they end together.
TEST(KnownAnswer, ALinkIsSharedEqually) {
  std::ostringstream rows;
  const auto run = finished(scenario(kShared), &rows);
  expect_clean(*run);
  const auto s = run->traffic()[0].summary();
  EXPECT_EQ(s.flows, 4U);
  EXPECT_EQ(run->totals().queue_drops, 0U);
  EXPECT_NEAR(s.fct_mean_us / s.fct_max_us, 1.0, 0.005) << "the first ends with the last";
  // 98 bytes of headers, preamble and gap to 1024; the request is done when 16 MB have gone through.
  const double link_us = 16e6 * (1024 + 82 + 16.0 / 3906) / 1024 * 8 / 100e3;
  EXPECT_NEAR(s.request_mean_us, link_us, link_us * 0.005);
  const std::string text = rows.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
}

// An incast through a fat-tree ends when its last link has carried everything, in every mode and both kinds
// of switch. PFC never drops, whatever the pattern; without it, what is dropped is sent again.
TEST(KnownAnswer, AnIncastEndsWhenTheLastLinkIsDone) {
  for (const char* kind : {"input-queued", "output-queued"}) {
    for (const char* mode : {"roce", "irn", "srnic"}) {
      SCOPED_TRACE(std::string(kind) + " " + mode);
      const Scenario sc =
          scenario(R"(
hosts = 16
check = true
[topology]
kind = "fat-tree"
[switch]
pfc = true
[transport]
timeout = 0
rto_low = "5ms"
rto_high = "5ms"
[[traffic]]
pattern = "incast"
target = 3
total = "3MB"
)",
                   {std::string("switch.kind=") + kind, std::string("transport.mode=") + mode});
      const auto run = finished(sc);
      expect_clean(*run);
      EXPECT_EQ(run->totals().queue_drops, 0U);
      EXPECT_EQ(run->totals().retransmitted, 0U);
      EXPECT_GT(run->totals().pauses, 0U);
      const double link_us = 3e6 * 8 / 100e3 * (1024 + 82) / 1024;
      const double most = std::string(mode) == "roce" ? 1.02 : 1.05;  // more headers in each packet
      EXPECT_GT(run->traffic()[0].summary().request_mean_us, link_us);
      EXPECT_LT(run->traffic()[0].summary().request_mean_us,
                link_us * most + 2 * static_cast<double>(sc.derived.base_rtt.ps) / 1e6);
    }
  }
}

// --- slowdown -------------------------------------------------------------------------------------

// A flow with the network to itself takes exactly the ideal time, whatever it is, wherever it goes.
TEST(KnownAnswer, AloneInTheNetworkTheSlowdownIsOne) {
  for (const char* mode : {"roce", "irn", "srnic"}) {
    for (const char* topology : {"kind=fat-tree hosts=16", "kind=srnic hosts=64", "kind=dumbbell hosts=4"}) {
      const std::string words(topology);
      const std::string kind = words.substr(5, words.find(' ') - 5);
      const std::string hosts = words.substr(words.rfind('=') + 1);
      for (const char* verb : {"write", "send", "read"}) {
        for (const std::uint64_t bytes : {1U, 1000U, 1024U, 1025U, 5000U, 100'000U, 102'400U}) {
          TrafficSpec t;
          t.pattern = "trace";
          // One at a time, near and far.
          for (const std::uint32_t to : {1U, 2U, 3U})
            t.trace_text += std::to_string(to * 100) + "us 0 " + std::to_string(to) + " " +
                            std::to_string(bytes) + " " + verb + "\n";
          Scenario s = scenario("[[traffic]]\npattern=\"permutation\"",
                                {"topology.kind=" + kind, "hosts=" + hosts,
                                 std::string("transport.mode=") + mode, "transport.bdp_cap=512"});
          s.traffic = {t};
          ASSERT_TRUE(resolve(s).has_value());
          std::ostringstream rows;
          const auto run = finished(s, &rows);
          expect_clean(*run);
          EXPECT_EQ(run->traffic()[0].done(), 3U);
          // srnic acknowledges a READ's request as well, and that ACK leaves just before the data: 8 ns.
          EXPECT_NEAR(run->traffic()[0].summary().slowdown_mean, 1.0,
                      std::string(mode) == "srnic" ? 0.0025 : 0.0011)
              << mode << " " << topology << " " << verb << " " << bytes << "\n"
              << rows.str();
        }
      }
    }
  }
}

// --- conservation ---------------------------------------------------------------------------------

// Poisson traffic over a fat-tree that drops, marks, sprays and loses, in every mode, under the independent
// checkers: all flows end, every packet is accounted for.
TEST(KnownAnswer, PacketsAreConservedWhateverTheSwitchDoes) {
  for (const char* mode : {"roce", "irn", "srnic"}) {
    for (const std::vector<std::string>& network :
         {std::vector<std::string>{"switch.buffer=60kB", "transport.controller=timely"},
          {"switch.kind=input-queued", "switch.buffer=20kB", "topology.routing=spray"},
          {"switch.pfc=true", "switch.ecn=red", "switch.ecn_low=5kB", "switch.ecn_high=50kB",
           "network.loss=0.5%", "transport.controller=dcqcn"},
          {"network.queue=15kB", "switch.ecn=step", "switch.ecn_low=5kB", "topology.routing=fixed",
           "network.control_class=3", "transport.controller=dctcp"}}) {
      SCOPED_TRACE(std::string(mode) + " " + network[0]);
      std::vector<std::string> changes = network;
      changes.push_back(std::string("transport.mode=") + mode);
      const auto run = finished(scenario(R"(
hosts = 16
check = true
limit = "5s"
[topology]
kind = "fat-tree"
[transport]
timeout = 6
[[traffic]]
sizes = "irn-heavy"
verb = "mixed"
load = "60%"
flows = 60
)",
                                         changes));
      expect_clean(*run);
      const auto s = run->traffic()[0].summary();
      EXPECT_EQ(s.flows + s.failed, 60U);
      const Totals t = run->totals();
      std::uint64_t received = 0;
      for (std::uint32_t h = 0; h < 16; ++h) received += run->nic(h).endpoint().counters().packets_received;
      EXPECT_EQ(t.packets_sent, received + t.lost + t.queue_drops + t.no_route);
      EXPECT_EQ(t.no_route, 0U);
      EXPECT_EQ(t.marked != 0, std::string(network[1]).starts_with("switch.ecn"))
          << "only where switches and controller do";
    }
  }
}

TEST(KnownAnswer, TheSameSeedGivesTheSameBytes) {
  const auto bytes = [](const char* seed) {
    std::ostringstream out;
    const auto run = finished(scenario(R"(
hosts = 16
[topology]
kind = "fat-tree"
routing = "spray"
[switch]
buffer = "100kB"
[transport]
mode = "irn"
[[traffic]]
sizes = "web-search"
flows = 100
)",
                                       {std::string("seed=") + seed}),
                              &out);
    run->write_ports(out);
    out << run->to_record().json();
    return out.str();
  };
  EXPECT_EQ(bytes("1"), bytes("1"));
  EXPECT_NE(bytes("1"), bytes("2"));
}

}  // namespace
}  // namespace weft::sim
