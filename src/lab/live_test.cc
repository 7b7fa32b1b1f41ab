// Runs that measure this machine: a command's JSON becomes values and verdicts. The command is a script here.
#include "lab/live.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

#include "lab/account.h"
#include "lab/session.h"
#include "lab/test_folder.h"

namespace weft::lab {
namespace {

using ::testing::HasSubstr;

constexpr const char* kMeasured =
    "title = 'What a layer costs'\ngroup = ['own']\nlive = 'channel'\n"
    "[size.quick]\nseeds = 3\nset = ['turns=2']\n[size.decide]\nseeds = 3\n[size.full]\nseeds = 3\n"
    "[[metric]]\nname = 'time'\nvalue = 'latency.us'\nunit = 'us'\n"
    "[[variant]]\nname = 'soft NIC'\n"
    "[[axis]]\nname = 'size'\n[[axis.point]]\nlabel = 'small'\nset = ['size=64']\n"
    "[[claim]]\nid = 'fast'\nstatement = 'It is fast'\npaper = 'fast'\nreproduced = '<= 6'\n"
    "[[claim.measure]]\nmetric = 'time'\nof = 'soft NIC'\n";

class Live : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("measured.toml", kMeasured);
    auto all = read_experiments(folder_.path(), "quick");
    ASSERT_TRUE(all) << all.error().message;
    experiments_ = std::move(*all);
    program_.weft = folder_.file("weft");
  }
  // What `weft` does from now on.
  void script(const std::string& lines) const {
    folder_.write("weft", "#!/bin/sh\n" + lines);
    ASSERT_EQ(chmod(folder_.file("weft").c_str(), 0700), 0);
  }
  using Execute = std::function<PoolEnd(const std::vector<std::string>&, const PoolCalls&)>;
  Ran run_now(
      const std::vector<std::string>& names = {"measured"},
      Execute execute = [](const auto& pieces, const PoolCalls& calls) {
        return run_pool(pieces, 2, calls);
      }) {
    auto chosen = choose(experiments_, names, "quick", 0, program_.simulator, program_.live);
    EXPECT_TRUE(chosen) << chosen.error().message;
    chosen_ = std::move(*chosen);
    RunOptions o;
    o.execute = std::move(execute);
    o.progress = [](const Progress&) {};
    o.say = [this](const std::string& sentence) { said_ += sentence + "\n"; };
    said_.clear();
    const auto ran = run(chosen_, store_, program_, o);
    EXPECT_TRUE(ran) << ran.error().message;
    return *ran;
  }
  Judgement verdict() {
    const auto samples = read_samples(chosen_[0], store_);
    EXPECT_TRUE(samples);
    measured_ = samples->at(0, 0, 0, 2).number;
    return judge(*chosen_[0].experiment, *samples, account_quantity)[0];
  }

  const TestFolder folder_{::testing::TempDir()};
  record::Store store_ = std::move(*record::Store::open(":memory:"));
  std::vector<Experiment> experiments_;
  std::vector<Chosen> chosen_;
  double measured_ = 0;  // by the second repetition
  Program program_{"sim1", "weft test", [] { return 0.0; }, "code1", ""};
  std::string said_;
};

// Settings are options, seeds are repetitions, and what the command says is what is judged.
TEST_F(Live, RunsAreACommandsJson) {
  script("echo \"$@\" >> $0.words\necho '{\"latency\":{\"us\":5},\"host\":{\"busy\":false}}'\n");
  EXPECT_EQ(run_now().executed, 3U);
  EXPECT_EQ(command_of(chosen_[0].runs[0]), "weft bench channel --json --turns=2 --size=64");
  EXPECT_EQ(verdict().verdict, Verdict::kReproduced);
  EXPECT_EQ(measured_, 5);
  EXPECT_EQ(said_, "");
  std::ifstream in(folder_.file("weft.words"));
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "bench channel --json --turns=2 --size=64");
  EXPECT_EQ(run_now().executed, 0U) << "what is recorded is not measured again";
  program_.live = "code2";
  EXPECT_EQ(run_now().executed, 3U) << "other code is measured anew";
}

// What the shell says to soft NICs and to channels is not measured.
TEST_F(Live, RunsAreWithoutTheEnvironmentOfWeft) {
  script("env | grep ^WEFT_ > $0.env\necho '{\"latency\":{\"us\":5}}'\n");
  ASSERT_EQ(setenv("WEFT_LOSS", "1%", 1), 0);
  EXPECT_EQ(run_now().executed, 3U);
  unsetenv("WEFT_LOSS");
  std::ifstream in(folder_.file("weft.env"));
  std::string all;
  std::getline(in, all, '\0');
  EXPECT_EQ(all, "WEFT_PARAMETERS=0\n");
}

// A change of the simulator repeats no measurement, and what another code, build or machine measured is found
// under its name, and under no other.
TEST_F(Live, RunsAreNamedByWhatWasMeasuredAndWhere) {
  script("echo '{\"latency\":{\"us\":5}}'\n");
  EXPECT_EQ(run_now().executed, 3U);
  program_.simulator = "sim2";
  EXPECT_EQ(run_now().executed, 0U);
  EXPECT_EQ((*store_.find(chosen_[0].runs[0].key))->simulator, "code1");
  const auto found = recorded(*chosen_[0].experiment, store_);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().simulator, "code1");
  program_.live = "code1 elsewhere";
  chosen_ = *choose(experiments_, {"measured"}, "quick", 0, program_.simulator, program_.live);
  EXPECT_EQ(verdict().verdict, Verdict::kIncomplete);
  chosen_ = *choose(experiments_, {"measured"}, "quick", 0, "code1", "code1");
  EXPECT_EQ(verdict().verdict, Verdict::kReproduced) << "as a report takes an older one's";
}

// What a busy machine gave is no value: the claim is incomplete, and the next lab tries again.
TEST_F(Live, RunsOfABusyMachineAreRepeated) {
  script("echo '{\"latency\":{\"us\":5},\"host\":{\"busy\":true,\"waited_percent\":31.5}}'\n");
  EXPECT_EQ(run_now().faulty, 3U);
  EXPECT_THAT(said_, HasSubstr("other programs had 31.5 % of the ends' cores"));
  EXPECT_THAT(said_, HasSubstr("weft bench channel --json --turns=2 --size=64"));
  EXPECT_EQ(verdict().verdict, Verdict::kIncomplete);
  EXPECT_THAT(verdict().because, HasSubstr("repeat it when it is quiet"));
  script("echo '{\"latency\":{\"us\":5},\"host\":{\"busy\":false}}'\n");
  EXPECT_EQ(run_now().executed, 3U);
  EXPECT_EQ(verdict().verdict, Verdict::kReproduced);
}

// Where nothing can be measured the claim is incomplete, in the command's words; the next lab tries again.
TEST_F(Live, RunsThatCannotBeAreSaidAndTriedAgain) {
  script("echo 'weft: the drop-in libibverbs.so.1 is not there.' >&2\nexit 2\n");
  EXPECT_EQ(run_now().faulty, 3U);
  EXPECT_EQ(verdict().verdict, Verdict::kIncomplete);
  EXPECT_THAT(verdict().because, HasSubstr("the drop-in libibverbs.so.1 is not there"));
  script("echo 'no JSON'\n");
  EXPECT_EQ(run_now().faulty, 3U);
  program_.weft = folder_.file("nowhere");
  EXPECT_EQ(run_now().faulty, 3U);
  EXPECT_THAT(said_, HasSubstr("cannot start '" + program_.weft + "': No such file"));
  program_.weft = folder_.file("weft");
  script("kill -9 $$\n");
  EXPECT_EQ(run_now().faulty, 3U);
  EXPECT_THAT(said_, HasSubstr("was killed by signal 9"));
  script("echo '{\"latency\":{\"us\":7}}'\n");
  EXPECT_EQ(run_now().executed, 3U);
  EXPECT_EQ(verdict().verdict, Verdict::kNot);
}

// Measurements wait for simulations and for each other.
TEST_F(Live, RunsHaveTheMachineToThemselves) {
  script(
      "test -e $0.simulated || echo early >> $0.words\n"
      "mkdir $0.alone || echo together >> $0.words\nsleep 0.05\nrmdir $0.alone\n"
      "echo '{\"latency\":{\"us\":5}}'\n");
  std::size_t simulations = 0;
  const Ran ran = run_now({"pairs", "measured"}, [&](const auto& pieces, const PoolCalls& calls) {
    simulations = pieces.size();
    const PoolEnd end = run_pool(pieces, 2, calls);
    folder_.write("weft.simulated", "");
    return end;
  });
  EXPECT_EQ(simulations, 12U);
  EXPECT_EQ(ran.executed, 15U);
  EXPECT_FALSE(std::filesystem::exists(folder_.file("weft.words")));
}

TEST_F(Live, ExperimentsNameABenchmarkAndNoScenario) {
  std::string text = kMeasured;
  folder_.write("measured.toml", "base = 'pair.toml'\n" + text);
  EXPECT_THAT(read_experiments(folder_.path(), "quick").error().message, HasSubstr("'base' and 'live'"));
  text.replace(text.find("'channel'"), 9, "'nothing'");
  folder_.write("measured.toml", text);
  EXPECT_THAT(read_experiments(folder_.path(), "quick").error().message,
              HasSubstr("live: there is no 'nothing'; there are channel"));
}

}  // namespace
}  // namespace weft::lab
