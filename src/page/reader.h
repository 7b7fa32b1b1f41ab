// Reads the statistics pages of this host's processes (page.h). What it finds may be anything: nothing
// outside of the file is looked at, and a file that is no page is passed over. One look is bounded in total,
// and by the user that files belong to, so that nobody's files keep it from those of others.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "page/page.h"

namespace weft::page {

struct ReadColumn {
  std::string name;
  Sort sort = Sort::kCount;
};
struct ReadTable {
  std::string name;
  std::vector<ReadColumn> columns;
  std::vector<std::vector<std::uint64_t>> rows;
  // The place of a column in a row; -1: there is none.
  int column(std::string_view wanted) const;
};
struct ReadPage {
  std::string path;
  std::string kind;
  std::string title;
  std::string command;
  std::uint64_t pid = 0;
  std::uint64_t file = 0;     // its number: another page may have the same path later
  std::uint64_t space = 0;    // in which that number counts
  std::uint64_t updated = 0;  // of the machine's steady clock, ns
  char state = '?';           // of the process, as /proc has it: R, S, T (stopped) ...
  std::vector<ReadTable> tables;
  const ReadTable* table(std::string_view wanted) const;
};

inline constexpr std::size_t kMostNames = 1U << 16U;  // of files that may be pages
// Pages of one look, and the words of their rows.
struct Bound {
  std::uint64_t pages = 0;
  std::uint64_t words = 0;
};
inline constexpr Bound kMostOfLook{4096, 1U << 23U};
inline constexpr Bound kMostOfUser{2048, 1U << 22U};

struct Found {
  std::vector<ReadPage> pages;  // by process number, then by path
  std::uint32_t removed = 0;    // stale ones
  // Other users', those beyond a bound, and what has a page's name and is no file or has another name, too.
  std::uint32_t forbidden = 0;
};
// `directory` is kDirectory, but in tests.
Found read_pages(const std::string& directory = kDirectory);

// What a file holds; false: it is no page.
bool read_page(const std::string& path, ReadPage& out, std::uint64_t& began);

std::string text_of(Sort sort, std::uint64_t cell);  // as a person reads it
// The cell of a row in its column, together with its prefix if it is an address with one.
std::string text_of(const ReadTable& table, const std::vector<std::uint64_t>& row, std::size_t column);

}  // namespace weft::page
