// Numbers that nobody can foresee, from the kernel: seeds, and names that are their own proof.
#pragma once
#include <sys/random.h>
#include <sys/types.h>

#include <type_traits>

namespace weft::live {

// Blocks only before the system's pool is initialised; a short read cannot happen below 256 bytes.
template <class Number>
Number unpredictable() {
  static_assert(std::is_unsigned_v<Number>);
  Number n = 0;
  while (getrandom(&n, sizeof n, 0) != static_cast<ssize_t>(sizeof n)) {
  }
  return n;
}

}  // namespace weft::live
