// See live_system.h.
#include "tests/fuzz/live_system.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <ctime>

namespace {

bool an_input_runs() { return weft::fuzz::virtual_ns != weft::fuzz::kSystemClock; }

}  // namespace

// An input frees a megabyte. The sanitizer keeps what was freed from use for the length of some inputs, and
// not of hundreds: new pages cost a quarter of the time.
extern "C" const char* __asan_default_options() { return "quarantine_size_mb=8:malloc_context_size=10"; }

extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
  using weft::fuzz::virtual_ns;
  if (clock != CLOCK_MONOTONIC || !an_input_runs())
    return static_cast<int>(syscall(SYS_clock_gettime, clock, out));
  virtual_ns += 100;
  *out = {virtual_ns / 1'000'000'000, virtual_ns % 1'000'000'000};
  return 0;
}

extern "C" int open(const char* path, int flags, ...) {
  if (an_input_runs() && std::strcmp(path, "/proc/self/maps") == 0) {
    errno = ENOENT;
    return -1;
  }
  va_list more;
  va_start(more, flags);
  const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : mode_t{0};
  va_end(more);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
