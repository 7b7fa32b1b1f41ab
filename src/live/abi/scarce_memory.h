// For the one source of a test program that includes it: memory that runs out after as many allocations as
// the test says, in its own thread, for the program and the libraries that it loads.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

// Counts down the allocations of this thread that still succeed; negative: all do.
thread_local int left = -1;
thread_local bool failed = false;
thread_local long alive = 0;  // allocated by this thread and not freed

void* allocate(std::size_t bytes) {
  if (left == 0) {
    failed = true;
    return nullptr;
  }
  if (left > 0) --left;
  ++alive;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void release(void* p) {
  if (p != nullptr) --alive;
  std::free(p);
}

}  // namespace

// The library's allocations come here, too: a program's operator new is everybody's.
void* operator new(std::size_t bytes) {
  void* const p = allocate(bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t) noexcept { release(p); }
