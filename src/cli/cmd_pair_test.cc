// weft pair: every mode and variant carries every operation over a bad link; mistakes are one sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cli/answer.h"
#include "core/transport/loss/scheme.h"

namespace weft::cli {
namespace {

using ::testing::HasSubstr;

Answer pair(std::vector<std::string> args) {
  args.insert(args.begin(), {"pair", "--count", "20", "--json"});
  return answer_to(std::move(args));
}

std::string quoted(const std::string& name) { return std::string("\"").append(name).append("\""); }

std::ptrdiff_t occurrences(const std::string& text, const std::string& what) {
  std::ptrdiff_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(PairCommand, EveryModeAndVariantSurvivesEveryOperation) {
  for (const char* op : {"write", "send_imm", "read", "fetch_add"}) {
    const bool atomic = std::string(op) == "fetch_add";
    const Answer a = pair({"--loss", "0,2%", "--op", op, "--size", atomic ? "8" : "64KiB"});
    EXPECT_EQ(a.code, 0) << op << a.err;
    EXPECT_THAT(a.out, HasSubstr("irn-no-sack"));
    EXPECT_THAT(a.out, HasSubstr("srnic-stateless"));
  }
}

// A time-out of 10 us in a network of 40 us, or what is measured there.
TEST(PairCommand, TimeOutsMayBeDynamic) {
  const auto cells = [](const char* rto) {
    const Answer a = pair({"--rto", rto, "--loss", "2%", "--size", "1KiB", "--depth", "1", "--delay", "10us",
                           "--set", "transport.rto_low=10us"});
    EXPECT_EQ(a.code, 0) << a.err;
    return a.out;
  };
  EXPECT_NE(cells("static"), cells("dynamic"));
}

// A new row of the registry needs no mention here.
TEST(PairCommand, EverySchemeIsAColumn) {
  const Answer a = pair({"--loss", "0"});
  const auto known = static_cast<std::ptrdiff_t>(loss_schemes().size());
  EXPECT_EQ(occurrences(a.out, "\"mode\""), known);
  for (const LossScheme* s : loss_schemes().subspan(wire::kModeCount))
    EXPECT_EQ(occurrences(a.out, quoted(s->name)), 1) << s->name;
}

// Several seeds are a mean with its interval; one of them alone is that run.
TEST(PairCommand, SeedsAreAveraged) {
  const auto goodput = [](const std::vector<std::string>& more) {
    std::vector<std::string> args{"--modes", "irn", "--loss", "2%"};
    args.insert(args.end(), more.begin(), more.end());
    const Answer a = pair(args);
    EXPECT_EQ(a.code, 0) << a.err;
    return a.out;
  };
  const auto number = [](const std::string& json, const std::string& name) {
    const std::size_t at = json.find(quoted(name));
    EXPECT_NE(at, std::string::npos) << name << json;
    return at == std::string::npos ? 0.0 : std::stod(json.substr(at + name.size() + 4));
  };
  const double third = number(goodput({"--seed", "3"}), "goodput_gbps");
  const double fourth = number(goodput({"--seed", "4"}), "goodput_gbps");
  EXPECT_NE(third, fourth);
  const std::string both = goodput({"--seed", "3", "--seeds", "2"});
  EXPECT_NEAR(number(both, "goodput_gbps"), (third + fourth) / 2, 1e-9);
  EXPECT_LT(number(both, "goodput_gbps_low"), std::min(third, fourth));
  EXPECT_GT(number(both, "goodput_gbps_high"), std::max(third, fourth));
  EXPECT_EQ(number(both, "seeds"), 2);
  EXPECT_GT(number(both, "resent"), 0);
}

// Nothing to divide by: a link that loses everything, messages without bytes.
TEST(PairCommand, GoodputMayBeZero) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"pair", "--loss", "100%", "--modes", "irn", "--count", "4"},
        {"pair", "--loss", "0", "--modes", "irn", "--count", "4", "--size", "0"}}) {
    ::testing::internal::CaptureStdout();
    std::ostringstream out;
    std::ostringstream err;
    const int code = run(args, out, err);
    EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("0.00 .........."));
    EXPECT_EQ(code, args[2] == "0" ? 0 : 1) << err.str();
  }
}

TEST(PairCommand, AtomicsHaveTheirSize) {
  EXPECT_THAT(pair({"--op", "fetch_add", "--modes", "irn", "--loss", "0"}).out, HasSubstr("\"size\": \"8\""));
  EXPECT_THAT(pair({"--op", "fetch_add", "--size", "16"}).err, HasSubstr("an atomic has size 8"));
}

TEST(PairCommand, MistakesAreOneSentence) {
  const std::string tcp = pair({"--modes", "tcp"}).err;
  EXPECT_THAT(tcp, HasSubstr("--modes: 'tcp' is not one of roce, "));
  EXPECT_THAT(tcp, HasSubstr(", srnic; weft sim runs it"));
  EXPECT_THAT(pair({"--modes", "go-back-n"}).err, HasSubstr("--modes: 'go-back-n'"));
  EXPECT_THAT(pair({"--loss", "0,200%"}).err, HasSubstr("weft: --loss: '200%' is not a probability"));
  EXPECT_THAT(pair({"--delay", "-1us"}).err, HasSubstr("weft: --delay: '-1us'"));
  EXPECT_THAT(pair({"--seeds", "0"}).err, HasSubstr("--seeds: '0'"));
  // What an option says is not said twice: rows and intervals would be of something else.
  EXPECT_THAT(pair({"--set", "seed=4"}).err, HasSubstr("--set: 'seed=4' is what --seed says"));
  EXPECT_THAT(pair({"--set", "network.loss=7%"}).err, HasSubstr("is what --loss says"));
  EXPECT_THAT(pair({"--set", "transport.mode=irn"}).err, HasSubstr("is what --modes says"));
  EXPECT_THAT(pair({"--modes", "roce", "--rto", "dynamic"}).err,
              HasSubstr("'dynamic' means nothing to roce"));
  EXPECT_THAT(pair({"--controller", "guess"}).err, HasSubstr("'guess'"));
  EXPECT_EQ(pair({"--mtu", "17"}).code, 2);
  EXPECT_THAT(pair({"--rto", "guess"}).err, HasSubstr("'guess' is not one of static, dynamic"));
}

}  // namespace
}  // namespace weft::cli
