#include "lab/pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

#include "process/child.h"

namespace weft::lab {
namespace {

constexpr int kTurnMs = 500;

struct Child {
  pid_t id;
  int pipe;
  std::size_t piece;
  std::string text;
};

// SIGINT and SIGTERM come through a file descriptor while it lives.
class Signals {
 public:
  Signals() {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    sigprocmask(SIG_BLOCK, &wanted, &before_);
    fd_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~Signals() {
    signalfd_siginfo info{};
    while (read(fd_, &info, sizeof info) > 0) {
    }
    close(fd_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  int fd() const { return fd_; }
  void restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
  int fd_ = -1;
};

[[noreturn]] void be_child(int out, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = write(out, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    written += static_cast<std::size_t>(n);
  }
  _exit(0);
}

bool begin(std::size_t number, const std::string& piece, const PoolCalls& calls, const Signals& signals,
           std::vector<Child>& children) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  std::fflush(nullptr);
  const pid_t id = process::spawn([&] {
    signals.restore();
    close(ends[0]);
    try {
      be_child(ends[1], calls.work(piece));
    } catch (const std::bad_alloc&) {  // its parent says which run it was
      std::fputs("weft: a run needs more memory than the machine has free.\n", stderr);
      _exit(1);
    }
  });
  if (id < 0) {
    close(ends[0]);
    close(ends[1]);
    return false;
  }
  close(ends[1]);
  children.push_back({id, ends[0], number, {}});
  return true;
}

// Reads what there is; true when the child has closed its end.
bool drain(Child& c) {
  std::array<char, 65536> buffer;
  const ssize_t n = read(c.pipe, buffer.data(), buffer.size());
  if (n > 0) c.text.append(buffer.data(), static_cast<std::size_t>(n));
  return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

ChildResult reap(Child& c) {
  close(c.pipe);
  int status = 0;
  rusage usage{};
  while (wait4(c.id, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  ChildResult o;
  o.text = std::move(c.text);
  o.memory = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024U;
  if (WIFSIGNALED(status)) {
    o.died = fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    o.died = fmt::format("ended with exit code {}", WEXITSTATUS(status));
  }
  return o;
}

}  // namespace

PoolEnd run_pool(const std::vector<std::string>& pieces, unsigned at_once, const PoolCalls& calls) {
  const Signals signals;
  std::vector<Child> children;
  std::size_t next = 0;
  PoolEnd end = PoolEnd::kAll;
  while (next < pieces.size() || !children.empty()) {
    while (end == PoolEnd::kAll && next < pieces.size() && children.size() < at_once) {
      if (begin(next, pieces[next], calls, signals, children)) {
        ++next;
        continue;
      }
      if (!children.empty()) break;  // no room for another now; one that ends makes some
      calls.done(next++, {{}, fmt::format("could not be started: {}", std::strerror(errno)), 0});
    }
    if (end != PoolEnd::kAll && children.empty()) return end;
    std::vector<pollfd> wait{{signals.fd(), POLLIN, 0}};
    for (const Child& c : children) wait.push_back({c.pipe, POLLIN, 0});
    poll(wait.data(), wait.size(), kTurnMs);
    if ((wait[0].revents & POLLIN) != 0) {
      for (const Child& c : children) kill(c.id, SIGKILL);
      for (Child& c : children) reap(c);
      return PoolEnd::kInterrupted;
    }
    for (std::size_t i = children.size(); i-- > 0;) {
      if (wait[i + 1].revents == 0 || !drain(children[i])) continue;
      Child c = std::move(children[i]);
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
      if (!calls.done(c.piece, reap(c))) end = PoolEnd::kStopped;
    }
    calls.turn();
  }
  return end;
}

}  // namespace weft::lab
