// Counts the system calls of one thread while it measures, whoever makes them: a filter of the kernel
// (seccomp) turns each into a signal, and the handler counts it and carries it out. So nothing behaves
// otherwise, and a call that is hidden in an inlined instruction is seen, too.
//
// The one place from which the filter lets calls through is the handler's own instruction. A filter stays for
// the life of its thread, so `gauge()` measures on a thread of its own. x86-64 alone: elsewhere `works()`
// says no.
#pragma once
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace weft::channel_test {

struct SyscallCounts {
  std::uint64_t all = 0;
  std::int64_t last = -1;  // its number, as SYS_getppid is one
  bool works = false;      // false: this kernel lets no thread be filtered, and nothing was measured
};

#if defined(__x86_64__)

// rdi: the call's number, then its arguments, as syscall() of libc has them.
asm(R"(
.pushsection .text
.type weft_gauge_call, @function
weft_gauge_call:
  endbr64
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rdx, %rsi
  mov %rcx, %rdx
  mov %r8, %r10
  mov %r9, %r8
  mov 8(%rsp), %r9
  syscall
weft_gauge_called:
  ret
.size weft_gauge_call, . - weft_gauge_call
.popsection
)");
extern "C" {
std::int64_t weft_gauge_call(std::int64_t number, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                             std::int64_t, std::int64_t) __attribute__((visibility("hidden")));
extern const char weft_gauge_called[] __attribute__((visibility("hidden")));
}

namespace gauge_detail {

inline SyscallCounts counted;
inline volatile bool measuring = false;

inline void carry_out(int, siginfo_t*, void* context) {
  auto* const regs = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const std::int64_t number = regs[REG_RAX];
  if (measuring) {
    ++counted.all;
    counted.last = number;
  }
  regs[REG_RAX] = weft_gauge_call(number, regs[REG_RDI], regs[REG_RSI], regs[REG_RDX], regs[REG_R10],
                                  regs[REG_R8], regs[REG_R9]);
}

inline bool filter_this_thread() {
  const auto at = reinterpret_cast<std::uint64_t>(weft_gauge_called);
  constexpr auto kField = [](std::size_t offset) { return static_cast<std::uint32_t>(offset); };
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kField(offsetof(seccomp_data, nr))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_rt_sigreturn, 5, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kField(offsetof(seccomp_data, instruction_pointer))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(at), 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kField(offsetof(seccomp_data, instruction_pointer) + 4)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(at >> 32U), 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

}  // namespace gauge_detail

// Runs `before` and then `measured` on a thread of its own, and counts the system calls of the second.
template <class Before, class Measured>
SyscallCounts gauge(const Before& before, const Measured& measured) {
  using gauge_detail::counted;
  using gauge_detail::measuring;
  counted = {};
  struct sigaction old {};
  struct sigaction handler {};
  handler.sa_sigaction = gauge_detail::carry_out;
  handler.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &handler, &old);
  std::thread([&] {
    before();
    counted.works = gauge_detail::filter_this_thread();
    measuring = true;
    if (counted.works) measured();
    measuring = false;
  }).join();
  sigaction(SIGSYS, &old, nullptr);
  return counted;
}

#else

template <class Before, class Measured>
SyscallCounts gauge(const Before&, const Measured&) {
  return {};
}

#endif

}  // namespace weft::channel_test
