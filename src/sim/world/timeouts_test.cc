// Time-outs as IRN §4.1 sets them: exactly RTO_high in RoCE without PFC, and none at all with PFC. Both are
// looked at in a network that loses everything, where nothing but a time-out can act.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/world/simulation.h"

namespace weft::sim {
namespace {

using ::testing::HasSubstr;

constexpr const char* kDead = R"(
hosts = 2
check = true
[network]
rate = "40Gbps"
delay = "2us"
loss = "100%"
[[flow]]
size = "4KiB"
count = 1
depth = 1
)";

std::unique_ptr<Simulation> run_dead(const std::vector<std::string>& changes) {
  const auto s = parse_scenario(kDead, "test", changes);
  EXPECT_TRUE(s.has_value()) << s.error().message;
  auto run = std::make_unique<Simulation>(*s);
  while (run->run(100'000)) {
  }
  return run;
}

// Two retries: three silences of 320 us each, which no verbs code gives. Plus the packets' own time.
TEST(Timeouts, RoceTakesAnExactTime) {
  for (const char* op : {"write", "read"}) {
    const auto run = run_dead({"transport.mode=roce", "transport.roce_timeout=320us",
                               "transport.retry_count=2", std::string("flow.op=") + op});
    EXPECT_EQ(run->results()[0].failed, 1U) << op;
    EXPECT_EQ(run->totals().timeouts, 2U) << op;
    EXPECT_GE(run->now(), Time{} + microseconds(960)) << op;
    EXPECT_LE(run->now(), Time{} + microseconds(970)) << op;
    EXPECT_TRUE(run->findings()->clean()) << run->findings()->text();
  }
}

// In every mode and for every verb a lost packet is never sent again, and no request fails either.
TEST(Timeouts, CanBeOff) {
  for (const char* mode : {"roce", "irn", "srnic"}) {
    for (const char* op : {"write", "read", "send"}) {
      const auto run = run_dead(
          {std::string("transport.mode=") + mode, "transport.timeouts=false", std::string("flow.op=") + op});
      EXPECT_FALSE(run->complete()) << mode << ' ' << op;
      EXPECT_EQ(run->results()[0].failed, 0U) << mode << ' ' << op;
      EXPECT_EQ(run->totals().timeouts, 0U) << mode << ' ' << op;
      EXPECT_EQ(run->totals().retransmitted, 0U) << mode << ' ' << op;
    }
  }
}

// NACKs still repair: only a lost tail needs a time-out.
TEST(Timeouts, AreNotNeededForWhatANackTells) {
  for (const char* mode : {"roce", "irn", "srnic"}) {
    const auto run = run_dead({std::string("transport.mode=") + mode, "transport.timeouts=false",
                               "network.loss=0.2%", "flow.size=512KiB", "seed=3"});
    EXPECT_TRUE(run->complete()) << mode;
    EXPECT_GT(run->totals().retransmitted, 0U) << mode;
    EXPECT_TRUE(run->findings()->clean()) << run->findings()->text();
  }
}

TEST(Timeouts, OfRoceMeanNothingElsewhere) {
  const std::vector<std::string> changes{"transport.mode=irn", "transport.roce_timeout=320us"};
  const auto s = parse_scenario(kDead, "test", changes);
  ASSERT_FALSE(s.has_value());
  EXPECT_THAT(s.error().message, HasSubstr("transport.roce_timeout"));
}

}  // namespace
}  // namespace weft::sim
