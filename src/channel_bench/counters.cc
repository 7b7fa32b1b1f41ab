#include "channel_bench/counters.h"

#include <unistd.h>

#include <string>

#include "page/reader.h"

namespace weft::bench {

bool counted(const char* kind, const char* table, const char* column, std::uint64_t& sum, pid_t process) {
  bool any = false;
  sum = 0;
  const auto wanted = static_cast<std::uint64_t>(process == 0 ? getpid() : process);
  for (const page::ReadPage& p : page::read_pages().pages) {
    if (p.pid != wanted || p.kind != kind) continue;
    const page::ReadTable* const t = p.table(table);
    const int at = t == nullptr ? -1 : t->column(column);
    if (at < 0) continue;
    for (const auto& row : t->rows) {
      sum += row[static_cast<std::size_t>(at)];
      any = true;
    }
  }
  return any;
}

bool written_since(const char* kind, std::uint64_t ns, pid_t process) {
  const auto wanted = static_cast<std::uint64_t>(process == 0 ? getpid() : process);
  for (const page::ReadPage& p : page::read_pages().pages) {
    if (p.pid == wanted && p.kind == kind && p.updated > ns) return true;
  }
  return false;
}

Result<std::uint64_t> count_of(const char* kind, const char* table, const char* column, pid_t process) {
  std::uint64_t n = 0;
  if (counted(kind, table, column, n, process)) return n;
  return fail(std::string("there is no statistics page to read '") + column + "' from (WEFT_STAT=0?)");
}

}  // namespace weft::bench
