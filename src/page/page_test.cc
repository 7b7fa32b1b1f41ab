#include "page/page.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "page/reader.h"

namespace weft::page {
namespace {

constexpr Column kColumns[] = {{"name", Sort::kWord}, {"peer", Sort::kAddress}, {"took", Sort::kNanos}};

const ReadPage* own(const Found& found) {
  for (const ReadPage& p : found.pages) {
    if (p.pid == static_cast<std::uint64_t>(getpid())) return &p;
  }
  return nullptr;
}

TEST(Pages, AreReadAsTheyWereWritten) {
  const Table tables[] = {{"first", kColumns, 4}, {"second", kColumns, 0}};
  auto page = Page::open("channels", "a title", tables);
  ASSERT_NE(page, nullptr);
  page->put(0, 2, std::array<std::uint64_t, 3>{word("OPEN"), 0x7F000001, 12'345});
  page->put(0, 3, std::array<std::uint64_t, 3>{1, 2, 3});
  page->clear(0, 3);
  page->put(0, 4, std::array<std::uint64_t, 3>{1, 2, 3});  // there is no such row
  page->updated(77);
  const Found found = read_pages();
  const ReadPage* const p = own(found);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(p->kind, "channels");
  EXPECT_EQ(p->title, "a title");
  EXPECT_EQ(p->updated, 77U);
  EXPECT_EQ(p->state, 'R');
  ASSERT_EQ(p->tables.size(), 2U);
  ASSERT_EQ(p->table("first")->rows.size(), 1U);
  const auto& row = p->table("first")->rows[0];
  EXPECT_EQ(text_of(Sort::kWord, row[0]), "OPEN");
  EXPECT_EQ(text_of(Sort::kAddress, row[1]), "127.0.0.1");
  EXPECT_EQ(text_of(Sort::kNanos, row[2]), "12.3");
  EXPECT_TRUE(p->table("second")->rows.empty());
  page.reset();
  EXPECT_EQ(own(read_pages()), nullptr);
}

std::string name_of(pid_t pid) {
  return std::string(kDirectory) + "/weft-" + std::to_string(getuid()) + "-" + std::to_string(pid) + "-0";
}
bool there(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// A process that opens a page and ends; by `end`, which takes the page and does not return.
template <class End>
pid_t ended(End end) {
  const pid_t child = fork();
  if (child == 0) {
    const Table tables[] = {{"first", kColumns, 4}};
    Page* const page = Page::open("channels", "", tables).release();
    if (page == nullptr || !there(name_of(getpid()))) _exit(1);
    end(page);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return child;
}

// In a directory of its own: in the usual one other programs may die between two looks.
TEST(Pages, OfAProcessThatDiedAreRemovedByWhoeverReadsThem) {
  char directory[] = "/dev/shm/page-test-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string moved = std::string(directory) + "/weft-x";
  ended([&](Page*) { _exit(std::rename(name_of(getpid()).c_str(), moved.c_str()) == 0 ? 0 : 1); });
  EXPECT_TRUE(there(moved));
  EXPECT_EQ(read_pages(directory).removed, 1U);
  EXPECT_FALSE(there(moved));
  EXPECT_EQ(read_pages(directory).removed, 0U);
  rmdir(directory);
}

TEST(Pages, OfAProcessThatDiedAreRemovedByTheNextThatOpensOne) {
  const pid_t child = ended([](Page*) { _exit(0); });
  const Table tables[] = {{"first", kColumns, 4}};
  const auto page = Page::open("channels", "", tables);
  EXPECT_FALSE(there(name_of(child)));
  EXPECT_TRUE(there(name_of(getpid())));
}

TEST(Pages, GoWithAProcessThatExitsAndDoesNotCloseThem) {
  const pid_t child = ended([](Page*) { std::exit(0); });
  EXPECT_FALSE(there(name_of(child)));
}

TEST(Pages, OfAParentStayWhenItsChildExitsOrClosesThem) {
  const Table tables[] = {{"first", kColumns, 4}};
  auto page = Page::open("channels", "", tables);
  for (const bool closes : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      if (closes) page.reset();
      std::exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(there(name_of(getpid()))) << closes;
  }
}

// The kernel ends a program that lets a file grow beyond its limit (ulimit -f), unless it expects that.
TEST(Pages, AreNotForAProcessWhoseFilesMayNotGrow) {
  const pid_t child = fork();
  if (child == 0) {
    rlimit usual{};
    getrlimit(RLIMIT_FSIZE, &usual);
    const rlimit low{0, usual.rlim_max};
    setrlimit(RLIMIT_FSIZE, &low);
    const Table tables[] = {{"first", kColumns, 4}};
    const bool none = Page::open("channels", "", tables) == nullptr;
    setrlimit(RLIMIT_FSIZE, &usual);  // a sanitizer may have something to write
    _exit(none ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(there(name_of(child)));
}

// Every byte of a page, one after the other, is something else; and it is cut off everywhere. Nothing
// happens.
TEST(Pages, MayBeAnybodysFile) {
  char directory[] = "/dev/shm/page-test-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const Table tables[] = {{"first", kColumns, 2}};
  auto page = Page::open("channels", "", tables);
  ASSERT_NE(page, nullptr);
  page->put(0, 0, std::array<std::uint64_t, 3>{word("OPEN"), 1, 2});
  const ReadPage mine = *own(read_pages());
  std::string bytes;
  {
    std::FILE* const f = std::fopen(mine.path.c_str(), "r");
    char c = 0;
    while (std::fread(&c, 1, 1, f) == 1) bytes += c;
    std::fclose(f);
  }
  const std::string path = std::string(directory) + "/weft-x";
  const auto write_down = [&](const std::string& what) {
    std::FILE* const f = std::fopen(path.c_str(), "w");
    ASSERT_EQ(std::fwrite(what.data(), 1, what.size(), f), what.size());
    std::fclose(f);
  };
  ReadPage read;
  std::uint64_t began = 0;
  int good = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(0xFF);
    write_down(other);
    good += read_page(path, read, began) ? 1 : 0;
    write_down(bytes.substr(0, i));
    (void)read_page(path, read, began);
  }
  EXPECT_GE(good, 1);
  write_down(bytes);
  EXPECT_TRUE(read_page(path, read, began));
  unlink(path.c_str());
  rmdir(directory);
}

// A file that somebody wrote by hand, to hang whoever reads it, or to make it take memory.
class MadeUpPage : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(directory_), nullptr);
    path_ = std::string(directory_) + "/weft-x";
  }
  void TearDown() override {
    unlink(path_.c_str());
    rmdir(directory_);
  }
  void write_down(const std::string& what) const {
    std::FILE* const f = std::fopen(path_.c_str(), "w");
    ASSERT_EQ(std::fwrite(what.data(), 1, what.size(), f), what.size());
    std::fclose(f);
  }
  // Two tables without columns, each row with sequence number `number`.
  std::string two_tables(std::uint32_t rows, std::uint64_t second, std::uint64_t number) const {
    Header h;
    h.tables = 2;
    h.pid = static_cast<std::uint64_t>(getpid());
    h.began = began(h.pid);
    h.space = process_space();
    TableEntry e[2];
    e[0].rows = e[0].used = e[1].rows = e[1].used = rows;
    e[0].offset = kFirst;
    e[1].offset = second;
    h.bytes = kFirst + 2 * rows * row_bytes(0);
    std::string bytes(h.bytes, '\0');
    std::memcpy(bytes.data(), &h, sizeof h);
    std::memcpy(bytes.data() + sizeof h, e, sizeof e);
    for (std::size_t at = kFirst; at < bytes.size(); at += row_bytes(0)) {
      const std::uint64_t words[] = {number, 1};
      std::memcpy(bytes.data() + at, words, sizeof words);
    }
    return bytes;
  }
  bool readable(const std::string& bytes) {
    write_down(bytes);
    std::uint64_t began_then = 0;
    return read_page(path_, read_, began_then);
  }

  static constexpr std::uint64_t kFirst = 1024;
  char directory_[32] = "/dev/shm/page-test-XXXXXX";
  std::string path_;
  ReadPage read_;
};

TEST_F(MadeUpPage, MayHaveTablesBesideEachOtherAndNowhereElse) {
  constexpr std::uint64_t kSecond = kFirst + 10 * row_bytes(0);
  EXPECT_TRUE(readable(two_tables(10, kSecond, 2)));
  ASSERT_EQ(read_.tables.size(), 2U);
  EXPECT_EQ(read_.tables[1].rows.size(), 10U);
  EXPECT_FALSE(readable(two_tables(10, kFirst, 2))) << "at one place";
  EXPECT_FALSE(readable(two_tables(10, kSecond - 8, 2))) << "over the end of the first";
  EXPECT_FALSE(readable(two_tables(10, kFirst - 8, 2))) << "over its beginning";
  EXPECT_FALSE(readable(two_tables(10, kSecond + 8, 2))) << "beyond the page";
  EXPECT_FALSE(readable(two_tables(10, UINT64_MAX - 8, 2))) << "and round";
  EXPECT_FALSE(readable(two_tables(kMostRows, kFirst + kMostRows * row_bytes(0), 2))) << "too many rows";
}

// Every row is being written, for ever: without a bound for them all this takes minutes, and the alarm ends
// it.
TEST_F(MadeUpPage, DoesNotHangWhoeverReadsIt) {
  constexpr std::uint32_t kRows = kMostRows / 2;
  const std::string bytes = two_tables(kRows, kFirst + kRows * row_bytes(0), 3);
  alarm(15);
  EXPECT_TRUE(readable(bytes));
  alarm(0);
  ASSERT_EQ(read_.tables.size(), 2U);
  EXPECT_TRUE(read_.tables[0].rows.empty());
}

TEST_F(MadeUpPage, IsRemovedOnlyWhenItsProcessIsCertainlyGone) {
  const std::string bytes = two_tables(1, kFirst + row_bytes(0), 2);
  const auto with = [&](auto change) {
    Header h;
    std::memcpy(&h, bytes.data(), sizeof h);
    change(h);
    std::string other = bytes;
    std::memcpy(other.data(), &h, sizeof h);
    write_down(other);
    const std::uint32_t removed = read_pages(directory_).removed;
    EXPECT_EQ(removed == 0, there(path_));
    return removed;
  };
  EXPECT_EQ(with([](Header&) {}), 0U);
  EXPECT_EQ(with([](Header& h) { h.began = 0; }), 0U) << "it could not tell when it began";
  EXPECT_EQ(with([](Header& h) { h.space = 0; }), 0U) << "nor where its number counts";
  EXPECT_EQ(with([](Header& h) { ++h.space; }), 0U) << "elsewhere";
  EXPECT_EQ(with([](Header& h) { h.magic[0] = 0; }), 0U) << "it is being made";
  EXPECT_EQ(with([](Header& h) { ++h.began; }), 1U) << "its number is another's now";
  EXPECT_EQ(with([](Header& h) { h.pid = UINT64_MAX; }), 1U) << "there is no such number";
}

// Nothing but a file with one name is a page: a pipe would hang its reader, and a link make it read or remove
// what is not the writer's.
TEST_F(MadeUpPage, IsAFileWithOneName) {
  const std::string bytes = two_tables(1, kFirst + row_bytes(0), 2);
  write_down(bytes);
  EXPECT_EQ(read_pages(directory_).pages.size(), 1U);
  const std::string other = std::string(directory_) + "/other";
  ASSERT_EQ(link(path_.c_str(), other.c_str()), 0);
  Found found = read_pages(directory_);
  EXPECT_TRUE(found.pages.empty());
  EXPECT_EQ(found.forbidden, 1U);
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(symlink(other.c_str(), path_.c_str()), 0);
  EXPECT_EQ(read_pages(directory_).forbidden, 1U);
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  found = read_pages(directory_);
  EXPECT_TRUE(found.pages.empty());
  EXPECT_EQ(found.forbidden, 1U);
  unlink(other.c_str());
}

// However many pages a user makes, and however long they are, a look ends, and says what it left out.
TEST_F(MadeUpPage, DoNotTakeALookWithoutBound) {
  constexpr std::uint32_t kRows = 12'000;
  Header h;
  h.tables = 1;
  h.pid = static_cast<std::uint64_t>(getpid());
  h.began = began(h.pid);
  h.space = process_space();
  TableEntry e;
  e.columns = kMostColumns;
  e.rows = e.used = kRows;
  e.offset = 8192;
  h.bytes = e.offset + kRows * row_bytes(kMostColumns);
  ASSERT_LE(h.bytes, kMostBytes);
  std::string bytes(e.offset, '\0');
  const auto make = [&](std::uint64_t count) {
    std::memcpy(bytes.data(), &h, sizeof h);
    std::memcpy(bytes.data() + sizeof h, &e, sizeof e);
    for (std::uint64_t i = 0; i < count; ++i) {
      path_ = std::string(directory_) + "/weft-" + std::to_string(i);
      write_down(bytes);
      ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(h.bytes)), 0);  // rows that nobody wrote
    }
  };
  const auto remove = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i)
      unlink((std::string(directory_) + "/weft-" + std::to_string(i)).c_str());
  };
  constexpr std::uint64_t kFit = kMostOfUser.words / (kRows * (2 + kMostColumns));
  make(kFit + 3);
  Found found = read_pages(directory_);
  EXPECT_EQ(found.pages.size(), kFit);
  EXPECT_EQ(found.forbidden, 3U);
  remove(kFit + 3);
  e.rows = e.used = 0;
  h.bytes = e.offset;
  make(kMostOfUser.pages + 2);
  found = read_pages(directory_);
  EXPECT_EQ(found.pages.size(), kMostOfUser.pages);
  EXPECT_EQ(found.forbidden, 2U);
  remove(kMostOfUser.pages + 2);
}

}  // namespace
}  // namespace weft::page
