#include "live/wires/program_memory.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace weft::live {

namespace detail {
thread_local constinit Landing* landing = nullptr;
}

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS};
constexpr std::uint64_t kPage = 4096;  // a fault may be reported by its page

// A signal handler has no arguments, so what it knows belongs to the process. Each time that another handler
// stands in front of ours, one more of ours is put before it, which passes signals on to it. So a program's
// handler that calls the one before it never comes around in a circle.
constexpr std::size_t kMost = 8;
std::atomic_flag installing;  // for as long as a few system calls take
struct sigaction before[kMost][2];

void act_as_by_default(int signal, const siginfo_t& info) {
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  sigaction(signal, &plain, nullptr);
  // The kernel's own faults come again as soon as we return; what was sent must be sent again.
  if (info.si_code <= 0) raise(signal);
}

// What would have happened without us.
void pass_on(const struct sigaction& old, int signal, siginfo_t* info, void* context) {
  if (old.sa_handler == SIG_DFL) return act_as_by_default(signal, *info);
  if (old.sa_handler == SIG_IGN) return info->si_code > 0 ? act_as_by_default(signal, *info) : void();
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, &old.sa_mask, &mask);
  if ((old.sa_flags & SA_SIGINFO) != 0) {
    old.sa_sigaction(signal, info, context);
  } else {
    old.sa_handler(signal);
  }
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

bool lands(const siginfo_t& info) {
  const detail::Landing* const to = detail::landing;
  if (to == nullptr || info.si_code <= 0) return false;
  const auto at = reinterpret_cast<std::uint64_t>(info.si_addr);
  return (at | (kPage - 1)) >= to->begin && (at & ~(kPage - 1)) < to->end;
}

template <std::size_t Level>
void on_fault(int signal, siginfo_t* info, void* context) {
  if (!lands(*info)) return pass_on(before[Level][signal == SIGBUS ? 1 : 0], signal, info, context);
  // Neither the kernel nor the thread sanitizer, which blocks every signal meanwhile, sees this handler
  // return.
  pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
  longjmp(std::exchange(detail::landing, nullptr)->place, 1);
}

using Handler = void (*)(int, siginfo_t*, void*);
template <std::size_t... Level>
constexpr std::array<Handler, kMost> handlers(std::index_sequence<Level...>) {
  return {on_fault<Level>...};
}
constexpr std::array<Handler, kMost> kHandlers = handlers(std::make_index_sequence<kMost>());

bool is_ours(const struct sigaction& a) {
  return (a.sa_flags & SA_SIGINFO) != 0 &&
         std::find(kHandlers.begin(), kHandlers.end(), a.sa_sigaction) != kHandlers.end();
}

// One line of /proc/self/maps: "start-end rwxp …", hexadecimal.
struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool readable = false;
  bool writable = false;
};
bool parse(std::string_view line, Mapping& m) {
  const char* const end = line.data() + line.size();
  const auto start = std::from_chars(line.data(), end, m.start, 16);
  if (start.ec != std::errc() || start.ptr == end) return false;
  const auto stop = std::from_chars(start.ptr + 1, end, m.end, 16);
  if (stop.ec != std::errc() || end - stop.ptr < 3) return false;
  m.readable = stop.ptr[1] == 'r';
  m.writable = stop.ptr[2] == 'w';
  return true;
}

constexpr std::size_t kLongestStart = 64;  // all that is read of a line

// Mappings come in ascending order; those of a range follow each other without a gap.
class Walk {
 public:
  enum class Found : std::uint8_t { kMore, kAll, kHole };
  Walk(std::uint64_t from, std::uint64_t to, bool writable) : at_(from), to_(to), writable_(writable) {}
  Found next(const Mapping& m) {
    if (m.end <= at_) return Found::kMore;
    if (m.start > at_ || !m.readable || (writable_ && !m.writable)) return Found::kHole;
    at_ = m.end;
    return at_ >= to_ ? Found::kAll : Found::kMore;
  }

 private:
  std::uint64_t at_;
  std::uint64_t to_;
  bool writable_;
};

}  // namespace

void guard_program_memory() {
  while (installing.test_and_set(std::memory_order_acquire)) sched_yield();
  static std::size_t used[2];
  for (const int signal : kSignals) {
    const std::size_t which = signal == SIGBUS ? 1 : 0;
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) != 0 || is_ours(now) || used[which] == kMost) continue;
    before[used[which]][which] = now;
    struct sigaction ours {};
    ours.sa_sigaction = kHandlers[used[which]++];
    // Jumping out of the handler must leave neither the signal blocked nor the alternate stack in use.
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | (now.sa_flags & SA_RESTART);
    sigemptyset(&ours.sa_mask);
    sigaction(signal, &ours, nullptr);
  }
  installing.clear(std::memory_order_release);
}

bool is_mapped(const void* at, std::uint64_t length, bool writable) {
  if (length == 0) return true;
  const auto from = reinterpret_cast<std::uint64_t>(at);
  if (from + length < from) return false;
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  Walk walk(from, from + length, writable);
  std::array<char, 8192> buffer;
  std::size_t held = 0;
  Walk::Found found = Walk::Found::kMore;
  while (found == Walk::Found::kMore) {
    const ssize_t n = read(fd, buffer.data() + held, buffer.size() - held);
    if (n <= 0) {
      found = n < 0 ? Walk::Found::kAll : Walk::Found::kHole;
      break;
    }
    std::string_view text(buffer.data(), held + static_cast<std::size_t>(n));
    for (std::size_t end = text.find('\n'); end != text.npos && found == Walk::Found::kMore;
         end = text.find('\n')) {
      Mapping m;
      if (parse(text.substr(0, end), m)) found = walk.next(m);
      text.remove_prefix(end + 1);
    }
    held = std::min(text.size(), kLongestStart);  // of a line whose rest is yet to come
    std::copy_n(text.begin(), held, buffer.begin());
  }
  close(fd);
  return found == Walk::Found::kAll;
}

}  // namespace weft::live
