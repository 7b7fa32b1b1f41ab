// Arrays whose size somebody else chose: an empty pointer instead of an exception when there is no memory.
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
