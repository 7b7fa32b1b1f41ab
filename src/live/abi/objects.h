// Which handles are alive. A program may hand us one that it destroyed, or whose `handle` field, the number
// by which the kernel would know it, has been changed; a driver over the kernel answers ENOENT or EINVAL, and
// so do we: a pointer is looked up here before anything follows it, and freed once.
//
// Only calls that a kernel would see look here. Posting and polling go straight to the object, as a driver's
// do.
//
// Each knows what it was made of, so that a domain does not go before what was made in it.
//
// Closing a context frees the handles that are left on it.
//
// Handles of queues made in a parent domain with allocators lie where the program says (allocators.h).
#pragma once
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "live/abi/allocators.h"

namespace weft::live::abi {

// The handles that an object was made of; nullptr is none.
using Needs = std::array<const void*, 2>;

class Objects {
 public:
  using Free = void (*)(void*);
  struct Entry {
    Free free = nullptr;  // of its type, which it names at the same time
    ibv_context* context = nullptr;
    std::uint32_t number = 0;
    Needs needs{};
    bool elsewhere = false;  // in memory of the program, which may be gone when its context closes
  };
  using Table = std::unordered_map<const void*, Entry>;

  void add(const void* object, const Entry& entry);
  void publish(const void* object, std::uint32_t number, const Needs& needs);
  void set_first_need(const void* object, const void* need);
  bool needed(const void* object);  // by another one
  // An object of this type that `fits`(object, entry); nullptr: none.
  template <class Fits>
  void* search(Free type, const Fits& fits) {
    const std::lock_guard lock(mutex_);
    for (const auto& [object, entry] : table_) {
      if (entry.free == type && fits(const_cast<void*>(object), entry)) return const_cast<void*>(object);
    }
    return nullptr;
  }
  // The number of the object, if it is alive and of this type and context (nullptr: any context).
  std::optional<std::uint32_t> find(const void* object, Free type, ibv_context* context);
  // Takes the object out of the table, so that no other call finds it from here on. Empty if it is not there.
  Table::node_type take(const void* object);
  void put_back(Table::node_type taken);
  void free_all_of(ibv_context* context);

 private:
  std::mutex mutex_;
  Table table_;
};

Objects& objects();  // of the process

// The number by which the kernel would know an object.
template <class Base>
std::uint32_t number_of(const Base& b) {
  return b.handle;
}
inline std::uint32_t number_of(const ibv_comp_channel& c) { return static_cast<std::uint32_t>(c.fd); }
inline std::uint32_t number_of(const ibv_td&) { return 0; }  // the kernel knows none

template <class Handle>
concept MayLieElsewhere = requires(Handle& h) {
  h.home;
};

template <class Handle>
void free_handle(void* h) {
  delete static_cast<Handle*>(h);
}

// For a handle that the program destroys.
struct Release {
  template <class Handle>
  void operator()(Handle* handle) const {
    if constexpr (MayLieElsewhere<Handle>) {
      if (const Home home = handle->home; home.from != nullptr) {
        handle->~Handle();
        return home.from->give_back(handle, home.resource);
      }
    }
    delete handle;
  }
};

template <class Handle>
std::unique_ptr<Handle, Release> make_handle(const Home& home) {
  if constexpr (MayLieElsewhere<Handle>) {
    void* const at = home.from != nullptr ? home.from->allocate(sizeof(Handle), home.resource) : nullptr;
    if (at != nullptr) {
      auto* const handle = new (at) Handle;
      handle->home = home;
      return std::unique_ptr<Handle, Release>(handle);
    }
  }
  return std::unique_ptr<Handle, Release>(new Handle);
}

// A handle under construction: in the table already, so that nothing can fail once the engine has made its
// part.
template <class Handle>
class NewHandle {
  using Entry = Objects::Entry;

 public:
  explicit NewHandle(ibv_context* context, const Home& home = {}) : handle_(make_handle<Handle>(home)) {
    Entry entry{free_handle<Handle>, context, 0};
    if constexpr (MayLieElsewhere<Handle>) entry.elsewhere = handle_->home.from != nullptr;
    objects().add(handle_.get(), entry);
  }
  ~NewHandle() {
    if (handle_ != nullptr) objects().take(handle_.get());
  }
  NewHandle(const NewHandle&) = delete;
  NewHandle& operator=(const NewHandle&) = delete;
  Handle* get() { return handle_.get(); }
  Handle* operator->() { return handle_.get(); }
  // Hands the handle to the program.
  Handle* publish(std::uint32_t number, const Needs& needs = {}) {
    objects().publish(handle_.get(), number, needs);
    return handle_.release();
  }

 private:
  std::unique_ptr<Handle, Release> handle_;
};

// The handle behind `base`, or nullptr: not alive, not of this type and context, or its number changed.
template <class Handle, class Base>
Handle* find(Base* base, ibv_context* context = nullptr) {
  const auto number = objects().find(base, free_handle<Handle>, context);
  return number && *number == number_of(*base) ? reinterpret_cast<Handle*>(base) : nullptr;
}

// Destroys the handle if `engine`, which answers with an errno, lets its object go. ENOENT: not there.
template <class Handle, class Base, class Engine>
int destroy(Base* base, const Engine& engine) {
  if (find<Handle>(base) == nullptr) return ENOENT;
  auto taken = objects().take(base);
  if (taken.empty()) return ENOENT;
  auto* const handle = reinterpret_cast<Handle*>(base);
  const int failed = engine(*handle);
  if (failed != 0) {
    objects().put_back(std::move(taken));
  } else {
    Release()(handle);
  }
  return failed;
}

}  // namespace weft::live::abi
