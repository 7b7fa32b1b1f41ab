// Controllers in a fabric against their published steady states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/prng.h"
#include "sim/world/simulation.h"

namespace weft::sim {
namespace {

constexpr std::uint32_t kFrame = 1024 + 98;  // a full packet of mode irn on the wire

// Samples of a bottleneck's queue, of its marks, and of the flows that share it.
struct Sampled {
  double highest = 0;  // queue, packets; the extremes but for one sample in a thousand
  double lowest = 0;
  double mean = 0;
  double marked = 0;         // part of the packets
  std::vector<double> gbps;  // of each flow, headers included
  double all() const { return std::accumulate(gbps.begin(), gbps.end(), 0.0); }
};

Scenario long_flows(std::uint32_t flows, const std::vector<std::string>& changes) {
  std::string text = "hosts = " + std::to_string(flows + 1) + "\n[transport]\nmode = \"irn\"\nmtu = 1024\n";
  for (std::uint32_t i = 1; i <= flows; ++i)
    text +=
        "[[flow]]\nfrom = " + std::to_string(i) + "\nto = 0\nsize = \"100kB\"\ncount = 1000000\ndepth = 16\n";
  const auto s = parse_scenario(text, "test", changes);
  EXPECT_TRUE(s.has_value()) << s.error().message;
  return *s;
}

// Host 0 receives from all others over one switch.
Sampled watch(const Scenario& s, Duration from, Duration to) {
  Simulation run(s);
  std::size_t number = 0;
  while (run.network().port_name(number).find(">host0") == std::string::npos) ++number;
  const Port& out = run.network().ports()[number];
  const Duration each = s.topology.rate.time_for({kFrame});
  while (run.now() < Time{} + from) EXPECT_TRUE(run.run(1000));
  const PortCounters before = out.counters();
  std::vector<std::uint64_t> bytes;
  for (const FlowResult& f : run.results()) bytes.push_back(f.bytes);
  const Time began = run.now();
  Time next = began;
  std::vector<double> queue;
  while (run.now() < Time{} + to && run.run(1)) {
    if (run.now() < next) continue;
    queue.push_back(static_cast<double>(out.queued().n) / kFrame);
    next = run.now() + each;
  }
  Sampled r;
  r.mean = std::accumulate(queue.begin(), queue.end(), 0.0) / static_cast<double>(queue.size());
  std::sort(queue.begin(), queue.end());
  r.lowest = queue[queue.size() / 1000];
  r.highest = queue[queue.size() - 1 - queue.size() / 1000];
  r.marked = static_cast<double>(out.counters().marked - before.marked) /
             static_cast<double>(out.counters().packets - before.packets);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    r.gbps.push_back(static_cast<double>(run.results()[i].bytes - bytes[i]) * kFrame / 1024 * 8e3 /
                     static_cast<double>((run.now() - began).ps));
  return r;
}

// --- DCTCP ----------------------------------------------------------------------------------------

// Alizadeh et al. 2010 §3.3, N flows in step, marks from K packets on: the queue goes up to K + N, where one
// window more per flow meets the marks, and down by A = 1/2 sqrt(2 N (C RTT + K)). Flows out of step make it
// less; whole packets and the packet that is being serialised allow two more either way.
TEST(Dctcp, TheQueueSwingsAsItsAnalysisSays) {
  for (const std::uint32_t n : {2U, 4U, 10U}) {
    for (const std::uint32_t k : {40U, 80U}) {
      const Sampled r =
          watch(long_flows(n, {"network.rate=10Gbps", "network.delay=25us", "transport.controller=dctcp",
                               "transport.bdp_cap=500", "switch.ecn=step",
                               "switch.ecn_low=" + std::to_string(k * kFrame)}),
                milliseconds(20), milliseconds(60));
      const double in_the_pipe = 10e9 / 8 / kFrame * 100e-6 + 2;  // a packet is stored twice on its way
      const double swing = std::sqrt(2.0 * n * (in_the_pipe + k)) / 2;
      EXPECT_NEAR(r.highest, k + n, 2.0) << n << " " << k;
      EXPECT_LE(r.highest - r.lowest, 1.2 * swing + 2) << n << " " << k;
      EXPECT_GE(r.highest - r.lowest, 0.5 * swing) << n << " " << k;
      EXPECT_NEAR(r.all(), 10.0, 0.1) << "the link is never idle";
      for (const double g : r.gbps) EXPECT_NEAR(g, 10.0 / n, 2.0 / n) << n << " " << k;
    }
  }
}

// --- DCQCN ----------------------------------------------------------------------------------------

constexpr double kTimer = 55e-6;  // alpha's and the increase's
constexpr double kCnp = 50e-6;
constexpr double kAdditive = 40e6;
constexpr double kCounter = 10e6;  // bytes
constexpr int kStages = 5;
constexpr double kGain = 1.0 / 256;
constexpr double kBits = 8.0 * kFrame;

// Zhu et al. 2016 (ECN or Delay), the fixed point of the fluid model of DCQCN: the probability of marks at
// which a flow stays at this rate. With R packets a second, B packets of the byte counter, T, tau the timers:
//
//   a = 1 - (1-p)^(tau R)      b = p / ((1-p)^-B - 1)      d = p / ((1-p)^(-T R) - 1)
//   dRc = 0   Rt - Rc = alpha a / (tau (b + d))            alpha = 1 - (1-p)^(T R)
//   dRt = 0   (Rt - Rc) a / tau = Rai R ((1-p)^(F B) b + (1-p)^(F T R) d)
double fluid_marks(double bps) {
  const double rate = bps / kBits;
  const double counter = kCounter / kFrame;
  const auto surplus = [&](double p) {
    const double q = 1 - p;
    const double a = 1 - std::pow(q, kCnp * rate);
    const double alpha = 1 - std::pow(q, kTimer * rate);
    const double b = p / (std::pow(q, -counter) - 1);
    const double d = p / (std::pow(q, -kTimer * rate) - 1);
    const double up = std::pow(q, kStages * counter) * b + std::pow(q, kStages * kTimer * rate) * d;
    return alpha * a * a / (kCnp * kCnp * (b + d)) - kAdditive / kBits * rate * up;
  };
  double low = 1e-7;
  double high = 0.5;
  for (int i = 0; i < 100; ++i) (surplus(std::sqrt(low * high)) < 0 ? low : high) = std::sqrt(low * high);
  return low;
}

// The same algorithm written down once more, for one flow whose packets are marked independently: its mean
// rate. Between two marks only the timers change anything; the byte counter is far longer.
double random_rate(double p) {
  Prng random(7);
  double t = 0, rate = 5e9, target = 5e9, alpha = 0.3, sent = 0, last_cnp = -1;
  double next_increase = kTimer, next_alpha = kTimer;
  int stage = 0;
  while (t < 2.0) {
    const double u = (static_cast<double>(random.next() >> 12U) + 0.5) / 4503599627370496.0;
    double left = std::floor(std::log(u) / std::log(1 - p)) + 1;
    for (;;) {
      const double tick = std::min(next_increase, next_alpha);
      const double until = (tick - t) * rate / kBits;
      const double now = std::min(until, left);
      sent += now;
      left -= now;
      t += now * kBits / rate;
      if (left <= 0) break;
      t = tick;
      if (next_alpha <= t) {
        alpha *= 1 - kGain;
        next_alpha = t + kTimer;
      }
      if (next_increase <= t) {
        target += stage >= kStages ? kAdditive : 0;
        rate = (rate + target) / 2;
        ++stage;
        next_increase = t + kTimer;
      }
    }
    if (t - last_cnp < kCnp) continue;
    last_cnp = t;
    target = rate;
    rate *= 1 - alpha / 2;
    alpha += kGain * (1 - alpha);
    next_alpha = next_increase = t + kTimer;
    stage = 0;
  }
  return sent * kBits / t;
}

// One flow alone, marked at random: as fast as the same algorithm written twice says, and a fifth faster than
// the fluid model, which takes the product of averages for the average of a product.
TEST(Dcqcn, RandomMarksGiveTheRateOfItsModels) {
  for (const double share : {20e9, 10e9, 5e9}) {
    const double p = std::round(fluid_marks(share) * 1e6) / 1e6;
    const Sampled r =
        watch(long_flows(1, {"network.rate=40Gbps", "transport.bdp_cap=1000", "transport.controller=dcqcn",
                             "network.mark=" + std::to_string(p * 100) + "%"}),
              milliseconds(50), milliseconds(450));
    EXPECT_NEAR(r.gbps[0] * 1e9 / random_rate(p), 1.0, 0.05) << p;
    EXPECT_NEAR(r.gbps[0] * 1e9 / share, 1.2, 0.1) << p;
  }
}

// N flows and RED: equal shares, a busy link, marks as often as that share needs (by the fluid model a third
// less, see above; as the number of flows to the power 4/3), and the queue where RED marks so often.
TEST(Dcqcn, FlowsMeetAtItsFixedPoint) {
  double before = 0;
  for (const std::uint32_t n : {2U, 4U, 8U}) {
    const Sampled r =
        watch(long_flows(n, {"network.rate=40Gbps", "transport.bdp_cap=4000", "transport.controller=dcqcn",
                             "switch.ecn=red", "switch.ecn_low=5kB", "switch.ecn_high=400kB",
                             "switch.ecn_probability=2%"}),
              milliseconds(30), milliseconds(110));
    EXPECT_NEAR(r.all(), 40.0, 0.4);
    for (const double g : r.gbps) EXPECT_NEAR(g, 40.0 / n, 0.15 * 40.0 / n);
    EXPECT_NEAR(r.marked / fluid_marks(40e9 / n), 1.33, 0.15) << n;
    if (before != 0) {
      EXPECT_NEAR(std::log2(r.marked / before), 4.0 / 3, 0.2) << n;
    }
    before = r.marked;
    // With two flows it is often empty, and cannot be less: then the mean of what is marked lies elsewhere.
    if (n != 2) {
      EXPECT_NEAR(r.mean * kFrame, 5e3 + r.marked / 0.02 * 395e3, 0.06 * r.mean * kFrame) << n;
    }
  }
}

}  // namespace
}  // namespace weft::sim
