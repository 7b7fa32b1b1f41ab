// A statistics page: what a process tells the rest of its host about itself, in shared memory, so that it can
// be read while the process hangs. `weft stat` reads them. A page is a file /dev/shm/weft-UID-PID-N that only
// its user may open:
//
//   | header 256 | tables | columns | rows of table 0 | rows of table 1 | ...
//
// It describes itself: a table has a name and columns with names, so that programs built against different
// libraries are read by one reader. A row is a sequence number, whether it is in use, and a cell of 64 bits
// for each column. The number is odd while the row is written; a reader that sees it odd, or changed, looks
// again.
//
//   one writer   of each page. put() is a few stores; it never waits, allocates or asks the kernel.
//   readers      copy rows, and believe nothing: a page may be anybody's file (reader.h).
//   stale pages  name a process that is gone: its number, and when that process began, tell (leftovers.h).
//
// WEFT_STAT=0 in the environment: no pages.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace weft::page {

enum class Sort : std::uint32_t {
  kCount,    // a number
  kBytes,    // a number of bytes
  kNanos,    // nanoseconds
  kMoment,   // nanoseconds of the machine's steady clock; 0: never
  kAddress,  // IPv4, as an integer of the host
  kWord,     // up to 8 characters
  kPrefix    // the first half of an IPv6 address, whose other half is the kAddress in the next cell
};
inline constexpr std::uint32_t kSorts = 7;
// Where the next cell has an IPv4 address.
inline constexpr std::uint64_t kNoPrefix = UINT64_MAX;

struct Column {
  const char* name;
  Sort sort;
};
struct Table {
  const char* name;
  std::span<const Column> columns;
  std::uint32_t rows;
};

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kMostTables = 8;
inline constexpr std::uint32_t kMostColumns = 160;
inline constexpr std::uint32_t kMostRows = 1U << 17U;   // of all tables together
inline constexpr std::uint64_t kMostBytes = 1U << 24U;  // of a page
inline constexpr std::size_t kNameBytes = 32;
inline constexpr const char* kDirectory = "/dev/shm";

// --- what lies in the file ---
// The magic is stored last: whoever reads it, and the rest afterwards, reads a whole header.
struct Header {
  char magic[8] = {'w', 'e', 'f', 't', 'p', 'a', 'g', 'e'};
  std::uint32_t version = kVersion;
  std::uint32_t tables = 0;
  std::uint64_t bytes = 0;  // of the file
  std::uint64_t pid = 0;
  std::uint64_t began = 0;    // the process: clock ticks since the machine did, as /proc has it; 0: unknown
  std::uint64_t updated = 0;  // when the writer was last here, of the machine's steady clock
  char kind[kNameBytes] = {};
  char title[96] = {};
  char command[kNameBytes] = {};
  std::uint64_t space = 0;  // of process numbers: the namespace
  char pad[40] = {};
};
static_assert(sizeof(Header) == 256);
struct TableEntry {
  char name[kNameBytes] = {};
  std::uint32_t columns = 0;
  std::uint32_t first_column = 0;  // in the list of all columns
  std::uint32_t rows = 0;
  std::uint32_t used = 0;    // no row from here on was ever in use
  std::uint64_t offset = 0;  // of row 0
};
struct ColumnEntry {
  char name[kNameBytes] = {};
  std::uint32_t sort = 0;
  std::uint32_t pad = 0;
};
constexpr std::uint64_t row_bytes(std::uint32_t columns) { return 8 * (2 + std::uint64_t{columns}); }

// The namespace in which this process has its number.
std::uint64_t process_space();
// When a process began; 0: there is none, or no /proc to ask.
std::uint64_t began(std::uint64_t pid);

// Up to 8 characters in a cell.
constexpr std::uint64_t word(std::string_view text) {
  std::uint64_t w = 0;
  for (std::size_t i = 0; i < 8 && i < text.size(); ++i)
    w |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
  return w;
}

class Page {
 public:
  // nullptr: there is no shared memory, or nobody wants pages. That is no error: the program goes on without.
  static std::unique_ptr<Page> open(std::string_view kind, std::string_view title,
                                    std::span<const Table> tables);
  ~Page();
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  void put(std::uint32_t table, std::uint32_t row, std::span<const std::uint64_t> cells);
  void clear(std::uint32_t table, std::uint32_t row);
  void updated(std::uint64_t now_ns);
  // In a forked child: the page is the parent's.
  void leave_to_parent();

 private:
  Page() = default;
  void write(std::uint32_t table, std::uint32_t row, bool live, std::span<const std::uint64_t> cells);

  std::uint8_t* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool ours_ = true;
  std::int64_t maker_ = 0;  // the process that made it
  int place_ = -1;          // of its name, among those that go when the process exits
  std::string path_;
};

}  // namespace weft::page
