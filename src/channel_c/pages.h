// Pages for the memory cache, with a hole on either side (X-RDMA §6.3): who runs out of a region touches the
// hole, and the kernel ends the program there. Their addresses are marked: they lie from kMarked on, below
// the stack and the libraries, where the kernel puts nothing by itself, so that an address in a core dump
// says what it was.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace weft::channel {

inline constexpr std::uint64_t kMarked = 0x7C00'0000'0000ULL;
inline constexpr std::uint64_t kHole = 2U << 20U;  // a huge page, so that both kinds of memory are aligned

constexpr std::uint64_t whole_holes(std::uint64_t bytes) { return (bytes + kHole - 1) / kHole * kHole; }

// nullptr: there are none, for one of huge pages mostly because the machine has set none aside.
inline void* map_pages(std::uint64_t bytes, bool huge) {
  constexpr int kMostTries = 1 << 16;
  const std::uint64_t all = whole_holes(bytes) + 2 * kHole;
  std::uint64_t hint = kMarked;
  void* at = MAP_FAILED;
  for (int tries = 0; tries < kMostTries && at == MAP_FAILED; ++tries, hint += all) {
    at = mmap(reinterpret_cast<void*>(hint), all, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  }
  if (at == MAP_FAILED) return nullptr;
  void* const memory =
      mmap(static_cast<std::uint8_t*>(at) + kHole, huge ? whole_holes(bytes) : bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | (huge ? MAP_HUGETLB : 0), -1, 0);
  if (memory != MAP_FAILED) return memory;
  munmap(at, all);
  return nullptr;
}

inline void unmap_pages(void* memory, std::uint64_t bytes) {
  munmap(static_cast<std::uint8_t*>(memory) - kHole, whole_holes(bytes) + 2 * kHole);
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
  static constexpr std::size_t kPage = 4096;
  unsigned char* page_ = nullptr;
};

}  // namespace weft::channel
