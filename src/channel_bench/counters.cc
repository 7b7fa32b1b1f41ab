#include "channel_bench/counters.h"

#include <unistd.h>

#include "page/reader.h"

namespace weft::bench {

bool counted(const char* kind, const char* table, const char* column, std::uint64_t& sum) {
  bool any = false;
  sum = 0;
  const auto self = static_cast<std::uint64_t>(getpid());
  for (const page::ReadPage& p : page::read_pages().pages) {
    if (p.pid != self || p.kind != kind) continue;
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

}  // namespace weft::bench
