#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace weft {

void check_failed(const char* expr, const char* file, int line, std::uint64_t a, std::uint64_t b) noexcept {
  std::fprintf(stderr, "weft: bug: CHECK(%s) failed at %s:%d (values %llu, %llu)\n", expr, file, line,
               static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
  std::abort();
}

}  // namespace weft
