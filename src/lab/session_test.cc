// Runs and their record: what is there is not run again, what dies takes nothing else with it.
#include "lab/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/account.h"
#include "lab/compare.h"
#include "lab/page.h"
#include "lab/test_folder.h"
#include "record/reading.h"

namespace weft::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Program kProgram{"sim1", "weft test", [] { return 0.0; }};

class SessionTest : public ::testing::Test {
 protected:
  void read() {
    auto all = read_experiments(folder_.path(), "quick");
    ASSERT_TRUE(all) << all.error().message;
    experiments_ = std::move(*all);
  }
  void SetUp() override { read(); }
  std::vector<Chosen> chosen(const std::string& simulator = "sim1", std::uint32_t seeds = 0) {
    auto c = choose(experiments_, {"pairs"}, "quick", seeds, simulator);
    EXPECT_TRUE(c) << c.error().message;
    return std::move(*c);
  }
  record::Store store(const std::string& name = "lab.db") {
    return std::move(*record::Store::open(folder_.file(name)));
  }
  Ran run_now(record::Store& s, const std::vector<Chosen>& c, bool fresh = false,
              const Program& program = kProgram) {
    RunOptions o;
    o.fresh = fresh;
    o.execute = [](const auto& pieces, const PoolCalls& calls) { return run_pool(pieces, 2, calls); };
    o.progress = [](const Progress&) {};
    o.say = [this](const std::string& sentence) { said_ += sentence + "\n"; };
    const auto ran = run(c, s, program, o);
    EXPECT_TRUE(ran) << ran.error().message;
    return *ran;
  }
  const TestFolder folder_{::testing::TempDir()};
  std::vector<Experiment> experiments_;
  std::string said_;
};

TEST_F(SessionTest, WhatIsRecordedIsNotRunAgain) {
  auto s = store();
  EXPECT_EQ(run_now(s, chosen()).executed, 12U);
  const Ran again = run_now(s, chosen());
  EXPECT_EQ(again.executed, 0U);
  EXPECT_EQ(again.present, 12U);
  EXPECT_EQ(run_now(s, chosen("sim1", 4)).executed, 4U) << "one more seed is four more runs";
  EXPECT_EQ(run_now(s, chosen(), true).executed, 12U) << "fresh";
  EXPECT_EQ(run_now(s, chosen("sim2"), false, {"sim2", "", kProgram.seconds}).executed, 12U)
      << "another simulator's runs are others";
  EXPECT_EQ(said_, "");
}

// Three seeds of four at one of two points; a record that has no others is whole.
TEST_F(SessionTest, APointMayHaveFewerSeeds) {
  std::string head = TestFolder::kHead;
  head.resize(head.find("[[plot]]"));
  folder_.write("lossy.toml", head +
                                  "[[axis]]\nname = 'count'\n[[axis.point]]\nlabel = 'few'\n"
                                  "[[axis.point]]\nlabel = 'many'\nset = ['flow.count=30']\n"
                                  "[axis.point.size.quick]\nseeds = 3\n" +
                                  TestFolder::kClaim);
  read();
  auto s = store();
  auto c = chosen("sim1", 4);
  EXPECT_EQ(run_now(s, c).executed, 28U)
      << "four runs of a seed at two points, and three seeds at one of them";
  const auto samples = read_samples(c[0], s);
  ASSERT_TRUE(samples);
  keep_complete_seeds(c[0], *samples);
  EXPECT_EQ(c[0].seeds, 4U);
}

TEST_F(SessionTest, ExperimentsShareRuns) {
  folder_.write("again.toml", std::string(TestFolder::kHead) + TestFolder::kClaim);
  read();
  auto s = store();
  EXPECT_EQ(chosen().size(), 2U);
  EXPECT_EQ(run_now(s, chosen()).executed, 12U);
}

// One is simulated, and both cells have its values.
TEST_F(SessionTest, CellsThatDifferInWhatNothingReadsShareARun) {
  folder_.write("unread.toml",
                "title = 'Waits'\nfamily = 'pairs'\ngroup = ['waits']\nvariants = ['irn', 'roce']\n"
                "[[axis]]\nname = 'rto'\n"
                "[[axis.point]]\nlabel = 'x1'\nset = ['network.loss=0%', 'transport.timeouts=false']\n"
                "[[axis.point]]\nlabel = 'x4'\nset = ['network.loss=0%', 'transport.timeouts=false', "
                "'transport.rto_high=5ms']\n"
                "[[claim]]\nid = 'waits'\nstatement = 's'\npaper = 'p'\nreproduced = '> 0'\n"
                "[[claim.measure]]\nmetric = 'goodput'\nof = 'irn'\nover = 'roce'\n");
  read();
  auto c = choose(experiments_, {"waits"}, "quick", 0, "sim1");
  ASSERT_TRUE(c) << c.error().message;
  auto s = store();
  EXPECT_EQ(run_now(s, *c).executed, 6U) << "two variants, three seeds, one of two points";
  const auto samples = read_samples(c->at(0), s);
  ASSERT_TRUE(samples);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    EXPECT_EQ(samples->at(0, 0, 1, seed).missing, "");
    EXPECT_EQ(samples->at(0, 0, 0, seed).number, samples->at(0, 0, 1, seed).number);
  }
  // A reader of the report sees which cells they are.
  const Rows rows = setting_rows({&c->at(0), *samples, {}, "sim1"});
  ASSERT_GE(rows.size(), 2U);
  const Rows last(rows.end() - 2, rows.end());
  EXPECT_THAT(last, ElementsAre(ElementsAre("irn at rto=x4", "one run with irn at rto=x1"),
                                ElementsAre("roce at rto=x4", "one run with roce at rto=x1")));
  EXPECT_NE(rows[rows.size() - 3].at(1).substr(0, 7), "one run") << "the first of each is its own";
}

// A record that was made before has both cells, each under every setting that was stated.
TEST_F(SessionTest, OlderRecordsKnowRunsByEverySetting) {
  auto s = store();
  auto c = chosen();
  for (Planned& p : c[0].runs) {
    p.stated = "stated " + p.key;
    record::Run r = *simulate(p, kProgram);
    r.key = p.stated;
    ASSERT_TRUE(s.add(r));
  }
  EXPECT_EQ(run_now(s, c).executed, 0U);
  const auto samples = read_samples(c[0], s);
  ASSERT_TRUE(samples);
  EXPECT_EQ(samples->at(0, 0, 0, 1).missing, "");
  const auto cells = s.cells(c[0].experiment->name);
  ASSERT_TRUE(cells);
  for (const record::Cell& cell : *cells)
    EXPECT_TRUE(*s.find(cell.key)) << "no cell names a run that is not there";
}

// Samples are what `weft sim` measures of the same scenario.
TEST_F(SessionTest, SamplesAreTheRunsMetrics) {
  auto s = store();
  const auto c = chosen();
  run_now(s, c);
  const auto samples = read_samples(c[0], s);
  ASSERT_TRUE(samples);
  for (const Planned& p : c[0].runs) {
    const auto alone = simulate(p, kProgram);
    ASSERT_TRUE(alone);
    EXPECT_EQ(alone->key, p.key) << "a run and its plan resolve to the same configuration";
    const auto reading = record::Reading::parse(alone->result);
    const Samples::Value& v = samples->at(0, p.variant, p.point, p.seed);
    EXPECT_EQ(v.missing, "");
    EXPECT_EQ(v.number, *reading->number("flows.0.goodput_gbps"));
    EXPECT_GT(v.number, 0);
  }
}

// The whole lab is killed after its first runs; the next one runs the rest.
TEST_F(SessionTest, AKilledLabContinues) {
  const auto c = chosen();
  const pid_t lab = fork();
  if (lab == 0) {
    auto s = store();
    RunOptions o;
    o.execute = [](const auto& pieces, const PoolCalls& calls) {
      PoolCalls slow = calls;
      slow.done = [&](std::size_t i, const ChildResult& outcome) {
        const bool more = calls.done(i, outcome);
        if (i == 4) kill(getpid(), SIGKILL);
        return more;
      };
      return run_pool(pieces, 1, slow);
    };
    o.progress = [](const Progress&) {};
    o.say = [](const std::string&) {};
    (void)run(c, s, kProgram, o);
    _exit(0);
  }
  int status = 0;
  waitpid(lab, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  auto s = store();
  EXPECT_EQ(*s.runs(), 5U);
  const Ran rest = run_now(s, c);
  EXPECT_EQ(rest.present, 5U);
  EXPECT_EQ(rest.executed, 7U);
}

// Ctrl-C: what was done is kept, what runs is not.
TEST_F(SessionTest, AnInterruptEndsTheLabInOrder) {
  const auto c = chosen();
  auto s = store();
  RunOptions o;
  o.execute = [](const auto& pieces, const PoolCalls& calls) {
    PoolCalls interrupted = calls;
    interrupted.done = [&](std::size_t i, const ChildResult& outcome) {
      const bool more = calls.done(i, outcome);
      if (i == 2) kill(getpid(), SIGINT);
      return more;
    };
    return run_pool(pieces, 1, interrupted);
  };
  o.progress = [](const Progress&) {};
  o.say = [](const std::string&) {};
  const auto ran = run(c, s, kProgram, o);
  ASSERT_TRUE(ran);
  EXPECT_TRUE(ran->interrupted);
  const std::uint64_t kept = *s.runs();
  EXPECT_GE(kept, 3U);
  EXPECT_LT(kept, 12U);
  EXPECT_EQ(run_now(s, c).executed, 12U - kept);
}

// A run whose process dies is named with the command that repeats it; the others are recorded.
TEST_F(SessionTest, AChildThatDiesTakesItsRunOnly) {
  const auto c = chosen();
  auto s = store();
  RunOptions o;
  o.execute = [](const auto& pieces, const PoolCalls& calls) {
    PoolCalls deadly = calls;
    deadly.work = [&](const std::string& piece) {
      if (piece == pieces[3]) kill(getpid(), SIGSEGV);
      return calls.work(piece);
    };
    return run_pool(pieces, 2, deadly);
  };
  o.progress = [](const Progress&) {};
  o.say = [this](const std::string& sentence) { said_ += sentence; };
  const auto ran = run(c, s, kProgram, o);
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->died, 1U);
  EXPECT_EQ(*s.runs(), 11U);
  EXPECT_THAT(said_, HasSubstr("weft sim "));
  EXPECT_THAT(
      said_,
      HasSubstr("pair.toml --set flow.count=20 --set network.loss=5% --set transport.mode=roce --seed 1"));
  EXPECT_EQ(judge(experiments_[0], *read_samples(c[0], s), account_quantity)[0].verdict,
            Verdict::kIncomplete);
}

// Half of the packets are lost and requests fail: the run is kept, so that it is not run again, and its
// results are not used.
TEST_F(SessionTest, AFaultyRunIsKeptAndNotUsed) {
  folder_.write("lossy.toml", std::string("title = 'x'\nfamily = 'pairs'\nvariants = ['irn']\n") +
                                  "[[variant]]\nname = 'bad'\nset = ['transport.mode=roce', "
                                  "'network.loss=90%', 'transport.retry_count=1']\n"
                                  "[[claim]]\nid = 'c'\nstatement = 's'\npaper = 'p'\ntrend = '> 1'\n"
                                  "[[claim.measure]]\nmetric = 'goodput'\nof = 'irn'\nover = 'bad'\n");
  read();
  auto s = store();
  const auto c = chosen();
  const Ran ran = run_now(s, c);
  EXPECT_EQ(ran.faulty, 3U);
  EXPECT_THAT(said_, HasSubstr("flows failed: weft sim "));
  EXPECT_EQ(run_now(s, c).executed, 0U);
  EXPECT_EQ(run_now(s, c).faulty, 3U);
  const auto j = judge(experiments_[0], *read_samples(c[0], s), account_quantity);
  EXPECT_EQ(j[0].verdict, Verdict::kIncomplete);
  EXPECT_THAT(j[0].because, HasSubstr("of bad:"));
}

// Its flows did not all end: what grows with their time was at least that, and anything else is not known.
TEST_F(SessionTest, ARunThatWasCutOffGivesOnlyLowerBounds) {
  folder_.write("families/pairs.toml",
                std::string(TestFolder::kFamily) +
                    "[[metric]]\nname = 'time'\nvalue = 'flows.0.latency_us_p99'\ngrows = true\n");
  read();
  auto s = store();
  const auto c = chosen();
  run_now(s, c);
  for (const Planned& p : c[0].runs) {
    record::Run r = **s.find(p.key);
    const std::string whole = "\"cut_off\": 0";
    const std::size_t at = r.result.rfind(whole);
    ASSERT_NE(at, std::string::npos);
    r.result.replace(at, whole.size(), "\"cut_off\": 2");
    ASSERT_TRUE(s.add(r));
  }
  const auto samples = read_samples(c[0], s);
  ASSERT_TRUE(samples);
  EXPECT_THAT(samples->at(0, 0, 0, 1).missing, HasSubstr("seed 1 of irn was cut off"));
  const Samples::Value& time = samples->at(2, 0, 0, 1);
  EXPECT_EQ(time.missing, "");
  EXPECT_TRUE(time.at_least);
}

TEST_F(SessionTest, VariantsThatAreTheSameAreRefused) {
  folder_.write("lossy.toml", std::string(TestFolder::kHead) +
                                  "[[variant]]\nname = 'irn2'\nset = ['transport.mode=irn']\n" +
                                  TestFolder::kClaim);
  read();
  const auto c = choose(experiments_, {"lossy"}, "quick", 0, "sim1");
  ASSERT_FALSE(c);
  EXPECT_THAT(c.error().message, HasSubstr("variants 'irn' and 'irn2' resolve to the same configuration"));
}

TEST_F(SessionTest, SettingsThatScenariosDoNotHaveAreRefused) {
  folder_.write("lossy.toml", std::string(TestFolder::kHead) +
                                  "[[variant]]\nname = 'odd'\nset = ['transport.colour=red']\n" +
                                  TestFolder::kClaim);
  read();
  const auto c = choose(experiments_, {"lossy"}, "quick", 0, "sim1");
  ASSERT_FALSE(c);
  EXPECT_THAT(c.error().message, HasSubstr("variant 'odd' at loss=1%"));
  EXPECT_THAT(c.error().message, HasSubstr("transport.colour: there is no such setting"));
}

// By the second record irn's goodput is a thousandth of what it was; roce's is the same.
TEST_F(SessionTest, RecordsCompareBeyondTheirIntervals) {
  auto a = store("a.db");
  auto b = store("b.db");
  const auto c = chosen();
  run_now(a, c);
  const Program other{"sim2", "", kProgram.seconds};
  const auto d = chosen("sim2");
  run_now(b, d, false, other);
  Comparison same;
  ASSERT_TRUE(compare(experiments_, "quick", a, b, account_quantity, same));
  EXPECT_EQ(same.compared, 4U + 2U);
  EXPECT_TRUE(same.differences.empty());
  ASSERT_TRUE(compare(experiments_, "full", a, b, account_quantity, same));
  EXPECT_EQ(same.compared, 4U + 2U) << "nothing was run at that size";
  for (const Planned& p : d[0].runs) {
    if (experiments_[0].variants[p.variant].name != "irn") continue;
    record::Run r = **b.find(p.key);
    const std::string name = "\"goodput_gbps\": ";
    const std::size_t at = r.result.find(name) + name.size();
    r.result.insert(at, "0.00");
    r.result.erase(at + 4 + r.result.substr(at + 4).find('.'), 1);
    ASSERT_TRUE(b.add(r));
  }
  Comparison found;
  ASSERT_TRUE(compare(experiments_, "quick", a, b, account_quantity, found));
  std::string all;
  for (const Difference& x : found.differences) all += x.what + ": " + x.before + " -> " + x.after + "\n";
  EXPECT_THAT(all, HasSubstr("goodput, irn at loss=5%: "));
  EXPECT_THAT(all, HasSubstr("verdict of better: "));
  EXPECT_THAT(all, HasSubstr("-> not reproduced"));
  EXPECT_THAT(all, ::testing::Not(HasSubstr("goodput, roce")));
}

// Long texts, several at a time, whole.
TEST(Pool, BringsBackWhatWasComputed) {
  std::vector<std::string> pieces;
  for (int i = 0; i < 9; ++i) pieces.push_back(std::to_string(i));
  std::vector<std::size_t> sizes(9);
  PoolCalls calls;
  calls.work = [](const std::string& piece) {
    return std::string(static_cast<std::size_t>(std::stoi(piece)) * 100'000, 'x');
  };
  calls.done = [&](std::size_t i, const ChildResult& o) {
    sizes[i] = o.text.size();
    EXPECT_EQ(o.died, "");
    EXPECT_GT(o.memory, 0U);
    return true;
  };
  calls.turn = [] {};
  EXPECT_EQ(run_pool(pieces, 3, calls), PoolEnd::kAll);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(sizes[i], i * 100'000);
}

TEST(Pool, StopsWhenToldTo) {
  int done = 0;
  PoolCalls calls;
  calls.work = [](const std::string&) { return std::string(); };
  calls.done = [&](std::size_t, const ChildResult&) { return ++done < 2; };
  calls.turn = [] {};
  EXPECT_EQ(run_pool({"a", "b", "c", "d"}, 1, calls), PoolEnd::kStopped);
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace weft::lab
