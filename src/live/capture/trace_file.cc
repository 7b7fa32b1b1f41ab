#include "live/capture/trace_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

namespace weft::live {
namespace {

constexpr int kMostFiles = 1000;  // of one process
// Memory is free again after each write, so a long one would hold up what comes meanwhile.
constexpr std::size_t kAtOnce = 256U << 10U;
constexpr mode_t kOwnersOnly = 0600;

std::string reason(int error) { return std::strerror(error); }

// Payloads and keys are in it: from here on nobody else may open it. False: it is, or is also, somebody
// else's.
bool owners_only(int fd, const struct stat& s) {
  return s.st_uid == geteuid() && s.st_nlink == 1 && fchmod(fd, kOwnersOnly) == 0;
}

// Open and ours: an ordinary file, empty and locked. -1: it is somebody's, or cannot be had (errno).
int take(const std::string& name, int more_flags) {
  const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | more_flags, kOwnersOnly);
  if (fd < 0) return -1;
  struct stat s {};
  int error = 0;
  if (fstat(fd, &s) != 0) {
    error = errno;
  } else if (!S_ISREG(s.st_mode)) {
    error = EINVAL;
  } else if (!owners_only(fd, s)) {
    error = EPERM;
  } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    error = errno;
  } else if (fstat(fd, &s) != 0 || s.st_size != 0) {
    error = EEXIST;
  } else {
    return fd;
  }
  close(fd);
  errno = error;
  return -1;
}

std::string sentence(const std::string& name, int error) {
  return "trace '" + name + "': " +
         (error == EINVAL  ? "it is no ordinary file; name a file, such as trace.pcapng"
          : error == EPERM ? "it is another user's, or has other names; name a file of your own"
                           : reason(error));
}

}  // namespace

std::string name_of_process(const std::string& name, int pid, int nth) {
  const std::size_t slash = name.find_last_of('/') + 1;  // 0 where there is none
  std::size_t dot = name.find_last_of('.');
  if (dot == std::string::npos || dot <= slash) dot = name.size();
  std::string own = name.substr(0, dot);
  own.append(".").append(std::to_string(pid));
  if (nth > 1) own.append("-").append(std::to_string(nth));
  return own.append(name, dot);
}

Result<void> prepare_trace(const char* field, const std::string& name) {
  const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, kOwnersOnly);
  struct stat s {};
  if (fd < 0 || fstat(fd, &s) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return fail(std::string(field) + ": " + sentence(name, error));
  }
  Result<void> done;
  if (!S_ISREG(s.st_mode)) {
    done = fail(std::string(field) + ": " + sentence(name, EINVAL));
  } else if (!owners_only(fd, s)) {
    done = fail(std::string(field) + ": " + sentence(name, EPERM));
  } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    done = fail(std::string(field) + ": '" + name +
                "' is being written by another process; name another file, or end that process");
  } else if (ftruncate(fd, 0) != 0) {
    done = fail(std::string(field) + ": " + sentence(name, errno));
  }
  close(fd);
  return done;
}

TraceFile::TraceFile(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}

Result<std::unique_ptr<TraceFile>> TraceFile::open(const std::string& asked) {
  std::string name = asked;
  int fd = take(name, 0);
  // Somebody has it, or wrote it.
  for (int nth = 1; fd < 0 && (errno == EWOULDBLOCK || errno == EEXIST) && nth <= kMostFiles; ++nth) {
    name = name_of_process(asked, getpid(), nth);
    fd = take(name, O_NOFOLLOW);
  }
  if (fd < 0) return fail(sentence(name, errno));
  std::unique_ptr<TraceFile> file(new TraceFile(name, fd));
  if (auto started = file->start(); !started) return tl::unexpected(started.error());
  if (name != asked)
    std::fprintf(stderr, "weft: the packets of process %d are in %s, because %s is another's.\n", getpid(),
                 name.c_str(), asked.c_str());
  return file;
}

Result<void> TraceFile::start() {
  call_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (call_fd_ < 0) return fail("cannot open an eventfd: " + reason(errno));
  try {
    thread_ = std::thread([this] { write_on(); });
  } catch (const std::system_error& e) {
    return fail("cannot start a thread: " + reason(e.code().value()));
  }
  return {};
}

TraceFile::~TraceFile() {
  finish();
  if (fd_ >= 0) close(fd_);
  if (call_fd_ >= 0) close(call_fd_);
}

void TraceFile::call() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(call_fd_, &one, sizeof one);
}

void TraceFile::write_on() {
  // A file that may not grow is an error of a call, and no signal to the program.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  for (;;) {
    const bool last = stopping_.load(std::memory_order_acquire);
    write_waiting();
    if (last) return;
    pollfd fds{call_fd_, POLLIN, 0};
    const timespec wait{0, kEvery.ns()};
    ppoll(&fds, 1, &wait, nullptr);
    std::uint64_t drop = 0;
    [[maybe_unused]] const ssize_t n = read(call_fd_, &drop, sizeof drop);
    called_.store(false, std::memory_order_relaxed);
  }
}

void TraceFile::write_waiting() {
  for (;;) {
    std::span<const std::uint8_t> bytes = ring_.waiting();
    bytes = bytes.first(std::min(bytes.size(), kAtOnce));
    if (bytes.empty()) return;
    std::size_t done = bytes.size();
    if (error_ == 0) {
      const ssize_t n = write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        give_up(n < 0 ? errno : ENOSPC);
        continue;
      }
      done = static_cast<std::size_t>(n);
      blocks_.pass(bytes.first(done));
    } else {
      const std::uint64_t before = blocks_.packets();
      blocks_.pass(bytes);
      dropped_.fetch_add(blocks_.packets() - before, std::memory_order_relaxed);
    }
    ring_.take(done);
  }
}

// The file ends with its last whole block. Of the block that was cut the rest is still to pass, and is
// counted then.
void TraceFile::give_up(int error) {
  error_ = error;
  [[maybe_unused]] const int cut = ftruncate(fd_, static_cast<off_t>(blocks_.whole()));
  std::fprintf(stderr, "weft: %s: %s; the program goes on, and its packets are no longer recorded.\n",
               name_.c_str(), reason(error).c_str());
}

void TraceFile::finish() {
  if (finished_.exchange(true)) return;
  stopping_.store(true, std::memory_order_release);
  call();
  if (thread_.joinable()) thread_.join();
  if (lost() != 0)
    std::fprintf(stderr, "weft: %s has %llu packets; %llu more are missing, because %s.\n", name_.c_str(),
                 static_cast<unsigned long long>(taken() - dropped_.load(std::memory_order_relaxed)),
                 static_cast<unsigned long long>(lost()),
                 error_ != 0 ? reason(error_).c_str() : "they came faster than the disk took them");
}

void TraceFile::abandon(int nowhere) {
  finished_ = true;
  dup3(nowhere, fd_, O_CLOEXEC);
  dup3(nowhere, call_fd_, O_CLOEXEC);
  // There is no such thread here, to join or to detach: its name is left behind.
  static_cast<void>(new std::thread(std::move(thread_)));
}

}  // namespace weft::live
