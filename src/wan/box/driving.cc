#include "wan/box/driving.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <limits>

namespace weft::wan {
namespace {

constexpr Duration kTick = milliseconds(500);
constexpr int kTurnsBetweenLooks = 32;  // at signals and ticks, while it is busy

std::int64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

WallClock::WallClock() : base_ns_(monotonic_ns() - 3'600'000'000'000) {}
// Picoseconds of 106 days fit. After that time stands still: a box then sends nothing again, but answers.
Time WallClock::now() const {
  return Time{std::min(monotonic_ns() - base_ns_, std::numeric_limits<std::int64_t>::max() / 1'000 - 1) *
              1'000};
}

Result<std::unique_ptr<Driving>> Driving::prepare() {
  auto d = std::unique_ptr<Driving>(new Driving());
  sigset_t all;
  sigemptyset(&all);
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&all, s);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // nobody reads what it says any more; what it owes it owes still
  d->signals_ = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
  if (d->signals_ < 0) return fail(std::string("signals cannot be waited for: ") + std::strerror(errno));
  prctl(PR_SET_TIMERSLACK, 1000UL);  // 1 us: sleeping ends when it should
  return d;
}

Driving::~Driving() {
  if (signals_ >= 0) close(signals_);
}

void Driving::run(const Turns& t) {
  Time tick = clock_.now();
  for (int busy = 0;;) {
    Time now = clock_.now();
    const bool moved = t.turn(now);
    if (moved && ++busy < kTurnsBetweenLooks) continue;
    busy = 0;
    if (tick <= now) {
      if (!t.tick(now)) return;
      tick = now + kTick;
    }
    pollfd wait[3] = {{t.descriptors[0], POLLIN, 0}, {t.descriptors[1], POLLIN, 0}, {signals_, POLLIN, 0}};
    timespec most{};
    if (!moved && !t.spin) {
      const Time until = std::min(t.next_due(now), tick);
      const std::int64_t ns = std::max<std::int64_t>(0, (until - clock_.now()).ns());
      most = {ns / 1'000'000'000, ns % 1'000'000'000};
    }
    if (ppoll(wait, 3, &most, nullptr) <= 0) continue;
    // An interface that goes down is an error of its socket; looking at it clears it.
    for (const pollfd& w : wait) {
      int error = 0;
      socklen_t bytes = sizeof error;
      if ((w.revents & POLLERR) != 0)
        static_cast<void>(getsockopt(w.fd, SOL_SOCKET, SO_ERROR, &error, &bytes));
    }
    for (signalfd_siginfo s; (wait[2].revents & POLLIN) != 0 && read(signals_, &s, sizeof s) == sizeof s;) {
      if (!t.signal(clock_.now(), static_cast<int>(s.ssi_signo))) return;
    }
  }
}

}  // namespace weft::wan
