#include "monitor/history.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace weft::monitor {
namespace {

class Histories : public ::testing::Test {
 protected:
  Histories() {
    std::string made = ::testing::TempDir() + "history-XXXXXX";
    folder = mkdtemp(made.data());
    file = folder + "/h.db";
  }
  ~Histories() override { std::filesystem::remove_all(folder); }
  static Metrics metrics(double a, double b) {
    Metrics m;
    m.add("a", "", Kind::kGauge, {{"program", "x"}}, a);
    m.add("b", "", Kind::kGauge, {}, b);
    return m;
  }
  std::string folder;
  std::string file;
};

TEST_F(Histories, GiveBackWhatWasAdded) {
  const auto h = History::open(file, {});
  ASSERT_TRUE(h) << h.error().message;
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(
        (*h)->add(1000 * i, metrics(i, 2 * i), {{1000 * i, "x", 7, "request", 5000, std::to_string(i / 2)}}));
  const auto some = (*h)->samples("a{program=\"x\"}", 3000);
  ASSERT_TRUE(some);
  ASSERT_EQ(some->size(), 2U);
  EXPECT_EQ((*some)[0].at_ms, 3000);
  EXPECT_EQ((*some)[1].value, 4);
  EXPECT_EQ((*h)->series()->size(), 2U);
  EXPECT_EQ((*h)->slow(0)->size(), 3U);  // one that was seen before is the same
  EXPECT_TRUE((*h)->samples("none", 0)->empty());
}

TEST_F(Histories, AreBoundedByRowsAndByAge) {
  {
    const auto h = History::open(file, {.rows = 10, .seconds = 1'000'000});
    for (int i = 0; i < 50; ++i) ASSERT_TRUE((*h)->add(1000 * i, metrics(i, i), {}));
    EXPECT_EQ((*h)->rows(), 10U);
    EXPECT_EQ((*h)->samples("b", 0)->front().value, 45);
  }
  const auto h = History::open(file, {.rows = 1000, .seconds = 3});
  ASSERT_TRUE((*h)->add(50'000, metrics(50, 50), {}));
  EXPECT_EQ((*h)->samples("b", 0)->front().at_ms, 47'000);
  EXPECT_EQ((*h)->rows(), 8U);
}

// Programs and interfaces come and go while one monitor runs.
TEST_F(Histories, ForgetNamesOfWhichNothingIsLeft) {
  const auto h = History::open(file, {.rows = 100, .seconds = 1'000'000});
  for (int i = 0; i < 1000; ++i) {
    Metrics m;
    m.add("a", "", Kind::kGauge, {{"program", std::to_string(i)}}, i);
    ASSERT_TRUE((*h)->add(1000 * i, m, {}));
  }
  EXPECT_LT((*h)->series()->size(), 200U);
}

TEST_F(Histories, TellABoundedNumberOfNames) {
  const auto h = History::open(file, {});
  Metrics m;
  for (std::uint64_t i = 0; i < kMostAnswers + 5; ++i)
    m.add("a", "", Kind::kGauge, {{"program", std::to_string(i)}}, 1);
  ASSERT_TRUE((*h)->add(1000, m, {}));
  EXPECT_EQ((*h)->series()->size(), kMostAnswers);
}

TEST_F(Histories, OfAnotherFormatAreLeftAlone) {
  std::ofstream(file)
      << "this is no database, and it is longer than a header of one would be, so that it is read";
  EXPECT_FALSE(History::open(file, {}));
  EXPECT_FALSE(History::open(folder + "/no/such/folder.db", {}));
}

}  // namespace
}  // namespace weft::monitor
