// Memory of the program that we live in. It was there when it was registered; a NIC pins what it registers,
// and we cannot, so the program may unmap, protect or truncate it at any time, and a copy would end the
// process.
//
// A copy that can fail is the answer: if a thread faults inside reach(), in the range that it named, reach()
// returns false and the caller fails the one request. All other faults, threads and signals are the
// program's: they go to the handler that was installed before ours, or do what they would have done without
// us.
//
// What this does not cover: a program that installs a SIGSEGV handler of its own after it last registered
// memory, and does not call the one before; a thread that blocks SIGSEGV and polls (the kernel then ends the
// process); and memory that was unmapped and mapped anew, which is simply the memory that now lies there.
//
// Considered instead: process_vm_readv() never faults but costs a system call and a page walk per copy, a
// third of the throughput; userfaultfd tells of unmapping, but to a thread that the program's munmap() then
// waits for.
#pragma once
#include <setjmp.h>

#include <atomic>
#include <cstdint>

namespace weft::live {

// Puts our handler in front of whatever handles SIGSEGV and SIGBUS now. Costs two system calls if it is
// there.
void guard_program_memory();

// Whether the kernel lets us read [at, at + length), or write it too. True if it cannot be known.
bool is_mapped(const void* at, std::uint64_t length, bool writable);

namespace detail {
// Where this thread goes if it faults in the range.
struct Landing {
  jmp_buf place;
  std::uint64_t begin;
  std::uint64_t end;
};
extern thread_local constinit Landing* landing;  // nullptr outside of reach()
}  // namespace detail

// Runs `access`, which touches [at, at + length) of the program's memory and nothing that must be undone.
// False: the memory is not there, or not with that right; a part may have been done.
template <class Access>
[[nodiscard]] [[gnu::noinline]] bool reach(const void* at, std::uint64_t length, const Access& access) {
  detail::Landing here;
  here.begin = reinterpret_cast<std::uint64_t>(at);
  here.end = here.begin + length;
  if (_setjmp(here.place) != 0) return false;
  detail::landing = &here;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  access();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  detail::landing = nullptr;
  return true;
}

}  // namespace weft::live
