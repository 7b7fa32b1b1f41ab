// CHECK means "we have a bug": always on, prints the expression, the place and two values, aborts.
// DCHECK is for walks that cost more than a constant; it is on in debug and sanitizer builds.
// Input from a user, a file or the network never reaches either.
//
// A simulated world installs a hook that adds the seed to replay; the hook is the only state here.
#pragma once
#include <cstdint>

namespace weft {

[[noreturn]] void check_failed(const char* expr, const char* file, int line, std::uint64_t a,
                               std::uint64_t b) noexcept;

}  // namespace weft

#define CHECK(cond)                                                    \
  (__builtin_expect(static_cast<bool>(cond), 1) ? static_cast<void>(0) \
                                                : ::weft::check_failed(#cond, __FILE__, __LINE__, 0, 0))
#define CHECK_OP(a, op, b)                                                                          \
  (__builtin_expect(static_cast<bool>((a)op(b)), 1)                                                 \
       ? static_cast<void>(0)                                                                       \
       : ::weft::check_failed(#a " " #op " " #b, __FILE__, __LINE__, static_cast<std::uint64_t>(a), \
                              static_cast<std::uint64_t>(b)))
#ifdef WEFT_DCHECK
#define DCHECK(cond) CHECK(cond)
#else
#define DCHECK(cond) static_cast<void>(0)
#endif
