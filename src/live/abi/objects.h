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
  };
  using Table = std::unordered_map<const void*, Entry>;

  void add(const void* object, const Entry& entry);
  void publish(const void* object, std::uint32_t number, const Needs& needs);
  void set_needs(const void* object, const Needs& needs);
  bool needed(const void* object);  // by another one
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
void free_handle(void* h) {
  delete static_cast<Handle*>(h);
}

// A handle under construction: in the table already, so that nothing can fail once the engine has made its
// part.
template <class Handle>
class NewHandle {
 public:
  explicit NewHandle(ibv_context* context) : handle_(std::make_unique<Handle>()) {
    objects().add(handle_.get(), {free_handle<Handle>, context, 0});
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
  std::unique_ptr<Handle> handle_;
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
    delete handle;
  }
  return failed;
}

}  // namespace weft::live::abi
