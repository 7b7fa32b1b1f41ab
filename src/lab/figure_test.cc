#include "lab/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "lab/test_folder.h"

namespace weft::lab {
namespace {

using ::testing::HasSubstr;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

const Figure kLines{"a 'quoted' title",
                    "loss",
                    {"0", "1%", "5%"},
                    {{"left",
                      "Gb/s",
                      {{"irn", {{9, 8, 10, 3}, {7, 6, 8, 3}, {}}},
                       {"roce, old", {{5, 5, 5, 1}, {4, 4, 4, 1}, {1, 1, 1, 1}}}}},
                     {"right", "us", {{"irn", {{1, 1, 1, 1}, {2, 2, 2, 1}, {3, 3, 3, 1}}}}}},
                    false};

class FigureTest : public ::testing::Test {
 protected:
  const TestFolder folder_{::testing::TempDir()};
};

// Names with commas, quotes and percent signs reach the drawing; a value that is not there is left out.
TEST_F(FigureTest, IsDrawnFromTheDataBesideIt) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no gnuplot; ./dev setup installs it";
  const auto ok = write_figure(kLines, folder_.file("x.svg"));
  ASSERT_TRUE(ok) << ok.error().message;
  const std::string csv = content(folder_.file("x.csv"));
  EXPECT_THAT(csv, HasSubstr("left,irn,0,1,1%,7,6,8\n"));
  EXPECT_THAT(csv, HasSubstr("left,\"roce, old\",1,2,5%,1,1,1\n"));
  EXPECT_THAT(csv, ::testing::Not(HasSubstr("left,irn,0,2")));
  const std::string svg = content(folder_.file("x.svg"));
  for (const char* text : {"a 'quoted' title", "roce, old", "left", "right", "Gb/s", "loss", "1%", "</svg>"})
    EXPECT_THAT(svg, HasSubstr(text));
}

TEST_F(FigureTest, OneTickIsBars) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no gnuplot; ./dev setup installs it";
  const Figure bars{"t", "", {""}, {{"fct", "us", {{"A%", {{2, 1, 3, 3}}}, {"B", {{4, 3, 5, 3}}}}}}, false};
  ASSERT_TRUE(write_figure(bars, folder_.file("b.svg")));
  EXPECT_THAT(content(folder_.file("b.gp")), HasSubstr("with boxes"));
  EXPECT_THAT(content(folder_.file("b.svg")), HasSubstr("A%"));
}

TEST_F(FigureTest, WithoutGnuplotTheDataStay) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  const auto ok = write_figure(kLines, folder_.file("x.svg"));
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(ok);
  EXPECT_THAT(ok.error().message, HasSubstr("gnuplot-nox"));
  EXPECT_THAT(content(folder_.file("x.csv")), HasSubstr("left,irn"));
}

TEST_F(FigureTest, AFolderThatIsNotThereIsToldSo) {
  EXPECT_THAT(write_figure(kLines, folder_.file("no/x.svg")).error().message, HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace weft::lab
