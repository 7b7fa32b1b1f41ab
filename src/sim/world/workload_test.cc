// How flows post: in batches, and in turns over their queue pairs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/world/nic_design.h"
#include "sim/world/whole_run.h"

namespace weft::sim {
namespace {

using testing::HasSubstr;

std::string two_hosts(const std::string& flow) {
  return "hosts = 2\nlimit = \"100ms\"\ncheck = true\n[nic]\ndesign = \"csrna-nb\"\n"
         "[[flow]]\nfrom = 0\nto = 1\nop = \"write\"\nsize = \"64B\"\n" +
         flow;
}

NicCounters counters_of(const Simulation& run) { return run.detailed()[0]->counters(); }

TEST(Workload, ABatchIsOneDoorbellAndOneCompletion) {
  const auto run = finished(scenario(two_hosts("count = 42\ndepth = 5\nbatch = 5\n")));
  EXPECT_TRUE(run->complete());
  EXPECT_EQ(run->results()[0].messages, 42U);
  EXPECT_EQ(run->results()[0].latencies.size(), 42U);
  EXPECT_EQ(counters_of(*run).doorbells, 9U) << "eight of five, and the two that are left";
  EXPECT_EQ(counters_of(*run).completions, 9U);
  EXPECT_EQ(run->findings()->text(), "");
}

// One message under way over eight queue pairs takes as long as one over one: nobody waits for anybody.
TEST(Workload, QueuePairsThatTakeTurnsAddUpToTheDepthOfTheFlow) {
  const auto alone = finished(scenario(two_hosts("count = 40\ndepth = 1\n")));
  const auto turns = finished(scenario(two_hosts("count = 5\nqps = 8\ndepth = 1\nrotate = true\n")));
  EXPECT_TRUE(turns->complete());
  EXPECT_EQ(turns->results()[0].messages, 40U);
  // The first message of a queue pair finds no context, at either end.
  const Duration later = alone->results()[0].latencies.back();
  EXPECT_EQ(turns->results()[0].latencies.back(), later);
  EXPECT_EQ(turns->findings()->text(), "");
  const auto together = finished(scenario(two_hosts("count = 5\nqps = 8\ndepth = 1\n")));
  EXPECT_LT(together->results()[0].elapsed(), turns->results()[0].elapsed() / 4);
}

// Flows that start together are programs beside each other: their queue pairs post in turns.
TEST(Workload, FlowsThatStartTogetherPostInTurns) {
  const auto run =
      finished(scenario("hosts = 3\n[network]\ndelay = \"10ns\"\n[[flow]]\nfrom = 0\nto = 1\nsize = "
                        "\"4KiB\"\nqps = 20\ndepth = 1\ncount = 1\n"
                        "[[flow]]\nfrom = 0\nto = 2\nsize = \"4KiB\"\nqps = 20\ndepth = 1\ncount = 1\n"));
  // One behind the other, the first flow would be done in half of the time.
  EXPECT_NEAR(static_cast<double>(run->results()[0].elapsed().ps) /
                  static_cast<double>(run->results()[1].elapsed().ps),
              1, 0.1);
}

TEST(Workload, ABatchThatDoesNotFitIsRefused) {
  const auto s = parse_scenario(two_hosts("count = 4\ndepth = 4\nbatch = 5\n"), "test", {});
  ASSERT_FALSE(s);
  EXPECT_THAT(s.error().message, HasSubstr("batch: 5 messages at once do not fit into depth, 4"));
}

TEST(Workload, TheRateOfAllFlowsIsTakenWhileAllAreAtWork) {
  const auto run = finished(scenario(two_hosts("count = 1000\ndepth = 16\n")));
  const FlowResult& r = run->results()[0];
  const double whole = static_cast<double>(r.messages) * 1e12 / static_cast<double>(r.elapsed().ps);
  EXPECT_NEAR(run->together().per_second() / whole, 1.0, 0.05);
  EXPECT_EQ(run->together().messages, 800U);
}

}  // namespace
}  // namespace weft::sim
