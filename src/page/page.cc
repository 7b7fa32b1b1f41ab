#include "page/page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "page/leftovers.h"

namespace weft::page {
namespace {

constexpr int kMostPages = 256;  // of a process

void copy(char* to, std::size_t room, std::string_view text) {
  const std::size_t n = std::min(room - 1, text.size());
  std::memcpy(to, text.data(), n);
}

std::string read_small(const char* path) {
  std::array<char, 1024> bytes{};
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const ssize_t n = read(fd, bytes.data(), bytes.size());
  close(fd);
  return n <= 0 ? "" : std::string(bytes.data(), static_cast<std::size_t>(n));
}

std::uint64_t aligned(std::uint64_t n) { return (n + 63) / 64 * 64; }

void store(std::uint64_t& at, std::uint64_t value, std::memory_order order = std::memory_order_relaxed) {
  std::atomic_ref<std::uint64_t>(at).store(value, order);
}

}  // namespace

// The 22nd field of /proc/PID/stat; the second is a name in parentheses that may hold anything.
std::uint64_t began(std::uint64_t pid) {
  const std::string text = read_small(("/proc/" + std::to_string(pid) + "/stat").c_str());
  std::size_t at = text.rfind(')');
  if (at == std::string::npos) return 0;
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + 1, nullptr, 10);
}

std::uint64_t process_space() {
  struct stat s {};
  return stat("/proc/self/ns/pid", &s) == 0 ? s.st_ino : 0;
}

std::unique_ptr<Page> Page::open(std::string_view kind, std::string_view title,
                                 std::span<const Table> tables) {
  const char* const wanted = std::getenv("WEFT_STAT");
  if (wanted != nullptr && std::strcmp(wanted, "0") == 0) return nullptr;
  if (tables.size() > kMostTables) return nullptr;
  std::uint32_t columns = 0;
  std::uint32_t rows = 0;
  for (const Table& t : tables) {
    if (t.columns.size() > kMostColumns || t.rows > kMostRows - rows) return nullptr;
    rows += t.rows;
    columns += static_cast<std::uint32_t>(t.columns.size());
  }
  const std::uint64_t lists =
      sizeof(Header) + tables.size() * sizeof(TableEntry) + columns * sizeof(ColumnEntry);
  std::uint64_t bytes = aligned(lists);
  for (const Table& t : tables)
    bytes = aligned(bytes + t.rows * row_bytes(static_cast<std::uint32_t>(t.columns.size())));
  if (bytes > kMostBytes) return nullptr;
  // Who lets a file grow beyond the limit gets a signal that ends the program.
  rlimit most{};
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < bytes) return nullptr;
  const std::string begin =
      std::string(kDirectory) + "/weft-" + std::to_string(getuid()) + "-" + std::to_string(getpid()) + "-";
  sweep(kDirectory, getuid());
  std::unique_ptr<Page> made(new Page);
  made->maker_ = getpid();
  int fd = -1;
  for (int i = 0; i < kMostPages && fd < 0; ++i) {
    made->path_ = begin + std::to_string(i);
    fd = ::open(made->path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno != EEXIST) return nullptr;
  }
  if (fd < 0) return nullptr;
  // All of it is asked for here: where the file system is full, a store into a hole would end the process.
  void* at = MAP_FAILED;
  if (posix_fallocate(fd, 0, static_cast<off_t>(bytes)) == 0)
    at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) {
    unlink(made->path_.c_str());
    return nullptr;
  }
  made->memory_ = static_cast<std::uint8_t*>(at);
  made->bytes_ = bytes;

  Header h;
  h.tables = static_cast<std::uint32_t>(tables.size());
  h.bytes = bytes;
  h.pid = static_cast<std::uint64_t>(getpid());
  h.began = began(h.pid);
  h.space = process_space();
  copy(h.kind, sizeof h.kind, kind);
  copy(h.title, sizeof h.title, title);
  std::string command = read_small("/proc/self/comm");
  if (!command.empty() && command.back() == '\n') command.pop_back();
  copy(h.command, sizeof h.command, command);
  std::uint8_t* list = made->memory_ + sizeof h;
  std::uint8_t* names = list + tables.size() * sizeof(TableEntry);
  std::uint64_t offset = aligned(lists);
  std::uint32_t first = 0;
  for (const Table& t : tables) {
    TableEntry e;
    copy(e.name, sizeof e.name, t.name);
    e.columns = static_cast<std::uint32_t>(t.columns.size());
    e.first_column = first;
    e.rows = t.rows;
    e.offset = offset;
    std::memcpy(list, &e, sizeof e);
    list += sizeof e;
    for (const Column& c : t.columns) {
      ColumnEntry n;
      copy(n.name, sizeof n.name, c.name);
      n.sort = static_cast<std::uint32_t>(c.sort);
      std::memcpy(names, &n, sizeof n);
      names += sizeof n;
    }
    first += e.columns;
    offset = aligned(offset + t.rows * row_bytes(e.columns));
  }
  std::uint64_t magic = 0;
  std::memcpy(&magic, h.magic, sizeof magic);
  std::memset(h.magic, 0, sizeof h.magic);
  std::memcpy(made->memory_, &h, sizeof h);
  made->place_ = hold(made->path_);
  store(*reinterpret_cast<std::uint64_t*>(made->memory_), magic,
        std::memory_order_release);  // now it is a page
  return made;
}

Page::~Page() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
  // In a child whose parent has the page, this is a copy.
  if (memory_ != nullptr && ours_ && maker_ == getpid()) unlink(path_.c_str());
  let_go(place_);
}

void Page::leave_to_parent() { ours_ = false; }

void Page::updated(std::uint64_t now_ns) {
  if (ours_) store(reinterpret_cast<Header*>(memory_)->updated, now_ns);
}

void Page::write(std::uint32_t table, std::uint32_t row, bool live, std::span<const std::uint64_t> cells) {
  auto* const e = reinterpret_cast<TableEntry*>(memory_ + sizeof(Header)) + table;
  if (!ours_ || row >= e->rows) return;
  auto* const at = reinterpret_cast<std::uint64_t*>(memory_ + e->offset + row * row_bytes(e->columns));
  const std::uint64_t number = at[0];
  store(at[0], number + 1);
  std::atomic_thread_fence(std::memory_order_release);
  store(at[1], live ? 1 : 0);
  for (std::size_t i = 0; i < cells.size() && i < e->columns; ++i) store(at[2 + i], cells[i]);
  store(at[0], number + 2, std::memory_order_release);
  if (row >= e->used) std::atomic_ref<std::uint32_t>(e->used).store(row + 1, std::memory_order_release);
}

void Page::put(std::uint32_t table, std::uint32_t row, std::span<const std::uint64_t> cells) {
  write(table, row, true, cells);
}

void Page::clear(std::uint32_t table, std::uint32_t row) { write(table, row, false, {}); }

}  // namespace weft::page
