// One run stands for another only where both would have found the same.
#include "lab/unread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/plan.h"
#include "sim/world/simulation.h"

namespace weft::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kIncast =
    "hosts = 5\n[network]\nrate = \"40Gbps\"\n[switch]\npfc = true\nbuffer = \"240kB\"\n"
    "[transport]\nmode = \"irn\"\nrto_backoff = false\n"
    "[[flow]]\nfrom = 1\nto = 0\nsize = \"64KiB\"\ncount = 8\ndepth = 2\n"
    "[[flow]]\nfrom = 2\nto = 0\nsize = \"1KiB\"\ncount = 40\ndepth = 4\n"
    "[[flow]]\nfrom = 3\nto = 0\nsize = \"64KiB\"\ncount = 8\ndepth = 2\n"
    "[[flow]]\nfrom = 4\nto = 0\nsize = \"64KiB\"\ncount = 8\ndepth = 2\n";

sim::Scenario scenario(std::vector<std::string> changes) {
  auto s = sim::parse_scenario(kIncast, "incast.toml", changes);
  EXPECT_TRUE(s) << s.error().message;
  return *s;
}

// What a run found, without what it was asked.
std::string found(const sim::Scenario& s) {
  sim::Simulation simulation(s);
  for (int turn = 0; turn < 1000 && simulation.run(1U << 16U); ++turn) {
  }
  EXPECT_TRUE(simulation.complete());
  record::Record r = simulation.to_record();
  return r.set("scenario", "").json();
}

// Of each rule: settings apart, and what must hold for nobody to read them.
struct Row {
  std::vector<std::string> one, other, under, without;
};
const std::vector<Row> kRows{
    {{"transport.rto_low=5us", "transport.rto_high=6us", "transport.rto_low_packets=3"},
     {"transport.rto_low=1ms", "transport.rto_high=2ms", "transport.rto_low_packets=15"},
     {"transport.timeouts=false"},
     {"transport.timeouts=true"}},
};

std::vector<std::string> both(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(UnreadSettings, EachRuleHasARowHere) { EXPECT_EQ(kRows.size(), unread_rules().size()); }

// The two scenarios of a row, with `last` besides.
std::pair<sim::Scenario, sim::Scenario> apart(const Row& r, const std::vector<std::string>& last) {
  return {scenario(both(r.one, last)), scenario(both(r.other, last))};
}

TEST(UnreadSettings, ChangeNothingThatARunFinds) {
  for (const Row& r : kRows) {
    const auto [a, b] = apart(r, r.under);
    EXPECT_EQ(configuration_of(a), configuration_of(b)) << "they are one run";
    EXPECT_EQ(found(a), found(b));
  }
}

TEST(UnreadSettings, ChangeMuchWhereTheyAreRead) {
  for (const Row& r : kRows) {
    const auto [a, b] = apart(r, r.without);
    EXPECT_NE(configuration_of(a), configuration_of(b)) << "they are two runs";
    EXPECT_NE(found(a), found(b));
  }
}

// One value alone, of any of the settings: N by itself must not tell two runs apart either.
TEST(UnreadSettings, AreForgottenEachByItself) {
  const std::string plain = configuration_of(scenario({"transport.timeouts=false"}));
  for (const char* one : {"transport.rto_low=50us", "transport.rto_high=5ms", "transport.rto_low_packets=15"})
    EXPECT_EQ(configuration_of(scenario({"transport.timeouts=false", one})), plain) << one;
}

// A reader of the record sees which settings the run stands for, and why.
TEST(UnreadSettings, AreNamedInTheRecord) {
  const std::string off = configuration_of(scenario({"transport.timeouts=false"}));
  EXPECT_THAT(off, HasSubstr("\"unread\""));
  EXPECT_THAT(off, HasSubstr("transport.rto_high"));
  EXPECT_THAT(off, HasSubstr("time-outs are off"));
  EXPECT_THAT(configuration_of(scenario({})), Not(HasSubstr("\"unread\"")));
}

// TCP's shortest time-out is rto_high, whatever else is off.
TEST(UnreadSettings, AreReadByTcp) {
  sim::Scenario s = scenario({"transport.timeouts=false"});
  EXPECT_EQ(forget_unread(s).size(), 1U);
  sim::Scenario tcp = scenario({"transport.timeouts=false", "transport.rto_high=5ms"});
  tcp.transport.tcp = true;
  EXPECT_TRUE(forget_unread(tcp).empty());
  EXPECT_EQ(tcp.transport.rto_high, milliseconds(5));
}

}  // namespace
}  // namespace weft::lab
