// A library to preload that makes threads nap at random around system calls and locks, so that they are
// preempted at the worst moment: between a look and the sleep that follows it, or with a lock held. What
// depends on who is faster then shows within minutes and not within months. `./dev noise` runs tests under
// it.
//
//   NOISE_SEED    from which every choice follows                         (1)
//   NOISE_ONE_IN  of so many calls, one naps before and one naps after    (50)
//   NOISE_NAP     the longest nap, in microseconds                        (5000)
//   NOISE_LEAVE   names of programs that it leaves alone, with commas between
//   NOISE_LOG     a file that gets a line for every nap
//
// A thread's choices follow from the seed, the program's arguments and the place of the thread in the order
// of first calls; a forked child goes on with choices of its own. So the same seed makes the same choices as
// far as the threads make the same calls in the same order, which the naps themselves mostly decide.
//
// A thread sanitizer (`./dev test --tsan`) finds what is not ordered at all; this finds what is ordered
// wrongly. Calls that libc makes inside itself are not seen, condition variables' sleep for one.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "core/base/prng.h"

namespace {

// Nothing here has a constructor or a destructor: others call us before the first and after the last.
struct Knobs {
  std::uint64_t seed = 1;
  std::uint64_t one_in = 50;
  std::uint64_t nap = 5000;
  int log = -1;
};
constinit Knobs knobs;
constinit std::atomic<bool> awake{false};
constinit std::atomic<std::uint64_t> threads{0};

// Known when the library is loaded, so that a first use allocates nothing.
#define NOISE_OF_THREAD thread_local __attribute__((tls_model("initial-exec")))
constinit NOISE_OF_THREAD weft::Prng choices{0};
constinit NOISE_OF_THREAD std::uint64_t place = 0;  // 0: this thread has made no call yet
constinit NOISE_OF_THREAD bool inside = false;      // the shim's own calls nap no more

void begin_thread() {
  place = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  choices = weft::Prng(knobs.seed).fork(place);
}

void tell(std::uint64_t microseconds, const char* when, const char* call) {
  char line[160];
  const int n = std::snprintf(line, sizeof line, "%s thread %llu naps %llu us %s %s\n",
                              program_invocation_short_name, static_cast<unsigned long long>(place),
                              static_cast<unsigned long long>(microseconds), when, call);
  if (n > 0) static_cast<void>(::syscall(SYS_write, knobs.log, line, std::min<std::size_t>(n, sizeof line)));
}

void nap(const char* when, const char* call) {
  if (inside || !awake.load(std::memory_order_relaxed)) return;
  inside = true;
  if (place == 0) begin_thread();
  if (choices.below(knobs.one_in) == 0) {
    const int error = errno;
    const std::uint64_t microseconds = choices.between(1, knobs.nap);
    const timespec t{static_cast<time_t>(microseconds / 1'000'000),
                     static_cast<long>(microseconds % 1'000'000 * 1000)};
    if (knobs.log >= 0) tell(microseconds, when, call);
    nanosleep(&t, nullptr);
    errno = error;
  }
  inside = false;
}

template <class Function>
Function real(std::atomic<Function>& known, const char* name) {
  Function f = known.load(std::memory_order_relaxed);
  if (f != nullptr) return f;
  f = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  known.store(f, std::memory_order_relaxed);
  return f;
}

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const std::uint64_t n = std::strtoull(text, &end, 10);
  if (*end == '\0') return n;
  std::fprintf(stderr, "noise: %s=%s is no number\n", name, text);
  std::_Exit(2);
}

bool left_alone() {
  const char* const list = std::getenv("NOISE_LEAVE");
  std::string_view rest = list != nullptr ? list : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    if (rest.substr(0, end) == program_invocation_short_name) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// The child is one thread, a copy of the one that forked.
void in_child() { choices = choices.fork(place); }

// The dynamic loader hands over what main() will get.
__attribute__((constructor)) void begin(int count, char** arguments, char**) {
  if (left_alone()) return;
  std::uint64_t seed = number("NOISE_SEED", knobs.seed);
  for (int i = 1; i < count; ++i) {
    for (const char* c = arguments[i]; *c != '\0'; ++c)
      seed = weft::Prng(seed).fork(static_cast<unsigned char>(*c)).next();
    seed = weft::Prng(seed).next();
  }
  knobs.seed = seed;
  knobs.one_in = std::max<std::uint64_t>(number("NOISE_ONE_IN", knobs.one_in), 1);
  knobs.nap = std::max<std::uint64_t>(number("NOISE_NAP", knobs.nap), 1);
  if (const char* const log = std::getenv("NOISE_LOG"); log != nullptr && *log != '\0')
    knobs.log = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  pthread_atfork(nullptr, nullptr, in_child);
  awake = true;
}

}  // namespace

// The call as libc has it, with a nap before and a nap after. One row each.
#define NOISE_CALL(result, name, parameters, arguments, ...)                             \
  extern "C" __attribute__((visibility("default"))) result name parameters __VA_ARGS__ { \
    static constinit std::atomic<result(*) parameters> known{nullptr};                   \
    const auto call = real(known, #name);                                                \
    nap("before", #name);                                                                \
    const result answer = call arguments;                                                \
    nap("after", #name);                                                                 \
    return answer;                                                                       \
  }

NOISE_CALL(int, poll, (pollfd * fds, nfds_t count, int limit), (fds, count, limit))
NOISE_CALL(int, ppoll, (pollfd * fds, nfds_t count, const timespec* limit, const sigset_t* mask),
           (fds, count, limit, mask))
NOISE_CALL(int, epoll_wait, (int fd, epoll_event* events, int most, int limit), (fd, events, most, limit))
NOISE_CALL(ssize_t, read, (int fd, void* to, std::size_t length), (fd, to, length))
NOISE_CALL(ssize_t, write, (int fd, const void* from, std::size_t length), (fd, from, length))
NOISE_CALL(ssize_t, recv, (int fd, void* to, std::size_t length, int flags), (fd, to, length, flags))
NOISE_CALL(ssize_t, recvfrom,
           (int fd, void* to, std::size_t length, int flags, sockaddr* from, socklen_t* from_length),
           (fd, to, length, flags, from, from_length))
NOISE_CALL(ssize_t, recvmsg, (int fd, msghdr* message, int flags), (fd, message, flags))
NOISE_CALL(int, recvmmsg, (int fd, mmsghdr* messages, unsigned count, int flags, timespec* limit),
           (fd, messages, count, flags, limit))
NOISE_CALL(ssize_t, send, (int fd, const void* from, std::size_t length, int flags),
           (fd, from, length, flags))
NOISE_CALL(ssize_t, sendto,
           (int fd, const void* from, std::size_t length, int flags, const sockaddr* to, socklen_t to_length),
           (fd, from, length, flags, to, to_length))
NOISE_CALL(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), (fd, message, flags))
NOISE_CALL(int, sendmmsg, (int fd, mmsghdr* messages, unsigned count, int flags),
           (fd, messages, count, flags))
NOISE_CALL(int, accept4, (int fd, sockaddr* from, socklen_t* length, int flags), (fd, from, length, flags))
NOISE_CALL(int, connect, (int fd, const sockaddr* to, socklen_t length), (fd, to, length))
NOISE_CALL(int, close, (int fd), (fd))
NOISE_CALL(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex), noexcept)
NOISE_CALL(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex), noexcept)
NOISE_CALL(int, sem_wait, (sem_t * semaphore), (semaphore))
NOISE_CALL(int, sem_post, (sem_t * semaphore), (semaphore), noexcept)
NOISE_CALL(int, sched_yield, (), (), noexcept)

// A futex is reached by syscall() alone, as by std::atomic::wait(); other calls pass as they are.
extern "C" __attribute__((visibility("default"))) long syscall(long number, ...) noexcept {
  using Six = long (*)(long, long, long, long, long, long, long);
  static constinit std::atomic<Six> known{nullptr};
  const Six call = real(known, "syscall");
  va_list given;
  va_start(given, number);
  long a[6];
  for (long& one : a) one = va_arg(given, long);
  va_end(given);
  if (number == SYS_futex) nap("before", "futex");
  const long answer = call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (number == SYS_futex) nap("after", "futex");
  return answer;
}
