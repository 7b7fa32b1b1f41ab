// The shell around all commands: what every command gets for free.
#include "cli/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace weft::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Answer {
  int code;
  std::string out;
  std::string err;
};

Answer weft(std::vector<std::string> args) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = run(std::move(args), out, err);
  return {code, out.str(), err.str()};
}

// One sentence: one line, from "weft: " to a full stop.
void expect_refused(const Answer& answer) {
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.out, "");
  EXPECT_THAT(answer.err, StartsWith("weft: "));
  EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
  EXPECT_TRUE(answer.err.ends_with(".\n")) << answer.err;
}

TEST(Commands, VersionPrintsVersionAndCommit) {
  const Answer answer = weft({"--version"});
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.out, version_line() + "\n");
  EXPECT_THAT(answer.out, ContainsRegex("^weft [0-9]+\\.[0-9]+\\.[0-9]+ \\(commit [0-9a-z-]+\\)"));
}

TEST(Commands, NoCommandIsRefusedWithOneSentence) { expect_refused(weft({})); }

TEST(Commands, AnUnknownCommandIsRefusedByName) {
  const Answer answer = weft({"weave"});
  expect_refused(answer);
  EXPECT_THAT(answer.err, HasSubstr("weave"));
}

TEST(Commands, AnUnknownOptionIsRefusedByName) {
  const Answer answer = weft({"--colour"});
  expect_refused(answer);
  EXPECT_THAT(answer.err, HasSubstr("--colour"));
}

// Walks the table: every command explains itself, shows an example, and refuses what it does not know.
TEST(Commands, EveryCommandHasHelpWithAnExampleAndRefusesUnknownOptions) {
  for (const Command& command : commands()) {
    SCOPED_TRACE(command.name);
    const Answer help = weft({command.name, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, HasSubstr("weft " + std::string(command.name)));
    EXPECT_THAT(help.out, HasSubstr("Example"));
    expect_refused(weft({command.name, "--no-such-option"}));
  }
}

TEST(Commands, HelpListsEveryCommandOfTheTable) {
  const Answer help = weft({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const Command& command : commands()) EXPECT_THAT(help.out, HasSubstr(command.name));
}

}  // namespace
}  // namespace weft::cli
