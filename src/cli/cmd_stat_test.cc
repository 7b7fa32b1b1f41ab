// weft stat as a command, over pages that this process has itself. (tests/tools/stat_test.py: over real
// programs.)
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <string>

#include "cli/answer.h"
#include "page/page.h"

namespace weft::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr page::Column kNicColumns[] = {{"qps", page::Sort::kCount}};
constexpr page::Column kContextColumns[] = {{"channels", page::Sort::kCount}};
constexpr std::string_view kNothing = "no numbers just now";

std::string stat_of_this_process() { return answer_to({"stat", "--pid", std::to_string(getpid())}).out; }

// A device is opened before it counts: whoever looks in between is told of it all the same.
TEST(Stat, ShowsANicThatHasOnlyBegun) {
  const page::Table tables[] = {{"nic", kNicColumns, 1}};
  const auto page = page::Page::open("nic", "127.0.0.9", tables);
  ASSERT_NE(page, nullptr);
  EXPECT_THAT(stat_of_this_process(), HasSubstr("]: NIC 127.0.0.9 shows no numbers just now\n"));
  page->put(0, 0, std::array<std::uint64_t, 1>{7});
  EXPECT_THAT(stat_of_this_process(), HasSubstr("]: NIC 127.0.0.9, queue pairs 7, "));
  EXPECT_THAT(stat_of_this_process(), Not(HasSubstr(kNothing)));
}

TEST(Stat, ShowsChannelsThatHaveOnlyBegun) {
  const page::Table tables[] = {{"context", kContextColumns, 1}};
  const auto page = page::Page::open("channels", "", tables);
  ASSERT_NE(page, nullptr);
  EXPECT_THAT(stat_of_this_process(), HasSubstr("]: its channels show no numbers just now\n"));
  page->put(0, 0, std::array<std::uint64_t, 1>{3});
  EXPECT_THAT(stat_of_this_process(), HasSubstr("]: channels 3 of "));
  EXPECT_THAT(stat_of_this_process(), Not(HasSubstr(kNothing)));
}

TEST(Stat, SaysThatAProcessShowsNothing) {
  EXPECT_EQ(stat_of_this_process(), "that process shows no channels and no soft NIC\n");
}

}  // namespace
}  // namespace weft::cli
