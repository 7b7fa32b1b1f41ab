#include <gmock/gmock.h>

#include "cli/answer.h"

namespace weft::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CmdNicMemory, ShowsEachPartAndItsSum) {
  const Answer a = answer_to({"nic", "memory", "srnic", "--qps", "10000"});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_THAT(a.out, StartsWith("srnic: 10000 queue pairs\n"));
  EXPECT_THAT(a.out, HasSubstr("10000 queue pairs x 241 B (210 B aligned)"));
  EXPECT_THAT(a.out, HasSubstr("MTT cache"));
  EXPECT_THAT(a.out, HasSubstr("in all"));
}

TEST(CmdNicMemory, SaysTheSameAsJsonForSeveralDesigns) {
  const Answer a = answer_to({"nic", "memory", "csrna-nb", "ernic", "--qps", "127", "--chip", "2MiB", "-j"});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_THAT(a.out, HasSubstr("\"design\": \"csrna-nb\""));
  EXPECT_THAT(a.out, HasSubstr("\"design\": \"ernic\""));
  EXPECT_THAT(a.out, HasSubstr("\"chip_holds\": 127"));
  EXPECT_THAT(a.out, HasSubstr("\"part\": \"pending record table\""));
}

TEST(CmdNicMemory, RefusesInOneSentence) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"nic", "memory", "ernic", "--qps", "128"},
        {"nic", "memory", "none-such"},
        {"nic", "memory", "srnic", "--qps", "0"},
        {"nic", "memory", "srnic", "--qps", "many"},
        {"nic", "memory", "srnic", "--chip", "much"},
        {"nic", "memory"},
        {"nic"}}) {
    const Answer a = answer_to(wrong);
    EXPECT_EQ(a.code, 2) << a.out;
    EXPECT_THAT(a.err, StartsWith("weft: "));
    EXPECT_EQ(std::count(a.err.begin(), a.err.end(), '\n'), 1) << a.err;
  }
}

// A small search, for real: two numbers of connections, contexts on the chip against contexts in the host.
TEST(CmdNicExplore, FindsTheDesignWithMoreConnections) {
  const Answer a = answer_to({"nic", "explore", "srnic", "joined", "--chip", "2MiB", "--qps", "1000,2000",
                              "--splits", "50%", "--messages", "4000", "--runs", "6", "--full", "70%"});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_THAT(a.out, HasSubstr("connections"));
  EXPECT_THAT(a.out, HasSubstr("2000"));
  EXPECT_THAT(a.out, HasSubstr("context.cache="));
  const Answer json = answer_to({"nic", "explore", "joined", "--chip", "2MiB", "--qps", "1000", "--splits",
                                 "50%", "--messages", "4000", "-j"});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_THAT(json.out, HasSubstr("\"chip_bytes\":"));
  EXPECT_THAT(json.out, HasSubstr("\"front\": true"));
}

TEST(CmdNicExplore, RefusesInOneSentence) {
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"nic", "explore", "none-such"},
                                                {"nic", "explore", "--op", "atomic"},
                                                {"nic", "explore", "--qps", "200,100"},
                                                {"nic", "explore", "--splits", "most"},
                                                {"nic", "explore", "--chip", "much"},
                                                {"nic", "explore", "--runs", "0"},
                                                {"nic", "explore", "--full", "2"}}) {
    const Answer a = answer_to(wrong);
    EXPECT_EQ(a.code, 2) << a.out;
    EXPECT_THAT(a.err, StartsWith("weft: "));
    EXPECT_EQ(std::count(a.err.begin(), a.err.end(), '\n'), 1) << a.err;
  }
}

}  // namespace
}  // namespace weft::cli
