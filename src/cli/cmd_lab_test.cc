// weft lab from outside: a tiny experiment from file to verdict, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/answer.h"
#include "cli/program.h"
#include "lab/plan.h"
#include "lab/test_folder.h"
#include "record/store.h"

namespace weft::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LabCommand : public ::testing::Test {
 protected:
  Answer lab(std::vector<std::string> args) {
    args.insert(args.begin(), "lab");
    args.insert(args.end(), {"--dir", folder_.path()});
    return answer_to(args);
  }
  Answer run_lab(std::vector<std::string> more = {}) {
    std::vector<std::string> args{"run", "lossy", "--quick", "-j", "2", "--out", folder_.file("out")};
    args.insert(args.end(), more.begin(), more.end());
    return lab(args);
  }
  Answer show(std::vector<std::string> more = {}) {
    std::vector<std::string> args{"show", "pairs", "--quick", "--out", folder_.file("out")};
    args.insert(args.end(), more.begin(), more.end());
    return lab(args);
  }
  const lab::TestFolder folder_{::testing::TempDir()};
};

TEST_F(LabCommand, ListsExperimentsClaimsAndRuns) {
  const Answer a = lab({"list"});
  EXPECT_EQ(a.code, 0);
  EXPECT_THAT(a.out, HasSubstr("lossy       pairs  12     12      16    Loss on a link"));
  EXPECT_THAT(a.out, HasSubstr("claims: better"));
  EXPECT_THAT(lab({"list", "--json"}).out, HasSubstr("\"runs_full\": 16"));
}

// From nothing to a verdict, and again without running.
TEST_F(LabCommand, RunsShowsAndResumes) {
  const Answer first = run_lab();
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("12 runs executed"));
  EXPECT_THAT(first.err, HasSubstr("0 were in"));
  for (const char* word : {"Loss on a link", "loss=5%", "goodput, irn over roce, mean", "reproduced",
                           "1 reproduced, 0 compatible"})
    EXPECT_THAT(first.out, HasSubstr(word));
  for (const char* file : {"out/lab.db", "out/lossy/quick/values.csv", "out/lossy/quick/verdict.json",
                           "out/lossy/quick/goodput.csv"})
    EXPECT_TRUE(std::filesystem::exists(folder_.file(file))) << file;
  const Answer second = run_lab({"--require", "reproduced"});
  EXPECT_EQ(second.code, 0);
  EXPECT_THAT(second.err, HasSubstr("0 runs executed"));
  EXPECT_EQ(second.out, first.out);
  const Answer shown = show();
  EXPECT_EQ(shown.code, 0);
  EXPECT_EQ(first.out.substr(0, shown.out.size()), shown.out);
  EXPECT_THAT(show({"--json"}).out, HasSubstr("\"verdict\": \"reproduced\""));
}

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What was run at the size quick only is shown as such; decide, once it is there, takes its place.
TEST_F(LabCommand, ReportAndDocumentShowTheBestSizeThereIs) {
  ASSERT_EQ(run_lab().code, 0);
  const auto report = [&] {
    const Answer a = lab({"report", folder_.file("page.html"), "--out", folder_.file("out")});
    EXPECT_EQ(a.code, 0) << a.err;
    EXPECT_THAT(a.out, HasSubstr("1 reproduced"));
    return content(folder_.file("page.html"));
  };
  EXPECT_THAT(report(), HasSubstr("which decides little"));
  EXPECT_THAT(content(folder_.file("page.json")), HasSubstr("\"size\": \"quick\""));
  ASSERT_EQ(lab({"run", "lossy", "--out", folder_.file("out"), "-j", "2"}).code, 0);
  const std::string page = report();
  EXPECT_THAT(page, Not(HasSubstr("which decides little")));
  for (const char* word :
       {"data-verdict='reproduced'", "weft lab run lossy", "class='band'", "network.loss=5%"})
    EXPECT_THAT(page, HasSubstr(word));

  const std::string md = ".md";
  folder_.write("notes/results" + md, "## Where we differ\n\nNowhere.\n");
  folder_.write("notes/changes.toml",
                "first_run = 'x'\n[[change]]\nwhat = 'a | b'\neffect = 'none'\nstates = ['s']\n");
  const Answer d = lab({"document", folder_.file("docs"), "pairs", "--out", folder_.file("out")});
  EXPECT_EQ(d.code, 0) << d.err;
  const std::string text = content(folder_.file("docs/RESULTS.md"));
  for (const char* word :
       {"| [better](results/lossy", "build/weft lab run pairs\n", "Nowhere.", "| a \\| b | none |",
        "![better](results/better.svg)", "experiments at the size decide"})
    EXPECT_THAT(text, HasSubstr(word));
  // The table comes before anything that explains it.
  EXPECT_LT(text.find("| [better]"), text.find("Where we differ"));
  EXPECT_THAT(content(folder_.file("docs/results/lossy" + md)), HasSubstr("## Every value"));
  EXPECT_THAT(content(folder_.file("docs/results/better.svg")), HasSubstr("</svg>"));
}

// Two points of two variants: 3 seeds at one and 2 at the other; who asks for 4 has them at both.
TEST_F(LabCommand, SeedsThatAreAskedForAreThoseOfEveryPoint) {
  std::string head = lab::TestFolder::kHead;
  head.insert(head.find("[[plot]]"), "[axis.point.size.quick]\nseeds = 2\n");
  folder_.write("lossy.toml", head + lab::TestFolder::kClaim);
  EXPECT_THAT(run_lab().err, HasSubstr("10 runs executed"));
  EXPECT_THAT(run_lab({"--seeds", "4"}).err, HasSubstr("6 runs executed"));
}

// Interrupted with three of four seeds whole, it is shown with three.
TEST_F(LabCommand, AnInterruptedExperimentIsShownWithItsWholeSeeds) {
  ASSERT_EQ(lab({"run", "lossy", "--full", "--seeds", "3", "--out", folder_.file("out"), "-j", "2"}).code, 0);
  const Answer a = lab({"report", folder_.file("page.html"), "--full", "--out", folder_.file("out")});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_THAT(a.out, HasSubstr("1 reproduced"));
  EXPECT_THAT(content(folder_.file("page.html")), HasSubstr("seeds 1 to 3"));
}

// The record of a folder, as if another simulator had made it.
void hand_over(const std::string& from, const std::string& to, const std::string& simulator) {
  const auto before = record::Store::open_existing(from);
  auto after = record::Store::open(to);
  auto cells = before->cells("lossy");
  for (record::Cell& c : *cells) {
    auto run = before->find(c.key);
    record::Run r = run->value();
    r.simulator = c.simulator = simulator;
    r.key = c.key = lab::run_key(r.configuration, r.seed, simulator);
    ASSERT_TRUE(after->add(r));
  }
  ASSERT_TRUE(after->add(*cells));
}

// What no simulator of today has run is shown as another left it, and says whose runs those are; but only
// while the experiment is what that one ran.
TEST_F(LabCommand, RunsOfAnotherSimulatorStandInAndSaySo) {
  ASSERT_EQ(run_lab().code, 0);
  const std::string other = folder_.file("other.db");
  hand_over(folder_.file("out/lab.db"), other, "0123abcd");
  const auto report = [&] {
    const Answer a = lab({"report", folder_.file("page.html"), "--db", other});
    EXPECT_EQ(a.code, 0) << a.err;
    return a.out;
  };
  EXPECT_THAT(report(), HasSubstr("1 reproduced"));
  EXPECT_THAT(content(folder_.file("page.html")), HasSubstr("simulator 0123abcd"));
  EXPECT_THAT(content(folder_.file("page.json")), HasSubstr("\"simulator\": \"0123abcd\""));
  ASSERT_EQ(lab({"document", folder_.file("docs"), "pairs", "--db", other}).code, 0);
  EXPECT_THAT(content(folder_.file("docs/RESULTS.md")), HasSubstr("simulator 0123abcd"));
  // Its own runs go before another's.
  ASSERT_EQ(run_lab({"--db", other}).code, 0);
  report();
  EXPECT_THAT(content(folder_.file("page.html")), Not(HasSubstr("0123abcd")));

  const std::string third = folder_.file("third.db");
  hand_over(folder_.file("out/lab.db"), third, "0123abcd");
  folder_.write(
      "scenarios/pair.toml",
      "hosts = 2\n[network]\nrate = \"25Gbps\"\n[transport]\nmode = \"irn\"\n[[flow]]\ncount = 50\n");
  const Answer a = lab({"report", folder_.file("page.html"), "--db", third});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_THAT(a.out, HasSubstr("1 incomplete"));
}

TEST_F(LabCommand, QuickSaysThatItDecidesLittle) {
  EXPECT_THAT(run_lab().out, HasSubstr("decides little"));
  EXPECT_THAT(lab({"run", "lossy", "--out", folder_.file("out"), "-j", "2"}).out,
              Not(HasSubstr("decides little")));
}

TEST_F(LabCommand, AMissedRequirementHasItsExitCode) {
  folder_.write(
      "lossy.toml",
      std::string(lab::TestFolder::kHead) +
          "[[claim]]\nid = 'c'\nstatement = 's'\npaper = '1000x'\nwhy = 'nobody could'\n"
          "reproduced = '> 1000'\ntrend = '> 1'\n[[claim.measure]]\nmetric = 'goodput'\nof = 'irn'\nover = "
          "'roce'\nreduce = 'mean'\nat = { loss = '5%' }\n");
  const Answer a = run_lab({"--require", "reproduced"});
  EXPECT_EQ(a.code, 3) << a.err;
  EXPECT_THAT(a.out, HasSubstr("trend reproduced"));
  EXPECT_THAT(a.out, HasSubstr("nobody could"));
  EXPECT_EQ(show({"--require", "trend"}).code, 0);
  EXPECT_EQ(show({"--require", "reproduced"}).code, 3);
}

// Incomplete is below every requirement, and nothing is run by `show`.
TEST_F(LabCommand, ShowRunsNothing) {
  std::filesystem::create_directories(folder_.file("out"));
  EXPECT_EQ(run_lab({"--seeds", "1"}).code, 0);
  const Answer a = show({"--require", "trend"});
  EXPECT_EQ(a.code, 3);
  EXPECT_THAT(a.out, HasSubstr("not run yet"));
  EXPECT_THAT(show({"--seeds", "1"}).out, HasSubstr("one seed: fewer than 3 decide nothing"));
}

// `weft sim --db` adds to the same record: the lab finds the run there.
TEST_F(LabCommand, WhatIsOnlyComputedNeedsNoRecord) {
  std::ofstream(folder_.file("computed.toml")) << R"(
title = "Numbers"
group = "numbers"
[[claim]]
id = "bdp"
statement = "s"
paper = "p"
[[claim.measure]]
account = "irn-bdp"
reproduced = [118, 122]
)";
  const Answer a = lab({"show", "computed", "--out", folder_.file("nowhere")});
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_THAT(a.out, HasSubstr("reproduced"));
}

TEST_F(LabCommand, SimAddsToTheRecord) {
  std::filesystem::create_directories(folder_.file("out"));
  const Answer sim = answer_to({"sim", folder_.file("scenarios/pair.toml"), "--set", "flow.count=20", "--set",
                                "network.loss=5%", "--seed", "2", "--db", folder_.file("out/lab.db")});
  EXPECT_EQ(sim.code, 0) << sim.err;
  const Answer a = run_lab();
  EXPECT_THAT(a.err, HasSubstr("11 runs executed"));
  EXPECT_THAT(a.err, HasSubstr("1 were in"));
}

TEST_F(LabCommand, RecordsOfOtherSimulatorsAreNamed) {
  EXPECT_EQ(run_lab().code, 0);
  const Answer a = show({"--simulator", "0123"});
  EXPECT_EQ(a.code, 2);
  EXPECT_THAT(a.err, HasSubstr("--simulator: '0123' made no run of this record; there are runs of " +
                               simulator_id()));
  const Answer same = lab({"compare", folder_.file("out/lab.db"), folder_.file("out/lab.db")});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("0 of 6 metrics"));
}

TEST_F(LabCommand, RefusesWithOneSentence) {
  const std::string out = folder_.file("out");
  for (const auto& [args, sentence] : std::vector<std::pair<std::vector<std::string>, const char*>>{
           {{"run", "nothing"}, "no experiment or group 'nothing'; there are lossy, pairs"},
           {{"run"}, "NAME is required; see weft lab run --help"},
           {{"run", "lossy", "--quick", "--full"}, "excludes"},
           {{"run", "lossy", "--seeds", "0", "--out", out}, "--seeds: '0'"},
           {{"run", "lossy", "--require", "luck"}, "--require"},
           {{"run", "lossy", "--out", "/dev/null/x"}, "--out: the folder"},
           {{"run", "lossy", "--out", ""}, "--out: it is followed by nothing"},
           {{"run", "lossy", "-j", "abc", "--out", out}, "-j: 'abc' is not a whole number from 0 to 1024"},
           {{"run", "lossy", "-j", "99999999", "--out", out},
            "-j: '99999999' is not a whole number from 0 to 1024"},
           {{"show", "lossy", "--db", "/nonexistent.db"}, "there is no run record '/nonexistent.db'"},
           {{"compare", "/nonexistent.db", "x.db"}, "there is no run record '/nonexistent.db'"},
           {{"report", "page.txt"}, "must end in .html"},
           {{"report", "page.html", "--db", "/nonexistent.db"}, "there is no run record '/nonexistent.db'"},
           {{"document", "x"}, "NAME"},
           {{"compare", "a.db"}, "RECORD"}}) {
    const Answer a = lab(args);
    EXPECT_EQ(a.code, 2) << sentence;
    EXPECT_THAT(a.err, HasSubstr(sentence));
    EXPECT_EQ(std::count(a.err.begin(), a.err.end(), '\n'), 1) << a.err;
    EXPECT_EQ(a.out, "");
  }
  EXPECT_THAT(answer_to({"lab", "list", "--dir", "/nonexistent"}).err,
              HasSubstr("'/nonexistent' holds no experiments"));
}

TEST(PairPlot, DrawsGoodputAgainstLoss) {
  const std::string svg = ::testing::TempDir() + "weft-pair-plot.svg";
  const Answer a =
      answer_to({"pair", "--modes", "roce,irn", "--loss", "0,1%", "--count", "50", "--plot", svg});
  std::ifstream csv(::testing::TempDir() + "weft-pair-plot.csv");
  const std::string text((std::istreambuf_iterator<char>(csv)), std::istreambuf_iterator<char>());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_THAT(text, HasSubstr("irn,1,1,1%"));
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_THAT(a.out, HasSubstr(svg + " is drawn"));
  EXPECT_GT(std::filesystem::file_size(svg), 1000U);
  EXPECT_EQ(answer_to({"pair", "--plot", "x.png"}).code, 2);
  // Before anything runs, not after.
  const Answer nowhere = answer_to({"pair", "--plot", "/nonexistent/x.svg"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_EQ(nowhere.out, "");
  EXPECT_THAT(nowhere.err, HasSubstr("--plot: there is no folder '/nonexistent'"));
  const Answer unwritable = answer_to({"pair", "--plot", "/proc/x.svg"});
  EXPECT_EQ(unwritable.code, 2);
  EXPECT_EQ(unwritable.out, "");
  EXPECT_THAT(unwritable.err, HasSubstr("--plot: '/proc/x.svg' cannot be written"));
  EXPECT_THAT(answer_to({"pair", "--plot", ""}).err, HasSubstr("--plot: it is followed by nothing"));
  for (const char* end : {".svg", ".csv"})
    std::filesystem::remove(::testing::TempDir() + "weft-pair-plot" + end);
}

}  // namespace
}  // namespace weft::cli
