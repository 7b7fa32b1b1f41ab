// Channels of the middleware over simulated NICs: what a scenario asks of them happens, and what contradicts
// itself is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/world/whole_run.h"

namespace weft::sim {
namespace {

using testing::HasSubstr;

std::string world(int hosts, const std::string& channels, const std::string& messages) {
  return "hosts = " + std::to_string(hosts) + "\nlimit = \"2s\"\n[channels]\n" + channels +
         "\n[[messages]]\n" + messages;
}

std::uint64_t rnr(const Simulation& run) { return run.totals().transport.get(Counter::nak_rnr); }

TEST(Channels, AskAndAnswerBetweenTwoSimulatedHosts) {
  const auto run = finished(scenario(world(2, "", "pattern = \"ping-pong\"\nsize = \"64B\"\ncount = 300\n")));
  ASSERT_TRUE(run->complete());
  const MessageResult& r = run->messages(0);
  EXPECT_EQ(r.messages, 300U);
  EXPECT_EQ(r.failed, 0U);
  EXPECT_EQ(r.bytes, 300U * 128U);
  ASSERT_EQ(r.latencies.size(), 300U);
  // Two messages and a network of two links each way: not less than four propagations, not much more.
  EXPECT_GT(r.latencies[0], microseconds(4));
  EXPECT_LT(quantiles_of(r.latencies).max_us, 10);
  EXPECT_EQ(rnr(*run), 0U);
  EXPECT_EQ(run->channels()->totals().counts.sent, 600U);
  EXPECT_EQ(run->packets_in_use(), 0U);
  EXPECT_LT(run->now(), Time{} + milliseconds(10))
      << "a farewell leaves when it is said, not after linger_ms";
}

TEST(Channels, FetchWhatIsLongInFragments) {
  const auto run = finished(scenario(world(
      4, "fragment = 16384\n", "pattern = \"incast\"\nsize = \"256KiB\"\ncount = 5\nconnections = 2\n")));
  ASSERT_TRUE(run->complete());
  EXPECT_EQ(run->messages(0).messages, 3U * 2 * 5);
  const ChannelTotals c = run->channels()->totals();
  EXPECT_EQ(c.counts.large_received, 30U);
  EXPECT_EQ(c.counts.fragments, 30U * 16);
  EXPECT_EQ(c.channels, 6U);
}

// Without flow control each message is one READ.
TEST(Channels, WithoutFlowControlAMessageIsOneFragment) {
  const auto run = finished(scenario(world(
      4, "flow_control = false\n", "pattern = \"incast\"\nsize = \"256KiB\"\ncount = 5\nconnections = 2\n")));
  ASSERT_TRUE(run->complete());
  EXPECT_EQ(run->channels()->totals().counts.fragments, 30U);
}

TEST(Channels, TakeFewBytesAtATimeUnderABound) {
  const std::string incast = "pattern = \"incast\"\nsize = \"128KiB\"\ncount = 3\nconnections = 8\n";
  const auto bound = finished(scenario(world(9, "outstanding = 4\n", incast)));
  const auto open = finished(scenario(world(9, "flow_control = false\n", incast)));
  ASSERT_TRUE(bound->complete() && open->complete());
  EXPECT_LT(bound->totals().longest_queue * 4, open->totals().longest_queue);
}

TEST(Channels, OfEveryHostToEveryOtherMeetAllAtOnce) {
  const auto run = finished(scenario(world(12, "depth = 4\nsmall_msg_size = 512\n",
                                           "pattern = \"all-to-all\"\nanswer = \"1KiB\"\ncount = 7\n")));
  ASSERT_TRUE(run->complete());
  EXPECT_EQ(run->messages(0).messages, 12U * 11 * 7);
  EXPECT_EQ(run->channels()->totals().channels, 22U) << "eleven that it asked for, eleven that asked for it";
  EXPECT_EQ(rnr(*run), 0U);
}

// A program that is slow holds up its peers by their windows; over plain queue pairs their messages find no
// receive.
TEST(Channels, KeepASlowProgramFreeOfReceiverNotReady) {
  const std::string slow =
      "pattern = \"incast\"\nsize = \"256B\"\ncount = 40\nunder_way = 16\nhold = \"5us\"\n";
  const auto channels = finished(scenario(world(5, "depth = 4\n", slow)));
  ASSERT_TRUE(channels->complete());
  EXPECT_EQ(rnr(*channels), 0U);
  EXPECT_GT(channels->channels()->totals().waited, 0U);
  const auto verbs = finished(scenario(world(5, "depth = 4\n", slow + "over = \"verbs\"\n")));
  ASSERT_TRUE(verbs->complete());
  EXPECT_EQ(verbs->messages(0).messages, 160U);
  EXPECT_GT(rnr(*verbs), 10U);
}

TEST(Channels, ConnectAnewInTheMiddle) {
  const auto run = finished(
      scenario(world(4, "",
                     "pattern = \"all-to-all\"\ncount = 100\nevery = \"20us\"\nupgrade_at = \"500us\"\n"
                     "upgrade_over = \"200us\"\n")));
  ASSERT_TRUE(run->complete());
  const MessageResult& r = run->messages(0);
  EXPECT_EQ(r.messages, 1200U);
  EXPECT_EQ(r.failed, 0U);
  EXPECT_EQ(r.reconnects.size(), 6U);
  EXPECT_EQ(r.connects.size(), 18U);
  EXPECT_FALSE(r.calm.empty());
  EXPECT_FALSE(r.storm.empty());
  EXPECT_GE(r.upgraded, r.upgrade_at);
  EXPECT_GT(run->channels()->totals().reused_qps, 0U);
}

TEST(Channels, SurviveALossyNetwork) {
  for (const char* mode : {"roce", "irn", "srnic"}) {
    const auto run =
        finished(scenario(world(5, "fragment = 8192\n",
                                "pattern = \"incast\"\nsize = \"20KiB\"\ncount = 20\nconnections = 3\n") +
                          "[network]\nloss = \"1%\"\n[transport]\nmode = \"" + mode + "\"\n"));
    ASSERT_TRUE(run->complete()) << mode;
    EXPECT_EQ(run->messages(0).messages, 240U) << mode;
    EXPECT_EQ(rnr(*run), 0U) << mode;
    EXPECT_GT(run->totals().lost, 0U) << mode;
  }
}

TEST(Channels, RunOverADetailedNic) {
  const auto run = finished(scenario(
      world(3, "depth = 4\n", "pattern = \"incast\"\nsize = \"32KiB\"\ncount = 10\nconnections = 4\n") +
      "[nic]\ndesign = \"cx5-like\"\n"));
  ASSERT_TRUE(run->complete());
  EXPECT_EQ(run->messages(0).messages, 80U);
}

TEST(Channels, AreTheSameTwice) {
  const Scenario s = scenario(
      world(6, "", "pattern = \"incast\"\nsize = \"20KiB\"\ncount = 10\nconnections = 3\nhold = \"1us\"\n") +
      "[network]\nloss = \"1%\"\n");
  EXPECT_EQ(finished(s)->to_record().json(), finished(s, nullptr, 77)->to_record().json());
}

TEST(Channels, AreRefusedWithASentence) {
  const auto mistake = [](const std::string& text) {
    const auto s = parse_scenario(text, "test", {});
    return s ? std::string("it was taken") : s.error().message;
  };
  const std::string two = "pattern = \"ping-pong\"\n";
  EXPECT_THAT(mistake(world(2, "", two + "to = 2\n")),
              HasSubstr("messages 0: from, to: hosts are numbered 0 to 1"));
  EXPECT_THAT(mistake(world(2, "", two + "to = 0\n")), HasSubstr("from and to are the same host"));
  EXPECT_THAT(mistake(world(2, "", "pattern = \"pong\"\n")),
              HasSubstr("one of ping-pong, incast, all-to-all"));
  EXPECT_THAT(mistake(world(2, "", "pattern = \"incast\"\nfan_in = 2\n")),
              HasSubstr("fan_in: there are 1 hosts beside the target"));
  EXPECT_THAT(mistake(world(2, "", "pattern = \"incast\"\ntarget = 5\n")),
              HasSubstr("target: hosts are numbered"));
  EXPECT_THAT(mistake(world(2, "", two + "size = \"65MiB\"\n")), HasSubstr("are more than channels.largest"));
  EXPECT_THAT(mistake(world(2, "", two + "over = \"verbs\"\n")),
              HasSubstr("messages of incast without answer"));
  EXPECT_THAT(mistake(world(2, "", two + "upgrade_at = \"1us\"\nstart = \"2us\"\n")),
              HasSubstr("upgrade_at must not come before start"));
  EXPECT_THAT(mistake(world(2, "depth = 0\n", two)),
              HasSubstr("channels.depth = 0: it must lie between 1 and"));
  EXPECT_THAT(mistake(world(2, "width = 1\n", two)),
              HasSubstr("channels.width: there is no such setting here"));
  EXPECT_THAT(mistake(world(2, "channels = 1\n", two)),
              HasSubstr("channels.channels: there is no such setting"));
  EXPECT_THAT(mistake(world(2, "flow_control = false\nfragment = 4096\n", two)),
              HasSubstr("without it there is no fragment"));
  EXPECT_THAT(mistake("hosts = 2\n[channels]\ndepth = 4\n[[flow]]\n"),
              HasSubstr("channels: mean nothing without [[messages]]"));
  EXPECT_THAT(mistake("check = true\n" + world(2, "", two)),
              HasSubstr("observers of packets know nothing of channels"));
  EXPECT_THAT(mistake(world(2, "", two) + "[transport]\nmode = \"tcp\"\n"),
              HasSubstr("transport.mode is tcp"));
  EXPECT_THAT(mistake(world(1500, "", "pattern = \"all-to-all\"\n")),
              HasSubstr("more than 1000000 channels"));
}

}  // namespace
}  // namespace weft::sim
