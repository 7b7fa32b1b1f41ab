// Memory for the memory cache: of the heap, or pages with a hole on either side (X-RDMA §6.3): who runs out
// of a region touches the hole, and the kernel ends the program there. Their addresses are marked: they lie
// from kMarked on, below the stack and the libraries, where the kernel puts nothing by itself, so that an
// address in a core dump says what it was.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "channel/config.h"

namespace weft::channel {

inline constexpr std::uint64_t kMarked = 0x7C00'0000'0000ULL;
inline constexpr std::size_t kPage = 4096;
inline constexpr std::uint64_t kHole = 2U << 20U;  // a huge page, so that both kinds of memory are aligned

constexpr std::uint64_t whole_holes(std::uint64_t bytes) { return (bytes + kHole - 1) / kHole * kHole; }

// So many bytes in whole huge pages where pages are to be huge or to lie together.
constexpr std::uint64_t mapped_bytes(std::uint64_t bytes, MemoryMode mode) {
  return mode == MemoryMode::kHuge || mode == MemoryMode::kContiguous ? whole_holes(bytes) : bytes;
}

// Every 2 MiB on one run of physical memory. The kernel is asked beforehand, and finds a run when the bytes
// are first touched; where it found none, it is asked to make one now (Linux 6.1). False: it could not, or
// does not know how.
inline bool lay_together(void* at, std::uint64_t bytes) {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which Debian 12's headers lack
  if (madvise(at, bytes, MADV_HUGEPAGE) != 0) return false;
  auto* const first = static_cast<volatile std::uint8_t*>(at);
  for (std::uint64_t i = 0; i < bytes; i += kHole) first[i] = 0;
  return madvise(at, bytes, kCollapse) == 0;
}

// nullptr: there are none. Of huge pages the machine has set none aside; memory that lies together is rare on
// one that has run for long.
inline void* map_pages(std::uint64_t bytes, MemoryMode mode) {
  constexpr int kMostTries = 1 << 16;
  const std::uint64_t all = whole_holes(bytes) + 2 * kHole;
  std::uint64_t hint = kMarked;
  void* at = MAP_FAILED;
  for (int tries = 0; tries < kMostTries && at == MAP_FAILED; ++tries, hint += all) {
    at = mmap(reinterpret_cast<void*>(hint), all, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  }
  if (at == MAP_FAILED) return nullptr;
  const std::uint64_t length = mapped_bytes(bytes, mode);
  void* const memory =
      mmap(static_cast<std::uint8_t*>(at) + kHole, length, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | (mode == MemoryMode::kHuge ? MAP_HUGETLB : 0), -1, 0);
  if (memory != MAP_FAILED && (mode != MemoryMode::kContiguous || lay_together(memory, length)))
    return memory;
  munmap(at, all);
  return nullptr;
}

inline void unmap_pages(void* memory, std::uint64_t bytes) {
  munmap(static_cast<std::uint8_t*>(memory) - kHole, whole_holes(bytes) + 2 * kHole);
}

// Memory of any kind but the device's own, all zeros: peers may read what is lent, and the heap has what the
// program freed. Of the heap it is whole pages, so that what is said to the kernel about them (a child does
// not get them) concerns nobody else's bytes.
inline void* map_memory(std::uint64_t bytes, MemoryMode mode) {
  if (mode != MemoryMode::kMalloc) return map_pages(bytes, mode);
  const std::uint64_t whole = (bytes + kPage - 1) / kPage * kPage;
  void* const at = std::aligned_alloc(kPage, whole);
  if (at != nullptr) std::memset(at, 0, whole);
  return at;
}
inline void unmap_memory(void* memory, std::uint64_t bytes, MemoryMode mode) {
  if (mode == MemoryMode::kMalloc) return std::free(memory);
  unmap_pages(memory, bytes);
}

// A page that says whether this process made it: a child finds zeros. No call of the kernel is needed to
// look.
class Owner {
 public:
  Owner() = default;
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() {
    if (page_ != nullptr) munmap(page_, kPage);
  }
  bool mark() {
    void* const at = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return false;
    page_ = static_cast<unsigned char*>(at);
    *page_ = 1;
    return madvise(at, kPage, MADV_WIPEONFORK) == 0;
  }
  bool inherited() const { return page_ != nullptr && *page_ == 0; }

 private:
  unsigned char* page_ = nullptr;
};

}  // namespace weft::channel
