// weft pair: every mode and variant carries every operation over a bad link; mistakes are one sentence
// (DESIGN §5).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

#include "cli/commands.h"

namespace weft::cli {
namespace {

using ::testing::HasSubstr;

struct Answer {
  int code;
  std::string err;
};

Answer pair(std::vector<std::string> args) {
  args.insert(args.begin(), {"pair", "--count", "20", "--json"});
  std::ostringstream out;
  std::ostringstream err;
  std::streambuf* const before_out = std::cout.rdbuf(out.rdbuf());
  std::streambuf* const before_err = std::cerr.rdbuf(err.rdbuf());
  const int code = run(std::move(args), out, err);
  std::cout.rdbuf(before_out);
  std::cerr.rdbuf(before_err);
  return {code, code == 2 ? err.str() : out.str()};
}

TEST(PairCommand, EveryModeAndVariantSurvivesEveryOperation) {
  for (const char* op : {"write", "send_imm", "read", "fetch_add"}) {
    const bool atomic = std::string(op) == "fetch_add";
    const Answer a = pair({"--loss", "0,2%", "--op", op, "--size", atomic ? "8" : "64KiB"});
    EXPECT_EQ(a.code, 0) << op << a.err;
    EXPECT_THAT(a.err, HasSubstr("irn-no-sack"));
    EXPECT_THAT(a.err, HasSubstr("srnic-stateless"));
  }
}

// A time-out of 10 us in a network of 40 us, or what is measured there.
TEST(PairCommand, TimeOutsMayBeDynamic) {
  const auto cells = [](const char* rto) {
    const Answer a = pair({"--rto", rto, "--loss", "2%", "--size", "1KiB", "--depth", "1", "--delay", "10us",
                           "--set", "transport.rto_low=10us"});
    EXPECT_EQ(a.code, 0) << a.err;
    return a.err;
  };
  EXPECT_NE(cells("static"), cells("dynamic"));
}

TEST(PairCommand, MistakesAreOneSentence) {
  EXPECT_THAT(pair({"--modes", "tcp"}).err, HasSubstr("'tcp' is not one of roce, irn, srnic"));
  EXPECT_THAT(pair({"--loss", "0,200%"}).err, HasSubstr("'200%' is not a probability"));
  EXPECT_THAT(pair({"--controller", "guess"}).err, HasSubstr("'guess'"));
  EXPECT_EQ(pair({"--mtu", "17"}).code, 2);
  EXPECT_THAT(pair({"--rto", "guess"}).err, HasSubstr("'guess' is not one of static, dynamic"));
}

}  // namespace
}  // namespace weft::cli
