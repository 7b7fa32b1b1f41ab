#include "adm/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "adm/watch.h"

namespace weft::adm {
namespace {

class File : public ::testing::Test {
 protected:
  File() {
    std::string made = ::testing::TempDir() + "adm-XXXXXX";
    folder = mkdtemp(made.data());
    path = folder + "/weft/parameters";
  }
  ~File() override { std::filesystem::remove_all(folder); }
  Result<Settings> give(std::uint64_t value) {
    return change(path, [&](Settings& s) -> Result<void> {
      s.set({"", "nop_us", value});
      return {};
    });
  }
  std::string folder;
  std::string path;
};

TEST_F(File, ThatIsNotThereSaysNothing) {
  const auto nothing = load(path);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->version, 0U);
  EXPECT_TRUE(nothing->all().empty());
}

TEST_F(File, GrowsByAVersionWithEachChange) {
  ASSERT_TRUE(give(3));
  ASSERT_TRUE(give(4));
  const auto there = load(path);
  ASSERT_TRUE(there);
  EXPECT_EQ(there->version, 2U);
  EXPECT_EQ(there->wanted("", "nop_us"), 4U);
  EXPECT_FALSE(change(path, [](Settings&) -> Result<void> { return fail("no"); }));
  EXPECT_EQ(load(path)->version, 2U);
}

TEST_F(File, ThatOthersMayWriteIsNotRead) {
  ASSERT_TRUE(give(3));
  chmod(path.c_str(), 0666);
  EXPECT_FALSE(load(path));
  chmod(path.c_str(), 0644);
  EXPECT_TRUE(load(path));
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path.c_str(), 0, 12345), 0);
    EXPECT_TRUE(load(path));  // root's
    ASSERT_EQ(chown(path.c_str(), 12345, 0), 0);
    EXPECT_FALSE(load(path));
  }
  std::filesystem::remove(path);
  ASSERT_EQ(symlink("/dev/null", path.c_str()), 0);
  EXPECT_FALSE(load(path));
}

// Programs of all users follow the file, and none of them can hold up those who change it.
TEST_F(File, IsForAllToReadAndItsLocksForItsOwner) {
  const mode_t before = umask(077);
  ASSERT_TRUE(give(3));
  const auto agent = Agency::begin(path);
  umask(before);
  ASSERT_TRUE(agent);
  const auto mode = [](const std::string& name) {
    struct stat s {};
    return stat(name.c_str(), &s) == 0 ? s.st_mode & 0777U : 0U;
  };
  EXPECT_EQ(mode(folder + "/weft"), 0755U);
  EXPECT_EQ(mode(path), 0644U);
  for (const char* const lock : {".lock", ".agent"}) EXPECT_EQ(mode(path + lock), 0600U);
  ASSERT_EQ(chmod((path + ".lock").c_str(), 0644), 0);
  ASSERT_TRUE(give(4));
  EXPECT_EQ(mode(path + ".lock"), 0600U);
}

TEST_F(File, HasOneAgentAsLongAsThatLives) {
  {
    const auto agent = Agency::begin(path);
    ASSERT_TRUE(agent);
    EXPECT_TRUE(has_agent(path));
    EXPECT_FALSE(Agency::begin(path));
  }
  EXPECT_FALSE(has_agent(path));
  EXPECT_TRUE(Agency::begin(path));
}

// The folder comes later than the watch, goes, and comes again; each change of the file is told.
TEST_F(File, IsWatchedBeforeItIsThereAndAfterItsFolderIsReplaced) {
  Watch watch(path);
  ASSERT_GE(watch.fd(), 0);
  EXPECT_FALSE(watch.changed());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(give(3));
    EXPECT_TRUE(watch.changed()) << i;
    EXPECT_FALSE(watch.changed()) << i;
    ASSERT_TRUE(give(4));
    EXPECT_TRUE(watch.changed()) << i;
    std::filesystem::remove_all(folder + "/weft");
    EXPECT_TRUE(watch.changed()) << i;
    EXPECT_FALSE(watch.changed()) << i;
  }
}

TEST_F(File, BesideItIsNoBusinessOfTheWatch) {
  ASSERT_TRUE(give(3));
  Watch watch(path);
  std::ofstream(folder + "/weft/other") << "x";
  EXPECT_FALSE(watch.changed());
}

}  // namespace
}  // namespace weft::adm
