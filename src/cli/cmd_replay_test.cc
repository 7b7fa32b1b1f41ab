// weft replay: a seed is shown packet by packet, as text and as a capture; mistakes are one sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "cli/answer.h"

namespace weft::cli {
namespace {

using ::testing::HasSubstr;

Answer replay(std::vector<std::string> args) {
  args.insert(args.begin(), "replay");
  return answer_to(std::move(args));
}

// Every world may be captured, those with an attacker in them, too.
TEST(ReplayCommand, WritesACaptureOfAnyWorld) {
  const std::string file = ::testing::TempDir() + "weft-replay-test.pcapng";
  for (int seed = 1; seed <= 40; ++seed) {
    const Answer a = replay({std::to_string(seed), "--quiet", "--trace", file});
    EXPECT_EQ(a.code, 0) << a.out << a.err;
    EXPECT_THAT(a.out, HasSubstr("no rule broken"));
    EXPECT_GT(std::filesystem::file_size(file), 1000U);
  }
  std::filesystem::remove(file);
}

TEST(ReplayCommand, TheSameSeedIsTheSameText) {
  const Answer once = replay({"7"});
  EXPECT_THAT(once.out, HasSubstr("psn="));
  EXPECT_EQ(once.out, replay({"7"}).out);
  EXPECT_NE(once.out, replay({"8"}).out);
}

TEST(ReplayCommand, MistakesAreOneSentence) {
  EXPECT_THAT(replay({"seven"}).err, HasSubstr("SEED: 'seven' is not a whole number"));
  EXPECT_THAT(replay({"7", "--trace", "/no/such/folder/x"}).err,
              HasSubstr("'/no/such/folder/x' cannot be written"));
  EXPECT_EQ(replay({"seven"}).code, 2);
}

}  // namespace
}  // namespace weft::cli
