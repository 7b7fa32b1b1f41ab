// Counts every allocation of the test program, for queue_pair_test.cc. In a file of its own, so that no
// compiler inlines half of a pair.
#include <cstddef>
#include <cstdlib>
#include <new>

namespace weft {
extern std::size_t allocations;
std::size_t allocations = 0;
}  // namespace weft

void* operator new(std::size_t n) {
  ++weft::allocations;
  if (void* p = std::malloc(n != 0 ? n : 1)) return p;
  std::abort();
}
void* operator new(std::size_t n, std::align_val_t a) {
  ++weft::allocations;
  const auto align = static_cast<std::size_t>(a);
  if (void* p = std::aligned_alloc(align, (n + align - 1) / align * align)) return p;
  std::abort();
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return operator new(n); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return operator new(n, a);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
