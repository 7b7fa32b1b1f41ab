// Memory from the program: a parent domain may bring allocators of its own (ibv_alloc_parent_domain), and the
// handles of queue pairs, completion queues and shared receive queues made in it lie there. What the device
// keeps of them is in the process's own memory, as a NIC's is in the NIC.
#pragma once
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <system_error>

namespace weft::live::abi {

// What a program is told that it allocates for; the upper half names the driver, which is unknown to Linux:
// 0.
enum class Resource : std::uint64_t { kQueuePair = 1, kCompletionQueue, kSharedReceives };

struct Allocators {
  static constexpr std::size_t kAlignment = 64;

  ibv_pd* domain = nullptr;
  ibv_parent_domain_init_attr called{};

  // nullptr: the program leaves it to us.
  void* allocate(std::size_t size, Resource resource) const {
    void* const at =
        called.alloc(domain, called.pd_context, size, kAlignment, static_cast<std::uint64_t>(resource));
    if (at == IBV_ALLOCATOR_USE_DEFAULT) return nullptr;
    if (at == nullptr) throw std::bad_alloc();
    if (reinterpret_cast<std::uintptr_t>(at) % kAlignment != 0) {
      give_back(at, resource);
      throw std::system_error(EINVAL, std::generic_category());
    }
    return at;
  }
  void give_back(void* at, Resource resource) const {
    called.free(domain, called.pd_context, at, static_cast<std::uint64_t>(resource));
  }
};

// Where a handle lies.
struct Home {
  const Allocators* from = nullptr;  // none: with us
  Resource resource = Resource::kQueuePair;
};

}  // namespace weft::live::abi
