// See live_coverage.h. In a file of its own, without a counter: clang names the section in each file that has
// some, and takes no second declaration of these names.
#include "tests/fuzz/live_coverage.h"

extern "C" std::uint8_t __start___sancov_cntrs[];
extern "C" std::uint8_t __stop___sancov_cntrs[];

namespace weft::fuzz {

[[clang::no_sanitize("coverage")]] std::uint8_t* first_counter() { return __start___sancov_cntrs; }
[[clang::no_sanitize("coverage")]] std::uint8_t* behind_counters() { return __stop___sancov_cntrs; }

}  // namespace weft::fuzz
