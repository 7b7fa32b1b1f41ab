// What `weft run` refuses before anything starts. (What it starts is tested end to end, by running
// Debian's own verbs programs.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/commands.h"
#include "live/engine/options.h"

namespace weft::cli {
namespace {

using ::testing::HasSubstr;

// The sentence on either error stream.
std::string refused(std::vector<std::string> args) {
  args.insert(args.begin(), "run");
  std::ostringstream out;
  std::ostringstream err;
  for (const char* v : {"WEFT_ADDR", "WEFT_WIRE", "WEFT_MODE", "WEFT_LOSS", "WEFT_DELAY"}) unsetenv(v);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(args, out, err), 2);
  return err.str() + ::testing::internal::GetCapturedStderr();
}

TEST(Run, RefusesBadValuesWithTheOptionsName) {
  EXPECT_THAT(refused({"--loss", "150%", "--", "true"}), HasSubstr("--loss: '150%' is not a probability"));
  EXPECT_THAT(refused({"--addr", "here", "--", "true"}),
              HasSubstr("--addr: 'here' is not an IPv4 or IPv6 address"));
  EXPECT_THAT(refused({"--mode", "tcp", "--", "true"}),
              HasSubstr("--mode: 'tcp' is not a mode: auto, roce, irn or srnic"));
  EXPECT_THAT(refused({"--delay", "50", "--", "true"}), HasSubstr("--delay: '50' is not a time"));
  EXPECT_THAT(refused({"--wire", "radio", "--", "true"}),
              HasSubstr("--wire: 'radio' is not a wire: auto, udp, shm, packet or xdp"));
}

std::string config_of(const std::string& text) {
  const std::string file = ::testing::TempDir() + "weft-run.toml";
  std::ofstream(file) << text;
  return file;
}

TEST(Run, TakesOptionsFromAFileByTheirNames) {
  const auto with = [](const std::string& text, std::vector<std::string> more = {}) {
    std::vector<std::string> args{"--config", config_of(text)};
    args.insert(args.end(), more.begin(), more.end());
    args.insert(args.end(), {"--", "no-such-program"});
    return refused(args);
  };
  EXPECT_THAT(with("loss = '150%'"), HasSubstr("weft-run.toml, line 1: 'loss': '150%' is not a probability"));
  EXPECT_THAT(with("\nlss = '1%'"), HasSubstr("line 2: 'lss' is no option of weft run; they are addr, wire"));
  EXPECT_THAT(with("loss = [1]"), HasSubstr("'loss' must be a string, a number, true or false"));
  EXPECT_THAT(with("loss = "), HasSubstr("weft-run.toml, line 1"));
  EXPECT_THAT(refused({"--config", "/no/such", "--", "true"}), HasSubstr("--config: '/no/such'"));
  EXPECT_THAT(with("loss = '2%'\nseed = 7\nstats = true\nicrc = false"), HasSubstr("no-such-program"));
  EXPECT_STREQ(getenv("WEFT_LOSS"), "2%");
  EXPECT_STREQ(getenv("WEFT_SEED"), "7");
  EXPECT_STREQ(getenv("WEFT_STATS"), "on");
  EXPECT_STREQ(getenv("WEFT_ICRC"), "off");
  // What the command line says counts.
  with("loss = '3%'", {"--loss", "4%"});
  EXPECT_STREQ(getenv("WEFT_LOSS"), "4%");
  for (const live::Setting& s : live::settings()) unsetenv(s.variable);
}

TEST(Run, RefusesAMissingProgram) { EXPECT_THAT(refused({"--loss", "1%"}), HasSubstr("program")); }

TEST(Run, RefusesAProgramThatDoesNotExist) {
  EXPECT_THAT(refused({"--", "no-such-program"}),
              HasSubstr("'no-such-program' is not in any directory of PATH"));
  EXPECT_THAT(refused({"--", "/no/such"}), HasSubstr("'/no/such': No such file"));
}

TEST(Run, RefusesAnAddressThatIsNotOurs) {
  EXPECT_THAT(refused({"--addr", "192.0.2.7", "--", "true"}),
              HasSubstr("192.0.2.7 does not belong to this machine"));
}

// The address is loopback's unless another is named, and raw frames need an Ethernet.
TEST(Run, RefusesRawFramesWithoutAnEthernet) {
  EXPECT_THAT(refused({"--wire", "packet", "--addr", "127.3.3.3", "--", "true"}),
              HasSubstr("no frames leave a loopback address"));
  EXPECT_THAT(refused({"--wire", "xdp", "--addr", "127.3.3.3", "--", "true"}),
              HasSubstr("or take --wire udp"));
}

// Options of the program come after --; before it they are ours, and unknown.
TEST(Run, RefusesUnknownOptionsBeforeTheProgram) {
  EXPECT_THAT(refused({"--lost", "1%", "--", "true"}), HasSubstr("--lost"));
}

}  // namespace
}  // namespace weft::cli
