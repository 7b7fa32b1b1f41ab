#include <gmock/gmock.h>

#include "cli/answer.h"

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

}  // namespace
}  // namespace weft::cli
