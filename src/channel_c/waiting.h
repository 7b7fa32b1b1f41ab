// When a program that waits looks busily, and when it sleeps: hybrid polling (X-RDMA §4.2), as the Linux
// kernel's NAPI does it.
//
//   asleep --a completion, an event of the port, a deadline, a call that sends--> busy
//   busy   --nothing of that for `spin` (spin_us)--> asleep
//
// So an idle program costs nothing, one that is spoken to costs no system call, and the first message after a
// pause pays for waking up. A deadline that is nearer than kNap, and than `spin`, is awaited busily: going to
// sleep would take as long. With spin = 0 the program always sleeps.
//
// The rule alone; waiting.cc has the clock and the kernel.
#pragma once
#include <algorithm>
#include <cstdint>

#include "channel/clock.h"
#include "core/base/units.h"

namespace weft::channel {

struct WaitCounts {
  std::uint64_t busy = 0;       // looks that found nothing, and another one followed at once
  std::uint64_t sleeps = 0;     // times that the kernel was asked to wait
  std::uint64_t woken = 0;      // of these, by an event
  std::uint64_t deadlines = 0;  // and by a deadline of the context
};

class Waiting {
 public:
  static constexpr Duration kNap = microseconds(50);  // to fall asleep and to wake up, on a machine in use

  // The program sent something: what comes of it comes soon.
  void sent() { sent_ = true; }
  // A look at the context is over. `seen`: completions and frames so far; `told`: it found something to tell.
  void looked(Time now, std::uint64_t seen, bool told) {
    if (seen != seen_ || told || sent_) last_ = now;
    seen_ = seen;
    sent_ = false;
  }
  // A look found nothing to tell: is the next one to follow at once? `wake`: when the context has something
  // to do by itself.
  bool look_again(Time now, Time wake, Duration spin) {
    const bool again = spin.ps > 0 && (now - last_ < spin || wake - now < std::min(spin, kNap));
    counts_.busy += again ? 1U : 0U;
    return again;
  }
  enum class Woke : std::uint8_t {
    kEvent,
    kDeadline,
    kNothing
  };  // nothing: the program wanted to wait no longer
  void slept(Time now, Woke why) {
    ++counts_.sleeps;
    counts_.woken += why == Woke::kEvent ? 1U : 0U;
    counts_.deadlines += why == Woke::kDeadline ? 1U : 0U;
    if (why != Woke::kNothing) last_ = now;
  }
  void rebase(Duration by) { last_ = rebased(last_, by); }
  const WaitCounts& counts() const { return counts_; }

 private:
  Time last_{};  // when something happened
  std::uint64_t seen_ = 0;
  bool sent_ = false;
  WaitCounts counts_;
};

}  // namespace weft::channel
