// What this process's statistics pages count: `weft stat` shows the same. WEFT_STAT=0 leaves none.
#pragma once
#include <cstdint>

namespace weft::bench {

// The sum of a column over this process's pages of a kind, such as ("nic", "nic", "nak_rnr"). A page is a few
// milliseconds old, so callers let it settle. False: there is no such page.
bool counted(const char* kind, const char* table, const char* column, std::uint64_t& sum);

}  // namespace weft::bench
