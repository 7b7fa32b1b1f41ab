#include "lab/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/test_folder.h"

namespace weft::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExperimentFile : public ::testing::Test {
 protected:
  // The sentence with which an experiment file of this text is refused, or "none".
  std::string mistake(const std::string& text) {
    folder_.write("x.toml", text);
    const auto e = read_experiment(folder_.path(), "x", "quick");
    return e ? "none" : e.error().message;
  }
  std::string mistake_behind_head(const std::string& text) { return mistake(TestFolder::kHead + text); }
  std::string mistake_in_claim(const std::string& text) {
    return mistake_behind_head("[[claim]]\nid = 'c'\nstatement = 's'\npaper = 'p'\n" + text);
  }
  const TestFolder folder_{::testing::TempDir()};
};

TEST_F(ExperimentFile, HasWhatItsFamilyAndItselfSay) {
  const auto e = read_experiment(folder_.path(), "lossy", "quick");
  ASSERT_TRUE(e) << e.error().message;
  EXPECT_EQ(e->title, "Loss on a link");
  EXPECT_THAT(e->groups, ElementsAre("pairs"));
  ASSERT_EQ(e->variants.size(), 2U);
  EXPECT_THAT(e->variants[1].changes, ElementsAre("transport.mode=roce"));
  EXPECT_EQ(e->points(), 2U);
  EXPECT_EQ(point_text(*e, 1), "loss=5%");
  EXPECT_EQ(e->size("quick").seeds, 3U);
  EXPECT_EQ(e->size("full").seeds, 4U);
  ASSERT_EQ(e->claims.size(), 1U);
  const Measure& m = e->claims[0].measures.at(0);
  EXPECT_EQ(m.as, As::kRatio);
  EXPECT_EQ(m.reduce, Reduce::kMean);
  EXPECT_TRUE(m.reproduced->low_open);
  EXPECT_THAT(e->shown, ElementsAre(0U));
}

// An experiment's own word replaces its family's, field by field.
TEST_F(ExperimentFile, ChangesItsFamily) {
  folder_.write("x.toml", std::string("[size.quick]\nseeds = 9\n") + "metrics = ['again']\n");
  folder_.write("x.toml", "metrics = ['again']\n" + std::string(TestFolder::kHead) +
                              "[size.quick]\nseeds = 9\n[[variant]]\nname = 'srnic'\nset = "
                              "'transport.mode=srnic'\n" +
                              TestFolder::kClaim);
  const auto e = read_experiment(folder_.path(), "x", "quick");
  ASSERT_TRUE(e) << e.error().message;
  EXPECT_EQ(e->size("quick").seeds, 9U);
  EXPECT_THAT(e->size("quick").changes, ElementsAre("flow.count=20"));
  EXPECT_EQ(e->variants.size(), 3U);
  EXPECT_THAT(e->shown, ElementsAre(1U));
}

TEST_F(ExperimentFile, AListOfMetricsIsAMeasureForEach) {
  folder_.write("x.toml",
                std::string(TestFolder::kHead) +
                    "[[claim]]\nid = 'c'\nstatement = 's'\npaper = 'p'\nreproduced = [1, 2]\n"
                    "[[claim.measure]]\nmetric = ['goodput', 'again']\nof = 'irn'\n"
                    "at = { loss = '5%' }\n[[claim.measure]]\naccount = 'irn.bdp'\ntrend = '>= 3'\n");
  const auto e = read_experiment(folder_.path(), "x", "quick");
  ASSERT_TRUE(e) << e.error().message;
  const auto& measures = e->claims[0].measures;
  ASSERT_EQ(measures.size(), 3U);
  EXPECT_EQ(measures[1].metric, 1U);
  EXPECT_THAT(measures[1].points[0], ElementsAre(1U));
  EXPECT_EQ(measures[2].account, "irn.bdp");
  EXPECT_EQ(measures[2].reproduced->high, 2);
  EXPECT_FALSE(measures[2].trend->low_open);
}

// Large points are for large sizes; measures that name them go on without.
TEST_F(ExperimentFile, APointMayBeForSomeSizesOnly) {
  folder_.write("x.toml",
                std::string(TestFolder::kHead) +
                    "[[axis]]\nname = 'hosts'\n[[axis.point]]\nlabel = '2'\nset = 'hosts=2'\n"
                    "[[axis.point]]\nlabel = '9'\nset = 'hosts=9'\nsizes = ['full']\n"
                    "[[claim]]\nid = 'c'\nstatement = 's'\npaper = 'p'\nreproduced = [1, 2]\n"
                    "[[claim.measure]]\nmetric = 'goodput'\nof = 'irn'\nat = { hosts = ['2', '9'] }\n"
                    "[[plot]]\nname = 'p'\nmetrics = 'goodput'\nalong = 'hosts'\nat = { loss = '1%' }\n");
  // kHead's plot chooses no point of the new axis. At size quick the axis has one point, so there is nothing
  // to choose; at size full there are two, and that is a mistake.
  const auto quick = read_experiment(folder_.path(), "x", "quick");
  ASSERT_TRUE(quick) << quick.error().message;
  EXPECT_EQ(quick->points(), 2U);
  EXPECT_THAT(quick->claims[0].measures[0].points[1], ElementsAre(0U));
  EXPECT_THAT(read_experiment(folder_.path(), "x", "full").error().message,
              HasSubstr("plot 1: 'at' must choose"));
}

// What the paper states stands in the plot, at the points that this size has.
TEST_F(ExperimentFile, APlotMayShowThePapersPoints) {
  std::string head = TestFolder::kHead;
  head.resize(head.find("[[plot]]"));
  const std::string plot =
      "[[axis]]\nname = 'hosts'\n[[axis.point]]\nlabel = '2'\nset = 'hosts=2'\n"
      "[[axis.point]]\nlabel = '3'\nset = 'hosts=3'\n"
      "[[axis.point]]\nlabel = '9'\nset = 'hosts=9'\nsizes = ['full']\n"
      "[[plot]]\nname = 'p'\nmetrics = 'goodput'\nalong = 'hosts'\nvariants = ['irn']\nat = { loss = '1%' "
      "}\n";
  const auto paper = [&](const std::string& said) {
    folder_.write("x.toml", head + plot + "[[plot.paper]]\n" + said + "\n" + TestFolder::kClaim);
    return read_experiment(folder_.path(), "x", "quick");
  };
  const auto e = paper("variant = 'irn'\nmetric = 'goodput'\nat = ['3', '9']\nvalue = 97");
  ASSERT_TRUE(e) << e.error().message;
  ASSERT_EQ(e->plots[0].paper.size(), 1U);
  EXPECT_EQ(e->plots[0].paper[0].point, 1U);
  EXPECT_EQ(e->plots[0].paper[0].value, 97);
  EXPECT_THAT(paper("variant = 'roce'\nmetric = 'goodput'\nat = '3'\nvalue = 1").error().message,
              HasSubstr("plot 1, paper 1: variant: the plot does not show it"));
  EXPECT_THAT(paper("variant = 'irn'\nmetric = 'again'\nat = '3'\nvalue = 1").error().message,
              HasSubstr("metric: the plot does not show it"));
  EXPECT_THAT(paper("variant = 'irn'\nmetric = 'goodput'\nvalue = 1").error().message,
              HasSubstr("'at' is missing: points of axis 'hosts'"));
  EXPECT_THAT(paper("variant = 'irn'\nmetric = 'goodput'\nat = '4'\nvalue = 1").error().message,
              HasSubstr("at: there is no '4'"));
  EXPECT_THAT(paper("variant = 'irn'\nmetric = 'goodput'\nat = '3'\nvalue = '1'").error().message,
              HasSubstr("'value' must be a number"));
}

// A point may say more at one size, and a claim be judged at one only.
TEST_F(ExperimentFile, PointsAndClaimsMayDifferBySize) {
  std::string head = TestFolder::kHead;
  head.resize(head.find("[[plot]]"));
  const std::string rest =
      "[[axis]]\nname = 'rate'\n[[axis.point]]\nlabel = 'slow'\nset = ['network.rate=1Gbps']\n"
      "[axis.point.size.full]\nset = ['flow.count=90']\nseeds = 2\n"
      "[[axis.point]]\nlabel = 'fast'\nset = ['network.rate=2Gbps']\n"
      "[[claim]]\nid = 'late'\nstatement = 's'\npaper = 'p'\nsizes = ['full']\ntrend = '> 1'\n"
      "[[claim.measure]]\nmetric = 'goodput'\nof = 'irn'\nover = 'roce'\nbeside = 'again'\n";
  folder_.write("x.toml", head + rest + TestFolder::kClaim);
  const auto quick = read_experiment(folder_.path(), "x", "quick");
  ASSERT_TRUE(quick) << quick.error().message;
  EXPECT_THAT(quick->axes[1].points[0].changes, ElementsAre("network.rate=1Gbps"));
  EXPECT_EQ(quick->claims.size(), 1U);
  EXPECT_EQ(quick->runs(4), 32U);
  const auto full = read_experiment(folder_.path(), "x", "full");
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_THAT(full->axes[1].points[0].changes, ElementsAre("network.rate=1Gbps", "flow.count=90"));
  EXPECT_EQ(full->seeds_at(number_of(*full, {1, 0}), 4), 2U);
  EXPECT_EQ(full->seeds_at(number_of(*full, {1, 0}), 1), 1U) << "no more than were asked for";
  EXPECT_EQ(full->seeds_at(number_of(*full, {1, 1}), 4), 4U);
  EXPECT_EQ(full->runs(4), 24U) << "two variants, two points of four seeds, two of two";
  Experiment even = *full;
  even.same_seeds_everywhere();
  EXPECT_EQ(even.runs(4), 32U);
  ASSERT_EQ(full->claims.size(), 2U);
  ASSERT_EQ(full->claims[0].measures.size(), 2U);
  EXPECT_FALSE(full->claims[0].measures[0].aside);
  EXPECT_TRUE(full->claims[0].measures[1].aside);
}

TEST_F(ExperimentFile, OverMayBeMeasuredElsewhere) {
  const std::string claim = "[[claim]]\nid = 'c'\nstatement = 's'\npaper = 'p'\nreproduced = [1, 2]\n";
  folder_.write("x.toml", TestFolder::kHead + claim +
                              "[[claim.measure]]\nmetric = 'goodput'\nof = 'irn'\nover = 'irn'\n"
                              "at = { loss = '5%' }\nover_at = { loss = '1%' }\n");
  const auto e = read_experiment(folder_.path(), "x", "quick");
  ASSERT_TRUE(e) << e.error().message;
  EXPECT_THAT(e->claims[0].measures[0].over_points, ElementsAre(0U));
}

TEST_F(ExperimentFile, OfQuantitiesOnlyNeedsNoScenario) {
  folder_.write("x.toml",
                "title = 't'\ngroup = 'g'\n[[claim]]\nid = 'c'\nstatement = 's'\npaper = 'p'\n"
                "reproduced = '<= 3'\n[[claim.measure]]\naccount = 'a'\n");
  const auto e = read_experiment(folder_.path(), "x", "quick");
  ASSERT_TRUE(e) << e.error().message;
  EXPECT_TRUE(e->variants.empty());
  EXPECT_EQ(e->size("quick").seeds, 0U);
}

TEST_F(ExperimentFile, MistakesAreOneSentenceThatNamesThePlace) {
  EXPECT_THAT(mistake("title = 3"), HasSubstr("x.toml: 'title' must be a text in quotes"));
  EXPECT_THAT(mistake("title = "), HasSubstr("x.toml, line 1:"));
  EXPECT_THAT(mistake(""), HasSubstr("'title' is missing"));
  EXPECT_THAT(mistake("title = 't'\nfamily = 'none'"), HasSubstr("family: there is no file"));
  EXPECT_THAT(mistake("title = 't'\nfamily = 'pairs'\nvariants = ['tcp']"),
              HasSubstr("variants: there is no 'tcp'; there are irn, roce"));
  EXPECT_THAT(mistake_behind_head("colour = 'red'"), HasSubstr("there is no 'colour' here"));
  EXPECT_THAT(mistake_behind_head(""), HasSubstr("'claim' is missing"));
  EXPECT_THAT(mistake_behind_head("[size.huge]\nseeds = 1"), HasSubstr("no size 'huge'"));
  EXPECT_THAT(mistake_behind_head("[size.quick]\nseeds = 0"),
              HasSubstr("'seeds' must be a number from 1 to 1000"));
  EXPECT_THAT(mistake_behind_head("[size.quick]\nset = ['flow.count']"),
              HasSubstr("'flow.count' is not NAME=VALUE"));
  EXPECT_THAT(mistake_behind_head("[size.quick]\nset = ['seed=3']"), HasSubstr("seeds are chosen by"));
  EXPECT_THAT(mistake_behind_head("[[variant]]\nname = 'irn'"), HasSubstr("name 'irn' is there twice"));
  EXPECT_THAT(mistake_behind_head("[[variant]]\nname = 'v'\nbase = 'no.toml'"),
              HasSubstr("no scenario 'no.toml'"));
  EXPECT_THAT(mistake_behind_head("[[axis]]\nname = 'a'"), HasSubstr("axis 2: 'point' is missing"));
  EXPECT_THAT(mistake_behind_head("[[axis]]\nname = 'a'\n[[axis.point]]\nlabel = 'l'\nsizes = ['huge']"),
              HasSubstr("sizes: there is no 'huge'; there are quick, decide, full"));
  EXPECT_THAT(mistake_behind_head("[[axis]]\nname = 'a'\n[[axis.point]]\nlabel = 'l'\nsizes = ['full']"),
              HasSubstr("size quick has no point"));
  EXPECT_THAT(mistake_behind_head("[[metric]]\nname = 'm'\nvalue = 'a /'"), HasSubstr("metric 'a /'"));
  EXPECT_THAT(mistake_behind_head("[[plot]]\nname = 'a/b'\nmetrics = 'goodput'"),
              HasSubstr("becomes a file"));
  EXPECT_THAT(mistake_behind_head("[[plot]]\nname = 'p'\nmetrics = 'goodput'"),
              HasSubstr("'at' must choose one point of axis 'loss'"));
}

TEST_F(ExperimentFile, MistakesInClaimsAreOneSentenceThatNamesThePlace) {
  const std::string of = "[[claim.measure]]\nmetric = 'goodput'\nof = 'irn'\n";
  EXPECT_THAT(mistake_in_claim(""), HasSubstr("claim 1: 'measure' is missing"));
  EXPECT_THAT(mistake_in_claim(of), HasSubstr("claim 1, measure 1: 'reproduced' or 'trend' is missing"));
  EXPECT_THAT(mistake_in_claim("trend = '~ 1'\n" + of), HasSubstr("trend: neither two rising numbers"));
  EXPECT_THAT(mistake_in_claim("trend = [3, 2]\n" + of), HasSubstr("trend: neither two rising numbers"));
  EXPECT_THAT(mistake_in_claim("trend = '> x'\n" + of), HasSubstr("trend: neither two rising numbers"));
  const std::string t = "trend = '> 1'\n";
  EXPECT_THAT(mistake_in_claim(t + "[[claim.measure]]\nof = 'irn'"), HasSubstr("'metric' is missing"));
  EXPECT_THAT(mistake_in_claim(t + "[[claim.measure]]\nof = 'tcp'"),
              HasSubstr("of: there is no 'tcp'; there are irn, roce"));
  EXPECT_THAT(mistake_in_claim(t + "[[claim.measure]]\nof = 'irn'\nmetric = 'speed'"),
              HasSubstr("metric: there is no 'speed'; there are goodput, again"));
  EXPECT_THAT(mistake_in_claim(t + of + "over = 'irn'"), HasSubstr("the same variant"));
  EXPECT_THAT(mistake_in_claim(t + of + "over_at = { loss = '1%' }"), HasSubstr("'over_at' needs an 'over'"));
  EXPECT_THAT(mistake_in_claim(t + of + "over = 'roce'\nover_at = { loss = ['1%', '5%'] }"),
              HasSubstr("over_at: choose one point of axis 'loss'"));
  EXPECT_THAT(mistake_in_claim(t + of + "as = 'ratio'"), HasSubstr("'over' is missing"));
  EXPECT_THAT(mistake_in_claim(t + of + "as = 'value'\nover = 'roce'"), HasSubstr("needs no 'over'"));
  EXPECT_THAT(mistake_in_claim(t + of + "as = 'log'"), HasSubstr("'log' is not one of value, ratio"));
  EXPECT_THAT(mistake_in_claim(t + of + "reduce = 'increasing'"), HasSubstr("'along' names an axis"));
  EXPECT_THAT(mistake_in_claim(t + of + "along = 'loss'"), HasSubstr("'along' names an axis"));
  EXPECT_THAT(mistake_in_claim(t + of + "reduce = 'increasing'\nalong = 'loss'\nat = { loss = '1%' }"),
              HasSubstr("only one point"));
  EXPECT_THAT(mistake_in_claim(t + of + "at = { load = '1%' }"),
              HasSubstr("at: there is no 'load'; there are loss"));
  EXPECT_THAT(mistake_in_claim(t + of + "at = { loss = '2%' }"), HasSubstr("no '2%'; there are 1%, 5%"));
}

// The nearest folder above the program, as built or as installed.
TEST_F(ExperimentFile, AreFoundFromTheProgram) {
  folder_.write("tree/experiments/families/x.toml", "");
  folder_.write("tree/share/weft/experiments/families/x.toml", "");
  EXPECT_EQ(find_experiments(folder_.file("tree/build/weft")), folder_.file("tree/experiments"));
  std::filesystem::remove_all(folder_.file("tree/experiments"));
  EXPECT_EQ(find_experiments(folder_.file("tree/bin/weft")), folder_.file("tree/share/weft/experiments"));
}

// Every experiment of ours can be read.
TEST(Experiments, OfThisTreeAreSound) {
  for (const char* size : kSizes) {
    const auto all = read_experiments(WEFT_SOURCE_DIR "/experiments", size);
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_FALSE(all->empty());
  }
}

TEST(Band, EndsAreInsideOrNot) {
  const Band closed{"", 1, 2, false, false};
  const Band open{"", 1, 2, true, true};
  EXPECT_TRUE(closed.contains(1) && closed.contains(2) && !closed.contains(2.1));
  EXPECT_FALSE(open.contains(1) || open.contains(2));
  EXPECT_TRUE(closed.meets(2, 3) && closed.meets(0, 5) && !closed.meets(2.1, 3));
  EXPECT_FALSE(open.meets(2, 3) || open.meets(0, 1));
  EXPECT_TRUE(open.meets(1.5, 1.5));
}

}  // namespace
}  // namespace weft::lab
