// Variates, size distributions and patterns: moments and shapes against what they claim, mistakes by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "sim/traffic/pattern.h"
#include "sim/traffic/variates.h"

namespace weft::sim {
namespace {

using ::testing::HasSubstr;

TEST(Variates, LogarithmsAreRightToABillionth) {
  Prng random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t draw = random.next() >> (i % 60);
    const double exact = 64.0 - std::log2(static_cast<double>(draw) + 1.0);
    EXPECT_NEAR(static_cast<double>(minus_log2_q32(draw)) / 4294967296.0, exact, 2e-9) << draw;
  }
  EXPECT_EQ(minus_log2_q32(UINT64_MAX), 0U);
  EXPECT_EQ(minus_log2_q32(0), 64ULL << 32U);
  EXPECT_EQ(minus_log2_q32((1ULL << 63U) - 1U), 1ULL << 32U);
}

TEST(Variates, ExponentialsHaveMeanAndVarianceOfOne) {
  Prng random(2);
  constexpr int kDraws = 400'000;
  double sum = 0;
  double squares = 0;
  int beyond_three = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = static_cast<double>(exponential_q32(random)) / 4294967296.0;
    sum += x;
    squares += x * x;
    beyond_three += x > 3 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kDraws, 1.0, 0.01);
  EXPECT_NEAR(squares / kDraws, 2.0, 0.05);
  EXPECT_NEAR(static_cast<double>(beyond_three) / kDraws, std::exp(-3.0), 0.002);
}

TEST(Sizes, EveryDistributionDrawsWhatItsPointsSay) {
  ASSERT_GE(size_rows().size(), 10U);
  for (const SizeRow& row : size_rows()) {
    SCOPED_TRACE(row.name);
    EXPECT_FALSE(size_text(row).empty());
    const auto d = SizeDistribution::parse(row.name, row.points);
    ASSERT_TRUE(d.has_value()) << d.error().message;
    Prng random(7);
    constexpr std::uint32_t kDraws = 200'000;
    double sum = 0;
    std::map<std::uint64_t, std::uint32_t> up_to{{1'000, 0}, {10'000, 0}, {100'000, 0}, {1'000'000, 0}};
    for (std::uint32_t i = 0; i < kDraws; ++i) {
      const std::uint64_t size = d->draw(random);
      ASSERT_GE(size, 1U);
      ASSERT_LE(size, d->largest());
      sum += static_cast<double>(size);
      for (auto& [limit, n] : up_to) n += size <= limit ? 1U : 0U;
    }
    // The heaviest tail here (data-mining, up to 1 GB) has a standard error of half a percent or so.
    EXPECT_NEAR(sum / kDraws / static_cast<double>(d->mean()), 1.0, 0.06);
    for (const auto& [limit, n] : up_to)
      EXPECT_NEAR(static_cast<double>(n) / kDraws, static_cast<double>(d->part_up_to(limit)) / 1e6, 0.005)
          << limit;
  }
}

TEST(Sizes, ThePapersDistributionsAreAsDescribed) {
  const auto named = [](const char* name) {
    TrafficSpec s;
    s.sizes = name;
    return *sizes_of(s);
  };
  // IRN §4.1: half are single packets of 32 B to 1 KB, 15 % lie between 200 KB and 3 MB.
  EXPECT_EQ(named("irn-heavy").part_up_to(1024), 500'000U);
  EXPECT_NEAR(named("irn-heavy").part_up_to(200'000), 850'000, 2);
  EXPECT_EQ(named("irn-heavy").largest(), 3'000'000U);
  // Another reading of the same quantiles: uniform in the logarithm, so half of the large ones are below 775
  // KB.
  const SizeDistribution log = named("irn-heavy-log");
  EXPECT_EQ(log.part_up_to(1024), 500'000U);
  EXPECT_NEAR(log.part_up_to(200'000), 850'000, 2);
  EXPECT_EQ(log.largest(), 3'000'000U);
  EXPECT_NEAR(log.part_up_to(774'597), 925'000, 1000);
  EXPECT_NEAR(log.part_up_to(14'311), 675'000, 1000);
  EXPECT_NEAR(static_cast<double>(log.mean()), 169e3, 1e3);
  EXPECT_EQ(named("irn-uniform").mean(), 2'750'000U);
  // SRNIC §6.3: 53 % up to 100 KB, 18 % from there to 1 MB.
  EXPECT_NEAR(named("cache-follower").part_up_to(100'000), 530'000, 10'000);
  EXPECT_NEAR(named("cache-follower").part_up_to(1'000'000) - named("cache-follower").part_up_to(100'000),
              180'000, 10'000);
  EXPECT_EQ(named("2MB").mean(), 2'000'000U);
}

TEST(Sizes, FilesWithMistakesAreRefused) {
  const auto mistake = [](const char* text) {
    const auto d = SizeDistribution::parse("f", text);
    return d ? std::string("accepted") : d.error().message;
  };
  EXPECT_THAT(mistake(""), HasSubstr("no points"));
  EXPECT_THAT(mistake("10 0\n5 1\n"), HasSubstr("line 2: sizes and parts may not fall"));
  EXPECT_THAT(mistake("10 0\n20 0.5\n"), HasSubstr("neither 1 nor 100"));
  EXPECT_THAT(mistake("10 0\n20 one\n"), HasSubstr("line 2"));
  EXPECT_THAT(mistake("0 0\n9000000000 1\n"), HasSubstr("2 GiB"));
  EXPECT_EQ(mistake("# head\n10 0\n20 100\n"), "accepted");
  EXPECT_THAT(mistake(("10 0\n20 0." + std::string(130, '0') + "1\n").c_str()), HasSubstr("line 2"));
}

// Times and numbers that are too large for their types are refused, or cut to the latest time.
TEST(Patterns, WhatNothingCanHoldIsRefused) {
  TrafficSpec s;
  s.pattern = "incast";
  s.fan_in = 9;
  s.every = seconds(86'400);
  s.requests = 1'000'000;
  const TrafficGround g{10, gigabits(100), 1000, 100, 5};
  EXPECT_THAT(make_arrivals(s, g).error().message, HasSubstr("requests: 1000000 of 9 flows each"));
  s.requests = 100'000;
  EXPECT_THAT(make_arrivals(s, g).error().message, HasSubstr("every: the last request would come after"));
  s = {};
  s.flows = 100;
  s.load = 1;
  s.sizes = "2GiB";
  const auto slow = make_arrivals(s, {10, Rate{1'000'000}, 1000, 100, 5});
  ASSERT_TRUE(slow.has_value());
  Arrival a;
  Time before{};
  while ((*slow)->next(a)) {
    EXPECT_GE(a.at, before);
    before = a.at;
  }
}

// --- patterns -------------------------------------------------------------------------------------

TrafficGround ground(std::uint32_t hosts) { return {hosts, gigabits(100), 1000, 100, 5}; }

std::vector<Arrival> all_of(const TrafficSpec& s, const TrafficGround& g) {
  auto made = make_arrivals(s, g);
  EXPECT_TRUE(made.has_value()) << made.error().message;
  std::vector<Arrival> list;
  for (Arrival a; (*made)->next(a);) list.push_back(a);
  return list;
}

TEST(Pattern, EveryOneKeepsOrderAndHosts) {
  for (const PatternRow& row : pattern_rows()) {
    SCOPED_TRACE(row.name);
    TrafficSpec s;
    s.pattern = row.name;
    s.verb = Verb::kMixed;
    s.start = microseconds(3);
    s.flows = s.pattern == "poisson" ? 500 : 0;
    s.trace_text = "5us 3 4 100\n1us 0 9 1MB read  # early\n";
    const auto list = all_of(s, ground(10));
    EXPECT_FALSE(list.empty());
    Time last{};
    for (const Arrival& a : list) {
      EXPECT_GE(a.at, last);
      EXPECT_GE(a.at, Time{} + microseconds(3));
      last = a.at;
      EXPECT_LT(a.from, 10U);
      EXPECT_LT(a.to, 10U);
      EXPECT_NE(a.from, a.to);
      EXPECT_GT(a.bytes, 0U);
    }
    EXPECT_EQ(all_of(s, ground(10)).size(), list.size()) << "the same seed";
  }
}

// The load is that of the host links, headers included.
TEST(Pattern, PoissonOffersTheLoadThatWasAskedFor) {
  for (const char* sizes : {"irn-heavy", "web-search", "2000"}) {
    TrafficSpec s;
    s.sizes = sizes;
    s.load = 600'000;
    s.flows = 100'000;
    const auto list = all_of(s, ground(20));
    double wire_bits = 0;
    std::vector<int> sent(20);
    for (const Arrival& a : list) {
      wire_bits += 8.0 * (static_cast<double>(a.bytes) + 100.0 * static_cast<double>((a.bytes + 999) / 1000));
      ++sent[a.from];
    }
    const double seconds_run = static_cast<double>(list.back().at.ps) / 1e12;
    EXPECT_NEAR(wire_bits / seconds_run / (20 * 100e9), 0.6, 0.02) << sizes;
    for (const int n : sent) EXPECT_NEAR(n, 5000, 350);
  }
}

TEST(Pattern, AnIncastStripesARequestOverDistinctSenders) {
  TrafficSpec s;
  s.pattern = "incast";
  s.fan_in = 30;
  s.target = 7;
  s.total = {150'000'000};
  s.requests = 3;
  s.every = milliseconds(1);
  const auto list = all_of(s, ground(54));
  ASSERT_EQ(list.size(), 90U);
  for (std::uint32_t r = 0; r < 3; ++r) {
    std::set<std::uint32_t> senders;
    for (std::uint32_t i = 0; i < 30; ++i) {
      const Arrival& a = list[r * 30 + i];
      senders.insert(a.from);
      EXPECT_EQ(a.group, r);
      EXPECT_EQ(a.to, 7U);
      EXPECT_EQ(a.bytes, 5'000'000U);
      EXPECT_EQ(a.at, Time{} + milliseconds(r));
    }
    EXPECT_EQ(senders.size(), 30U);
    EXPECT_FALSE(senders.contains(7));
  }
}

// 150 MB over 35 senders with 4 connections each: nothing is lost to division.
TEST(Pattern, AnIncastMayUseSeveralConnectionsOfASender) {
  TrafficSpec s;
  s.pattern = "incast";
  s.fan_in = 35;
  s.connections = 4;
  s.target = 7;
  s.total = {150'000'000};
  const auto list = all_of(s, ground(54));
  ASSERT_EQ(list.size(), 140U);
  std::map<std::uint32_t, int> of_sender;
  std::uint64_t bytes = 0;
  for (const Arrival& a : list) {
    ++of_sender[a.from];
    bytes += a.bytes;
    EXPECT_EQ(a.group, 0U);
    EXPECT_NEAR(static_cast<double>(a.bytes), 150e6 / 140, 1);
  }
  EXPECT_EQ(bytes, 150'000'000U);
  EXPECT_EQ(of_sender.size(), 35U);
  for (const auto& [sender, connections] : of_sender) EXPECT_EQ(connections, 4) << sender;
}

TEST(Pattern, PermutationAndAllToAllAreComplete) {
  TrafficSpec s;
  s.pattern = "permutation";
  std::set<std::uint32_t> from;
  std::set<std::uint32_t> to;
  for (const Arrival& a : all_of(s, ground(33))) {
    from.insert(a.from);
    to.insert(a.to);
  }
  EXPECT_EQ(from.size(), 33U);
  EXPECT_EQ(to.size(), 33U);
  s.pattern = "all-to-all";
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const Arrival& a : all_of(s, ground(9))) pairs.emplace(a.from, a.to);
  EXPECT_EQ(pairs.size(), 9U * 8U);
}

TEST(Pattern, MistakesAreNamed) {
  const auto mistake = [](auto change) {
    TrafficSpec s;
    s.flows = 10;
    change(s);
    const auto made = make_arrivals(s, ground(8));
    return made ? std::string("accepted") : made.error().message;
  };
  EXPECT_EQ(mistake([](TrafficSpec&) {}), "accepted");
  EXPECT_THAT(mistake([](TrafficSpec& s) { s.pattern = "poison"; }),
              HasSubstr("'poison' is not one of poisson"));
  EXPECT_THAT(mistake([](TrafficSpec& s) { s.sizes = "huge"; }), HasSubstr("sizes: 'huge'"));
  EXPECT_THAT(mistake([](TrafficSpec& s) { s.load = 0; }), HasSubstr("load"));
  EXPECT_THAT(mistake([](TrafficSpec& s) { s.flows = 0; }), HasSubstr("either flows or duration"));
  EXPECT_THAT(mistake([](TrafficSpec& s) {
                s.pattern = "incast";
                s.fan_in = 8;
              }),
              HasSubstr("fan_in: 8 senders"));
  EXPECT_THAT(mistake([](TrafficSpec& s) {
                s.pattern = "incast";
                s.requests = 2;
              }),
              HasSubstr("every"));
  const auto trace = [&](const char* text) {
    return mistake([&](TrafficSpec& s) {
      s.pattern = "trace";
      s.trace_text = text;
    });
  };
  EXPECT_THAT(trace("1us 0 1 5kB\n2us 0 8 5kB\n"), HasSubstr("line 2: to"));
  EXPECT_THAT(trace("1us 3 3 5kB\n"), HasSubstr("the same host"));
  EXPECT_THAT(trace("now 0 1 5kB\n"), HasSubstr("time"));
  EXPECT_THAT(trace("1us 0 1 5kB push\n"), HasSubstr("'push'"));
}

}  // namespace
}  // namespace weft::sim
