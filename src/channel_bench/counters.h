// What this process's statistics pages count: `weft stat` shows the same. WEFT_STAT=0 leaves none.
#pragma once
#include <sys/types.h>

#include <cstdint>

#include "core/base/result.h"

namespace weft::bench {

inline constexpr std::uint64_t kPageAge = 200'000'000;  // ns: a page has what happened before, long since

// The sum of a column over a process's pages of a kind, such as ("nic", "nic", "nak_rnr"). A page is a few
// milliseconds old, so callers let it settle (kPageAge). False: there is no such page. `process` 0 is this
// one.
bool counted(const char* kind, const char* table, const char* column, std::uint64_t& sum, pid_t process = 0);

// A page of this kind was written since then, of the machine's steady clock.
bool written_since(const char* kind, std::uint64_t ns, pid_t process = 0);

// Of a page that may not be absent; why not, where it is.
Result<std::uint64_t> count_of(const char* kind, const char* table, const char* column, pid_t process = 0);

}  // namespace weft::bench
