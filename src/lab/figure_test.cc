#include "lab/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "lab/axis.h"
#include "lab/test_folder.h"

namespace weft::lab {
namespace {

using ::testing::HasSubstr;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

const Figure kLines{
    "a 'quoted' title",
    "loss",
    {"0", "1%", "5%"},
    {{"left",
      "Gb/s",
      {{"irn", {{9, 8, 10, 3}, {7, 6, 8, 3}, {}}}, {"roce, old", {{5, 5, 5, 1}, {4, 4, 4, 1}, {1, 1, 1, 1}}}},
      {}},
     {"right", "us", {{"irn", {{1, 1, 1, 1}, {2, 2, 2, 1}, {3, 3, 3, 1}}}}, {}}},
    false};

class FigureTest : public ::testing::Test {
 protected:
  const TestFolder folder_{::testing::TempDir()};
};

// Names with commas, quotes and angle brackets reach the drawing; a value that is not there is left out.
TEST_F(FigureTest, IsDrawnWithItsDataBesideIt) {
  const auto ok = write_figure(kLines, folder_.file("x.svg"));
  ASSERT_TRUE(ok) << ok.error().message;
  const std::string csv = content(folder_.file("x.csv"));
  EXPECT_THAT(csv, HasSubstr("left,irn,0,1,1%,7,6,8\n"));
  EXPECT_THAT(csv, HasSubstr("left,\"roce, old\",1,2,5%,1,,\n"));  // one seed: no interval
  EXPECT_THAT(csv, ::testing::Not(HasSubstr("left,irn,0,2")));
  const std::string svg = content(folder_.file("x.svg"));
  for (const char* text : {"a &#39;quoted&#39; title", "roce, old", "left", "right", "Gb/s", "loss", "1%",
                           "</svg>", "prefers-color-scheme:dark"})
    EXPECT_THAT(svg, HasSubstr(text));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("x.svg.part")));
}

// The paper's numbers stand beside ours: in the drawing as open marks with a legend of their own, within the
// scale even where ours are far away, and in the data under their own name.
TEST_F(FigureTest, ShowsThePapersPointsBesideOurs) {
  Figure f = kLines;
  f.panels[0].series[0].paper = {{2, 40}};
  ASSERT_TRUE(write_figure(f, folder_.file("p.svg")));
  EXPECT_THAT(content(folder_.file("p.csv")), HasSubstr("left,the paper: irn,0,2,5%,40,,\n"));
  const std::string svg = content(folder_.file("p.svg"));
  EXPECT_THAT(svg, HasSubstr("class='l0 said'"));
  EXPECT_THAT(svg, HasSubstr(">the paper<"));
  EXPECT_THAT(svg, HasSubstr(">40<"));  // a tick of the scale
  EXPECT_THAT(draw_figure(kLines, Svg::kFile), ::testing::Not(HasSubstr("the paper")));
}

TEST_F(FigureTest, OneTickIsBars) {
  const Figure bars{
      "t <b>", "", {""}, {{"fct", "us", {{"A%", {{2, 1, 3, 3}}}, {"B", {{4, 3, 5, 3}}}}, {}}}, false};
  ASSERT_TRUE(write_figure(bars, folder_.file("b.svg")));
  const std::string svg = content(folder_.file("b.svg"));
  EXPECT_THAT(svg, HasSubstr("t &lt;b&gt;"));
  EXPECT_THAT(svg, HasSubstr("class='c1'"));
  EXPECT_THAT(svg, HasSubstr("whisker"));
}

// An interval beyond the scale ends in an arrow, not outside of the drawing; each grade has a shape of its
// own.
TEST(Strips, StayInsideAndDifferInShape) {
  std::set<std::string> shapes;
  for (const Grade g :
       {Grade::kReproduced, Grade::kCompatible, Grade::kTrend, Grade::kOpen, Grade::kRefuted}) {
    Strip s{"a over b", "2.5x", {2.5, 1e-6, 1e6, 3}, Band{"2 to 3", 2, 3}, Band{"> 1", 1, INFINITY, true},
            g,          "w"};
    const std::string svg = draw_strip({s}, 0, true, 200);
    EXPECT_THAT(svg, HasSubstr("class='band'"));
    EXPECT_THAT(svg, ::testing::Not(HasSubstr("inf")));
    EXPECT_THAT(svg, ::testing::Not(HasSubstr("nan")));
    const std::size_t mark = std::max(svg.rfind("<circle"), svg.rfind("<path") + 1);
    shapes.insert(svg.substr(svg.find_last_of('<', svg.size() - 8), 20));
    EXPECT_NE(mark, 0U);
  }
  EXPECT_EQ(shapes.size(), 5U);
  Strip none{"a", "-", {}, std::nullopt, std::nullopt, Grade::kMissing, "?"};
  EXPECT_THAT(draw_strip({none}, 0, true, 200), ::testing::Not(HasSubstr("nan")));
}

// The beginning that all labels share is written once, so that their differences have room.
TEST(Strips, SayOnceWhatAllLabelsBeginWith) {
  const Strip a{"time, a over b", "2x", {2, 1, 3, 3}, std::nullopt, std::nullopt, Grade::kTrend, "w"};
  Strip b = a;
  b.label = "time, a over c";
  const std::string svg = draw_strips("t", {a, b}, true, Svg::kFile);
  for (const char* text : {">time<", ">a over b<", ">a over c<"}) EXPECT_THAT(svg, HasSubstr(text));
  EXPECT_THAT(draw_strips("t", {a}, true, Svg::kFile), HasSubstr(">time, a over b<"));
}

TEST(Axis, TicksAreRoundAndFew) {
  const AxisScale linear(0, 23, false, 0, 100);
  const auto ticks = linear.ticks(5);
  ASSERT_GE(ticks.size(), 3U);
  EXPECT_LE(ticks.size(), 5U);
  EXPECT_EQ(ticks[0], 0);
  EXPECT_EQ(ticks[1], 5);
  const AxisScale factors(0.8, 40, true, 0, 100);
  EXPECT_LE(factors.ticks(6).size(), 6U);
  EXPECT_NEAR(factors.at(std::sqrt(0.8 * 40)), 50, 1e-9);
  EXPECT_EQ(factors.at(-5), 0);
  EXPECT_EQ(factors.at(1e9), 100);
  EXPECT_FALSE(AxisScale(3, 3, false, 0, 100).ticks(5).empty());
}

TEST_F(FigureTest, AFolderThatIsNotThereIsToldSo) {
  EXPECT_THAT(write_figure(kLines, folder_.file("no/x.svg")).error().message, HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace weft::lab
