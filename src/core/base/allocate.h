// Arrays whose size comes from outside: without memory the answer is an empty pointer, not an exception.
#pragma once
#include <cstddef>
#include <memory>
#include <new>

namespace weft {

template <class T>
std::unique_ptr<T[]> try_array(std::size_t n) {
  return std::unique_ptr<T[]>(new (std::nothrow) T[n]());
}

}  // namespace weft
