#include "record/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

namespace weft::record {
namespace {

using ::testing::HasSubstr;

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(file_); }
  void TearDown() override { std::filesystem::remove(file_); }
  // One of its own for each test: they may run at the same time.
  const std::string file_ = ::testing::TempDir() + "weft-store-" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".db";
};

Run some_run(const std::string& key) {
  return {key, "sim1", "weft 0", 7, "{\"a\": 1}", "{\"b\": 'x'}", "", 1.5, 4096};
}

// Another process that opens the file finds what was added, unchanged.
TEST_F(StoreTest, KeepsRuns) {
  {
    auto store = Store::open(file_);
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->add(some_run("k")));
  }
  const auto store = Store::open_existing(file_);
  ASSERT_TRUE(store);
  const auto found = store->find("k");
  ASSERT_TRUE(found && *found);
  const record::Run& r = **found;
  EXPECT_EQ(r.simulator, "sim1");
  EXPECT_EQ(r.version, "weft 0");
  EXPECT_EQ(r.seed, 7U);
  EXPECT_EQ(r.configuration, "{\"a\": 1}");
  EXPECT_EQ(r.result, "{\"b\": 'x'}");
  EXPECT_EQ(r.wall_seconds, 1.5);
  EXPECT_EQ(r.memory_bytes, 4096U);
  EXPECT_FALSE((*store->find("other")).has_value());
}

TEST_F(StoreTest, ARunTakesThePlaceOfOneWithItsKey) {
  auto store = Store::open(file_);
  record::Run r = some_run("k");
  ASSERT_TRUE(store->add(r));
  r.fault = "flows failed";
  ASSERT_TRUE(store->add(r));
  EXPECT_EQ(*store->runs(), 1U);
  EXPECT_EQ((*store->find("k"))->fault, "flows failed");
}

// Two simulators ran the same cells. The cells of the one that ran last come first.
TEST_F(StoreTest, CellsComeNewestSimulatorFirst) {
  auto store = Store::open(file_);
  for (const char* simulator : {"old", "new"}) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed)
      ASSERT_TRUE(store->add(std::vector{Cell{"e", "quick", "IRN", "", seed, simulator, "key"}}));
  }
  ASSERT_TRUE(store->add(std::vector{Cell{"other", "quick", "IRN", "", 1, "old", "key"}}));
  const auto cells = store->cells("e");
  ASSERT_TRUE(cells);
  ASSERT_EQ(cells->size(), 4U);
  EXPECT_EQ((*cells)[0].simulator, "new");
  EXPECT_EQ((*cells)[1].seed, 2U);
  EXPECT_EQ((*cells)[3].simulator, "old");
}

TEST_F(StoreTest, FilesThatAreNoRecordAreRefused) {
  EXPECT_THAT(Store::open_existing(file_).error().message, HasSubstr("there is no run record '"));
  std::ofstream(file_) << "this is no database, and long enough to be read as one by nobody: "
                       << std::string(4096, 'x');
  EXPECT_THAT(Store::open(file_).error().message, HasSubstr("not a database"));
  EXPECT_THAT(Store::open("/nonexistent/x.db").error().message, HasSubstr("/nonexistent/x.db"));
}

TEST_F(StoreTest, RecordsOfAnotherFormatAreRefused) {
  ASSERT_TRUE(Store::open(file_));
  sqlite3* db = nullptr;
  sqlite3_open(file_.c_str(), &db);
  sqlite3_exec(db, "PRAGMA user_version = 99", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  EXPECT_THAT(Store::open(file_).error().message, HasSubstr("has format 99; this program knows 1"));
}

TEST(Digest, IsThePublishedHash) {
  EXPECT_EQ(digest(""), "6c62272e07bb014262b821756295c58d");
  EXPECT_EQ(digest("a"), "d228cb696f1a8caf78912b704e4a8964");
}

}  // namespace
}  // namespace weft::record
