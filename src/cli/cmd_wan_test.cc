#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "cli/answer.h"
#include "cli/wan_status.h"

namespace weft::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(CmdWanPlan, ShowsThePapersNumbersAndTheLimitThatBinds) {
  const Answer a = answer_to({"wan", "plan", "--distance", "100km", "--tx-depth", "2048"});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_THAT(a.out, StartsWith("100 km, 100 Gb/s, messages of 4096 B"));
  EXPECT_THAT(a.out, HasSubstr("round trip  1 ms of fibre"));
  EXPECT_THAT(a.out, HasSubstr("4178   and 4194 with the RETH"));
  EXPECT_THAT(a.out, HasSubstr("2991   round trip x rate / frame, in packets; 2980 with the RETH"));
  EXPECT_THAT(a.out, HasSubstr("--tx-depth"));
  EXPECT_THAT(a.out, HasSubstr("67.1 Gb/s"));
  EXPECT_THAT(a.out, HasSubstr("post 2982 requests ahead"));
  EXPECT_THAT(a.out, HasSubstr("accelerator"));
  EXPECT_THAT(a.out, Not(HasSubstr("  losses  ")));  // nothing is lost
}

TEST(CmdWanPlan, SaysWhatLossesCostAndWhetherParityPays) {
  const Answer a = answer_to({"wan", "plan", "--distance", "1000km", "--rate", "100Gbps", "--mtu", "4096",
                              "--message", "1MiB", "--loss", "1e-3"});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_THAT(a.out, HasSubstr("go-back-N keeps 3."));
  EXPECT_THAT(a.out, HasSubstr("parity 16+2       pays for one message alone"));
}

TEST(CmdWanPlan, TableHasARowForEachDistanceAndMessage) {
  const Answer a =
      answer_to({"wan", "plan", "--table", "--distances", "10km,2500m", "--messages", "512,1MiB"});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(std::count(a.out.begin(), a.out.end(), '\n'), 1 + 4);
  EXPECT_THAT(a.out, HasSubstr("2500 m"));
}

TEST(CmdWanPlan, SaysTheSameAsJson) {
  const Answer a = answer_to({"wan", "plan", "-j", "--distance", "1000km"});
  EXPECT_THAT(a.out, HasSubstr("\"paper_depth\": 29918"));
  EXPECT_THAT(a.out, HasSubstr("\"bound_by\": \"--nic-depth\""));
  const Answer rows = answer_to({"wan", "plan", "-j", "--table", "--distances", "1km"});
  EXPECT_THAT(rows.out, HasSubstr("\"plans\""));
}

TEST(CmdWanPlan, RefusesInOneSentence) {
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"wan"},
                                                {"wan", "plan", "--distance", "1000"},
                                                {"wan", "plan", "--rate", "0"},
                                                {"wan", "plan", "--mtu", "1500"},
                                                {"wan", "plan", "--loss", "much"},
                                                {"wan", "plan", "--loss", "1"},
                                                {"wan", "plan", "--loss", "-1e-3"},
                                                {"wan", "plan", "--message", "0"},
                                                {"wan", "plan", "--tx-depth", "0"},
                                                {"wan", "plan", "--parity", "16"},
                                                {"wan", "plan", "--parity", "0+2"},
                                                {"wan", "plan", "--distances", "1km,"},
                                                {"wan", "plan", "--table", "--messages", "4GiB"}}) {
    const Answer a = answer_to(wrong);
    EXPECT_EQ(a.code, 2) << a.out;
    EXPECT_THAT(a.err, StartsWith("weft"));
    EXPECT_EQ(std::count(a.err.begin(), a.err.end(), '\n'), 1) << a.err;
  }
}

// No interface is opened before everything else is right, so this needs no privilege.
TEST(CmdWanBox, RefusesInOneSentence) {
  const std::string secret = ::testing::TempDir() + "/weft-secret";
  std::ofstream(secret) << "sixteen bytes, or more";
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
  const std::string open_secret = ::testing::TempDir() + "/weft-open-secret";
  std::ofstream(open_secret) << "sixteen bytes, or more";
  std::filesystem::permissions(open_secret,
                               std::filesystem::perms::owner_read | std::filesystem::perms::others_read);
  const std::vector<std::string> good{"wan", "box", "--near", "a", "--far", "b", "--partner-secret", secret};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = good;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"wan", "box", "--near", "a", "--far", "a", "--partner-secret", secret}, "both sides"},
      {{"wan", "box", "--near", "a", "--far", "b"}, "--partner-secret"},
      {{"wan", "box", "--near", "a", "--far", "b", "--partner-secret", "/no/such/file"}, "head -c 32"},
      {{"wan", "box", "--near", "a", "--far", "b", "--partner-secret", open_secret}, "chmod 600"},
      {with({"--store", "1kB"}), "--store"},
      {with({"--rate", "fast"}), "--rate"},
      {with({"--acknowledge", "late"}), "--acknowledge"},
      {with({"--round-trip", "1us"}), "--round-trip"},
      {with({"--parity", "16"}), "--parity: '16' is not like 16+2"},
      {with({"--parity", "16+9"}), "1 to 8 parity frames"},
      {with({"--endpoint-tries", "0"}), "--endpoint-tries"},
      {with({}), "--near: 'a'"}};
  for (const auto& [args, what] : wrong) {
    const Answer a = answer_to(args);
    EXPECT_EQ(a.code, 2) << a.out;
    EXPECT_THAT(a.err, HasSubstr(what));
    EXPECT_EQ(std::count(a.err.begin(), a.err.end(), '\n'), 1) << a.err;
  }
}

TEST(CmdWanLink, RefusesInOneSentence) {
  const std::vector<std::string> good{"wan", "link", "--between", "a", "b", "--rate", "1Gbps"};
  for (const auto& [more, what] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "--delay or --distance"},
           {{"--delay", "1ms", "--distance", "1km"}, "--delay or --distance"},
           {{"--delay", "2s"}, "--delay"},
           {{"--delay", "1ms", "--loss", "1e-7"}, "millionths"},
           {{"--delay", "1ms", "--queue", "1"}, "--queue"},
           {{"--delay", "1ms"}, "--between: 'a'"}}) {
    std::vector<std::string> args = good;
    args.insert(args.end(), more.begin(), more.end());
    const Answer a = answer_to(args);
    EXPECT_EQ(a.code, 2) << a.out;
    EXPECT_THAT(a.err, HasSubstr(what));
    EXPECT_EQ(std::count(a.err.begin(), a.err.end(), '\n'), 1) << a.err;
  }
}

// A box that runs is this process; one that was killed has a number that no process has.
TEST(CmdWanStat, TellsRunningBoxesFromThoseThatWereKilled) {
  const std::string folder = ::testing::TempDir() + "/weft-status";
  std::filesystem::remove_all(folder);
  EXPECT_EQ(answer_to({"wan", "stat", "--status", folder}).code, 2);
  ASSERT_EQ(status_folder(folder, true), folder);
  EXPECT_EQ(answer_to({"wan", "stat", "--status", folder}).code, 1);
  {
    StatusFile file(folder);
    record::Record r;
    record::Record counters;
    counters.set("taken", std::uint64_t{77});
    r.set("near", "eth\"0").set("far", "eth1").set("box", std::move(counters));
    ASSERT_TRUE(file.write(std::move(r)));
    std::ofstream(folder + "/box-999999999.json")
        << R"({"pid": 999999999, "started": 1, "near": "x", "far": "y"})";
    std::ofstream(folder + "/box-1.json") << "not json";
    const Answer a = answer_to({"wan", "stat", "--status", folder});
    EXPECT_EQ(a.code, 0) << a.err;
    EXPECT_THAT(a.out, HasSubstr("(site) | eth1 (line), runs"));
    EXPECT_THAT(a.out, HasSubstr("box 999999999: x (site) | y (line), was killed"));
    EXPECT_THAT(a.out, HasSubstr("77  request packets taken"));
    EXPECT_THAT(a.out, Not(HasSubstr("repairs answers")));
    const Answer p = answer_to({"wan", "stat", "-p", "--status", folder});
    EXPECT_THAT(p.out, HasSubstr("# TYPE weft_box_taken_total counter\nweft_box_taken_total{pid="));
    EXPECT_THAT(p.out, HasSubstr("near=\"eth\\\"0\",far=\"eth1\"} 77\n"));
    EXPECT_THAT(p.out, HasSubstr("weft_box_up{pid=\"999999999\",near=\"x\",far=\"y\"} 0\n"));
    EXPECT_THAT(answer_to({"wan", "stat", "-j", "--status", folder}).out, HasSubstr("\"life\": \"gone\""));
  }
  EXPECT_THAT(answer_to({"wan", "stat", "--status", folder}).out, Not(HasSubstr("runs")));
}

TEST(CmdWanStat, SaysWhetherAnswersAreRepairedAtBothEnds) {
  const std::string folder = ::testing::TempDir() + "/weft-status-answers";
  std::filesystem::remove_all(folder);
  ASSERT_EQ(status_folder(folder, true), folder);
  StatusFile file(folder);
  for (const std::uint64_t declined : {0U, 3U}) {
    record::Record r;
    record::Record counters;
    counters.set("answers_declined", declined);
    r.set("near", "eth0").set("far", "eth1").set("repair_answers", true).set("box", std::move(counters));
    ASSERT_TRUE(file.write(std::move(r)));
    const std::string out = answer_to({"wan", "stat", "--status", folder}).out;
    EXPECT_THAT(out, HasSubstr("repairs answers of READs"));
    EXPECT_EQ(out.find("start it with --repair-answers, too") != std::string::npos, declined != 0) << out;
  }
}

}  // namespace
}  // namespace weft::cli
