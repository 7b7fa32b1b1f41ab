#include "page/reader.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "page/leftovers.h"

namespace weft::page {
namespace {

constexpr int kTries = 1000;         // of a row that is being written
constexpr int kTriesOfPage = 10000;  // of all its rows together, beyond the first of each

std::string name_in(const char* at, std::size_t room) {
  std::string out(at, strnlen(at, room));
  for (char& c : out) c = c < ' ' || c > '~' ? '?' : c;  // it goes to a terminal
  return out;
}

// A page is read with pread, not mapped: whoever owns the file could cut it off under a mapping.
class File {
 public:
  explicit File(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool there() const { return fd_ >= 0; }
  // Its number and owner. Nothing: it is no file, or it has another name, too, as no page has.
  std::optional<struct stat> about() const {
    struct stat s {};
    if (fd_ < 0 || fstat(fd_, &s) != 0 || !S_ISREG(s.st_mode) || s.st_nlink != 1) return std::nullopt;
    return s;
  }
  bool read(std::uint64_t offset, void* to, std::uint64_t bytes) const {
    return fd_ >= 0 && offset < UINT32_MAX &&
           pread(fd_, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  }

 private:
  int fd_;
};

enum class Row : std::uint8_t { kThere, kEmpty, kUnreadable };

// `words` has room for the whole row. One that is being written is read again, as long as the page has tries
// left: its writer may be somebody who wants us to hang.
Row read_row(const File& file, std::uint64_t offset, std::vector<std::uint64_t>& words, int& tries) {
  for (int i = 0; i < kTries && (i == 0 || tries-- > 0); ++i) {
    if (!file.read(offset, words.data(), words.size() * 8)) return Row::kUnreadable;
    const std::uint64_t before = words[0];
    if (before == 0) return Row::kEmpty;
    if (before % 2 != 0) continue;
    std::uint64_t after = 0;
    if (!file.read(offset, &after, sizeof after)) return Row::kUnreadable;
    if (after == before) return words[1] == 1 ? Row::kThere : Row::kEmpty;
  }
  return Row::kEmpty;  // its writer was stopped in the middle
}

struct Extent {
  std::uint64_t begin;
  std::uint64_t end;
};

// Whether the rows of the tables lie in the page, beside each other: then to read them all is to read the
// page once, whatever it says.
bool bounded(const Header& h, const std::vector<TableEntry>& tables) {
  std::vector<Extent> extents;
  std::uint64_t rows = 0;
  for (const TableEntry& e : tables) {
    if (e.columns > kMostColumns || e.rows > kMostRows || e.first_column > kMostTables * kMostColumns)
      return false;
    rows += e.rows;
    const std::uint64_t bytes = e.rows * row_bytes(e.columns);
    if (e.offset > h.bytes || bytes > h.bytes - e.offset) return false;
    if (bytes != 0) extents.push_back({e.offset, e.offset + bytes});
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) return false;
  }
  return rows <= kMostRows;
}

char state_of(std::uint64_t pid) {
  std::array<char, 512> bytes{};
  const int fd = ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return '?';
  const ssize_t n = read(fd, bytes.data(), bytes.size());
  close(fd);
  const std::string_view text(bytes.data(), n < 0 ? 0 : static_cast<std::size_t>(n));
  const std::size_t end = text.rfind(')');
  return end == std::string_view::npos || end + 2 >= text.size() ? '?' : text[end + 2];
}

}  // namespace

int ReadTable::column(std::string_view wanted) const {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == wanted) return static_cast<int>(i);
  }
  return -1;
}

const ReadTable* ReadPage::table(std::string_view wanted) const {
  for (const ReadTable& t : tables) {
    if (t.name == wanted) return &t;
  }
  return nullptr;
}

namespace {

enum class Answer : std::uint8_t { kPage, kNone, kTooMuch };

// `left` is how much of a look there is for it.
Answer read_file(const File& file, const Bound& left, ReadPage& out, std::uint64_t& began,
                 std::uint64_t& words_read) {
  Header h;
  const Header right;
  // The magic first, and the rest after it: it was written last.
  if (!file.read(0, h.magic, sizeof h.magic) || std::memcmp(h.magic, right.magic, sizeof h.magic) != 0)
    return Answer::kNone;
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!file.read(0, &h, sizeof h)) return Answer::kNone;
  if (std::memcmp(h.magic, right.magic, sizeof h.magic) != 0 || h.version != kVersion ||
      h.tables > kMostTables || h.bytes > kMostBytes)
    return Answer::kNone;
  std::vector<TableEntry> tables(h.tables);
  if (!file.read(sizeof h, tables.data(), tables.size() * sizeof(TableEntry)) || !bounded(h, tables))
    return Answer::kNone;
  words_read = 0;
  for (const TableEntry& e : tables) words_read += std::uint64_t{std::min(e.rows, e.used)} * (2 + e.columns);
  if (left.pages == 0 || words_read > left.words) return Answer::kTooMuch;
  out = {};
  out.kind = name_in(h.kind, sizeof h.kind);
  out.title = name_in(h.title, sizeof h.title);
  out.command = name_in(h.command, sizeof h.command);
  out.pid = h.pid;
  out.updated = h.updated;
  out.space = h.space;
  began = h.began;
  int tries = kTriesOfPage;
  for (const TableEntry& e : tables) {
    const std::uint64_t names =
        sizeof h + h.tables * sizeof e + std::uint64_t{e.first_column} * sizeof(ColumnEntry);
    std::vector<ColumnEntry> columns(e.columns);
    if (!file.read(names, columns.data(), e.columns * sizeof(ColumnEntry))) return Answer::kNone;
    ReadTable t;
    t.name = name_in(e.name, sizeof e.name);
    for (const ColumnEntry& c : columns)
      t.columns.push_back(
          {name_in(c.name, sizeof c.name), c.sort < kSorts ? static_cast<Sort>(c.sort) : Sort::kCount});
    std::vector<std::uint64_t> words(2 + e.columns);
    for (std::uint32_t r = 0; r < std::min(e.rows, e.used); ++r) {
      const Row row = read_row(file, e.offset + r * row_bytes(e.columns), words, tries);
      if (row == Row::kUnreadable) return Answer::kNone;
      if (row == Row::kThere) t.rows.emplace_back(words.begin() + 2, words.end());
    }
    out.tables.push_back(std::move(t));
  }
  return Answer::kPage;
}

}  // namespace

bool read_page(const std::string& path, ReadPage& out, std::uint64_t& began) {
  const File file(path);
  const auto about = file.about();
  std::uint64_t words = 0;
  if (!about || read_file(file, kMostOfLook, out, began, words) != Answer::kPage) return false;
  out.path = path;
  out.file = about->st_ino;
  return true;
}

Found read_pages(const std::string& directory) {
  Found found;
  DIR* const d = opendir(directory.c_str());
  if (d == nullptr) return found;
  std::vector<std::string> paths;
  while (const dirent* const e = readdir(d)) {
    if (std::strncmp(e->d_name, "weft-", 5) != 0) continue;
    if (paths.size() == kMostNames) {
      ++found.forbidden;
    } else {
      paths.push_back(directory + "/" + e->d_name);
    }
  }
  closedir(d);
  std::sort(paths.begin(), paths.end());
  Bound left = kMostOfLook;
  std::map<uid_t, Bound> users;
  for (const std::string& path : paths) {
    const File file(path);
    if (!file.there() && errno == ENOENT) continue;
    const auto about = file.about();
    if (!about) {
      ++found.forbidden;
      continue;
    }
    Bound& own = users.try_emplace(about->st_uid, kMostOfUser).first->second;
    ReadPage page;
    std::uint64_t began_then = 0;
    std::uint64_t words = 0;
    const Bound least{std::min(left.pages, own.pages), std::min(left.words, own.words)};
    const Answer answer = read_file(file, least, page, began_then, words);
    if (answer == Answer::kTooMuch) ++found.forbidden;
    if (answer != Answer::kPage) continue;
    for (Bound* const b : {&left, &own}) *b = {b->pages - 1, b->words - words};
    page.path = path;
    page.file = about->st_ino;
    const bool ours = page.space == process_space();  // a container's processes have other numbers
    if (gone(page.pid, began_then, page.space)) {
      if (unlink(path.c_str()) == 0) ++found.removed;
      continue;
    }
    page.state = ours ? state_of(page.pid) : '?';
    found.pages.push_back(std::move(page));
  }
  std::stable_sort(found.pages.begin(), found.pages.end(),
                   [](const ReadPage& a, const ReadPage& b) { return a.pid < b.pid; });
  return found;
}

std::string text_of(Sort sort, std::uint64_t cell) {
  switch (sort) {
    case Sort::kNanos: {
      const std::uint64_t tenths = cell / 100;
      return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
    }
    case Sort::kAddress: {
      std::string out;
      for (int shift = 24; shift >= 0; shift -= 8)
        out += std::to_string(cell >> static_cast<unsigned>(shift) & 255U) + (shift != 0 ? "." : "");
      return out;
    }
    case Sort::kWord: {
      std::string out;
      for (unsigned i = 0; i < 8; ++i) {
        const auto c = static_cast<char>(cell >> (8 * i) & 255U);
        if (c == '\0') break;
        out += c < ' ' || c > '~' ? '?' : c;
      }
      return out;
    }
    default:
      return std::to_string(cell);
  }
}

std::string text_of(const ReadTable& table, const std::vector<std::uint64_t>& row, std::size_t column) {
  const Sort sort = table.columns[column].sort;
  if (sort != Sort::kAddress || column == 0 || table.columns[column - 1].sort != Sort::kPrefix ||
      row[column - 1] == kNoPrefix)
    return text_of(sort, row[column]);
  std::array<std::uint8_t, 16> bytes{};
  for (unsigned i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::uint8_t>(row[column - 1] >> (56U - 8U * i));
    bytes[8 + i] = static_cast<std::uint8_t>(row[column] >> (56U - 8U * i));
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, bytes.data(), text.data(), text.size());
  return text.data();
}

}  // namespace weft::page
