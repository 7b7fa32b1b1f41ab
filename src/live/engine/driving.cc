// Who moves packets, and when.
//
// A program that polls drives the shard itself: poll() receives, and sends what became possible. A
// background thread takes over when nobody polled for a while (patience.h) and then sleeps on the socket.
// While a program polls, the thread must not sleep on the socket, for every packet would then wake it on the
// core that the program spins on; it looks at the time instead.
//
// Doorbells: the first post transmits at once when nothing of its path is in flight; later ones wait
// for the next poll, kMostPosts of them, or kLongestWait, because packets that leave together cost one
// system call. A program that posts will poll or post again, unless it waits for an event: then every post
// transmits. Should it do neither, the background thread looks after that while; if that thread is late (it
// may share a core with the program), it is called once and the posts wait all the same.
//
// Replies first: a poll that finds completions returns at once. What it received may let ACKs leave, and
// requests and answers of any queue pair: they go with the next post, or in the next poll that finds none, so
// that a reply posted right away shares their train.
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "live/engine/nic_state.h"
#include "live/wires/udp.h"

namespace weft::live {
namespace {

constexpr Duration kTakeOver = Patience::kUsual;
// A program that called no longer ago is still there, though the thread may have its core now.
constexpr Duration kPresent = microseconds(20);
constexpr std::uint64_t kShortTurn = 100'000;  // ns, the shortest that may be asked for
constexpr std::uint32_t kMostPosts = 32;
constexpr Duration kLongestWait = microseconds(5);
// With traffic lately the background thread looks at least this often, so that a post needs no system
// call to make it watch a new deadline (the smallest retransmission time-out is this long).
constexpr Duration kAlert = milliseconds(1);
constexpr Duration kLately = milliseconds(100);
// After traffic it stays awake this long before it sleeps on the socket, for the next packet of a dialogue
// comes sooner than a sleeper wakes. It yields between looks; if somebody else then had the core for long,
// the core is crowded, and a sleeper is scheduled sooner than one that yields.
constexpr Duration kLinger = microseconds(50);
constexpr Duration kCrowded = microseconds(500);
constexpr Duration kCrowdedFor = milliseconds(500);
// The kernel ends a long sleep late, by a thousandth of it, or a two-hundredth in a niced process. So most of
// it is slept first, and what is then left next.
constexpr std::int64_t kLateShare = 128;
constexpr Duration kShortSleep = milliseconds(1);
constexpr Time kOld = Time{} + kDay * 100;
constexpr Duration kPageEvery = milliseconds(100);  // the statistics page, while anything happens
constexpr Duration kPageAtRest = seconds(1);
constexpr std::uint32_t kTurns = 8;  // receive batches per turn; programs get in between

// Since Linux 6.12 a thread says how long its turns on a processor are (0: as others'), and one that wakes
// for a short turn need not wait for the end of a long one, which takes milliseconds. Older kernels take the
// call and know nothing of it.
void ask_for_turns(std::uint64_t ns) {
  // The first of the kernel's structure; its header does not go with the library's.
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } a{};
  a.size = sizeof a;
  if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) != 0 || a.policy != SCHED_OTHER) return;
  a.runtime = ns;
  syscall(SYS_sched_setattr, 0, &a, 0);
}

}  // namespace

bool Nic::program_drives(Time now) const {
  return now - Time{polled_at_.load(std::memory_order_relaxed)} < patience_.now();
}

bool Nic::watched(Time now) const {
  return Time{wakes_at_.load(std::memory_order_relaxed)} <= now + kTakeOver;
}

void Nic::transmit_owned(Time now) {
  posts_ = 0;
  waiting_ = false;
  shard_.transmit(now, *wire_);
  // The background thread may be asleep since before there were deadlines, or more to send than leaves in one
  // go.
  if (shard_.next_deadline() < Time{wakes_at_.load(std::memory_order_relaxed)} ||
      (shard_.has_to_send() && !watched(now)) ||
      (paced_ && wire_->next_due() < Time{wakes_at_.load(std::memory_order_relaxed)}))
    wake();
}

std::uint32_t Nic::poll(CqId cq, std::span<Completion> out) {
  // Waits if it must: a program that was woken by an event polls once, and must find what woke it.
  ownership_.acquire();
  std::uint32_t n = device().poll_cq(cq, out);
  // With something to return nothing is moved, owed ACKs included: this may be the other queue of a program
  // that is about to reply. Only a poll that finds its queue empty receives, so what waits is bounded.
  if (n == 0) {
    const Time now = clock_.now();
    called_at_.store(now.ps, std::memory_order_relaxed);
    if (!armed_) polled_at_.store(now.ps, std::memory_order_relaxed);
    if (shard_.has_to_send()) transmit_owned(now);
    const bool received = shard_.receive(now, *wire_);
    const bool fired = shard_.fire(now);
    n = device().poll_cq(cq, out);
    if (n != 0) {
      if (shard_.has_to_send() && !watched(now)) wake();
    } else {
      if (received || fired || shard_.wire_was_full()) transmit_owned(now);
    }
    // What the kernel did took its time.
    if (received || fired) called_at_.store(clock_.now().ps, std::memory_order_relaxed);
    dispatch_events_owned();
  }
  if (n != 0) armed_ = false;
  ownership_.release();
  return n;
}

std::uint32_t Nic::collect(CqId cq, std::span<Completion> out) {
  const Owned owned(ownership_);
  const std::uint32_t n = device().poll_cq(cq, out);
  if (n != 0) armed_ = false;
  return n;
}

void Nic::end_posting(const QpRecord& qp) {
  if (posts_ != 0) {
    const Time now = clock_.now();
    if (!waiting_) first_post_ = now;
    waiting_ = true;
    const bool one_of_many = now - posted_at_ < kLongestWait;
    if (one_of_many && !armed_) polled_at_.store(now.ps, std::memory_order_relaxed);
    const bool alone = !qp.has_path || device().path_in_flight(qp.path).n == 0;
    if (alone || posts_ >= kMostPosts || now - first_post_ > kLongestWait || !program_drives(now)) {
      transmit_owned(now);
    } else if (!watched(now) && !called_.exchange(true)) {
      wake();  // should the program stop polling now, somebody must look
    }
    posted_at_ = clock_.now();
    called_at_.store(posted_at_.ps, std::memory_order_relaxed);
  }
  dispatch_events_owned();
  ownership_.release();
}

cm::Known Nic::ask(const wire::Address& peer, Qpn target) {
  constexpr Duration kLook = microseconds(200);  // somebody else may take the answer off the wire
  for (;;) {
    Time now{};
    {
      // The first shard's connection manager may have agreed with the peer's on a mode.
      const Owned owned(first_->ownership());
      if (const auto agreed = first_->connections_owned().mode_towards(peer, target)) {
        cm::Known known;
        known.mode = *agreed;
        return known;
      }
    }
    {
      const Owned owned(ownership_);
      now = clock_.now();
      const cm::Known known =
          shard_.services().discovery().look_up(now, attributes_.own.towards(peer), peer, target);
      if (known.knowledge != cm::Knowledge::kAsking) return known;
      if (shard_.has_to_send()) transmit_owned(now);
      const bool received = shard_.receive(now, *wire_);
      const bool fired = shard_.fire(now);
      if (received || fired) transmit_owned(now);
      dispatch_events_owned();
      if (received) continue;
    }
    pollfd fds[3] = {
        {wire_->descriptor(), POLLIN, 0}, {wire_->mailbox(), POLLIN, 0}, {wire_->aside(), POLLIN, 0}};
    const timespec wait{0, kLook.ns()};
    ppoll(fds, 3, &wait, nullptr);
  }
}

void Nic::arm_owned() {
  armed_ = true;
  polled_at_.store(kLongAgo);
  if (parked_.load()) wake();
}

void Nic::settle_owned() {
  if (shard_.has_to_send()) transmit_owned(clock_.now());
}

void Nic::settle_services_owned() {
  settle_owned();
  if (!shard_.take_sent_home()) return;
  constexpr int kLooks = 16;  // for what lay in the socket before it
  int empty = 0;
  for (int i = 0; i < kLooks && empty < 2; ++i) empty = shard_.receive(clock_.now(), *wire_) ? 0 : empty + 1;
  settle_owned();
  dispatch_events_owned();
}

void Nic::farewell_owned(Qpn qpn) {
  constexpr int kRepeats = 3;
  for (int i = 0; i < kRepeats; ++i) device().acknowledge_again(qpn);
  shard_.transmit(clock_.now(), *wire_);
}

void Nic::hand_over() {
  const Owned owned(ownership_);
  if (shard_.has_to_send()) transmit_owned(clock_.now());
  polled_at_.store(kLongAgo);
  if (parked_.load()) wake();
}

void Nic::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_fd_, &one, sizeof one);
}

// Sleeps until `until`, a wake(), or (if asked) something on the wire.
void Nic::sleep(Time now, Time until, bool watch_wire) {
  bool rests = false;
  if (watch_wire) {
    const Owned owned(ownership_);
    rests = wire_->rest();
    if (!rests) wire_->rise();
  }
  if (watch_wire && !rests) return;
  pollfd fds[5] = {{wake_fd_, POLLIN, 0},
                   {wire_->descriptor(), POLLIN, 0},
                   {wire_->mailbox(), POLLIN, 0},
                   {wire_->aside(), POLLIN, 0},
                   {groups_fd_.load(), POLLIN, 0}};
  std::int64_t ns = std::max<std::int64_t>(0, (until - now).ns());
  if (ns > kShortSleep.ns()) ns -= ns / kLateShare;
  const timespec wait{ns / 1'000'000'000, ns % 1'000'000'000};
  ppoll(fds, watch_wire ? 5 : 1, until == kNever ? nullptr : &wait, nullptr);
  if (rests) {
    const Owned owned(ownership_);
    wire_->rise();
  }
  if ((fds[0].revents & POLLIN) != 0) {
    std::uint64_t drop = 0;
    [[maybe_unused]] const ssize_t n = read(wake_fd_, &drop, sizeof drop);
  }
}

// Who has it drives, so an eager thread comes back rather than wait: one that waits for a lock yields its
// core, and gets a crowded one back at the next tick of the clock, milliseconds later. While the program
// drives that is just as well.
bool Nic::take_wheel(std::uint32_t& missed) {
  constexpr std::uint32_t kMostMisses = 8;
  if (!patience_.is_eager() || missed == kMostMisses) {
    ownership_.acquire();
  } else if (!ownership_.try_acquire()) {
    ++missed;
    return false;
  }
  missed = 0;
  return true;
}

// Something came, and the thread took it. Was it in time? `parked`: it had not watched the wire since it last
// took something.
void Nic::learn_who_calls(Time now, bool& parked) {
  if (now - Time{called_at_.load(std::memory_order_relaxed)} < kPresent) {
    if (patience_.saw_program()) ask_for_turns(0);
  } else if ((parked || patience_.is_eager()) && patience_.was_late(now)) {
    ask_for_turns(kShortTurn);
  }
  parked = false;
}

// One turn at the wheel; returns when the next is due, unless the wire has something before. What it
// returns is announced under the ownership: who arms an earlier deadline later on sees it and wakes us.
Time Nic::background_turn(Time now, Time& moved_at) {
  const Owned owned(ownership_, std::adopt_lock);
  called_.store(false, std::memory_order_relaxed);
  posts_ = 0;
  waiting_ = false;
  const bool moved = shard_.step(now, *wire_, kTurns);
  dispatch_events_owned();
  if (now > kOld && !std::exchange(told_old_, true)) say_old();
  Time until = now;
  if (moved || shard_.wire_was_full()) {
    moved_at = now;
  } else {
    until = std::min(shard_.next_deadline(), wire_->next_due());
    if (now - moved_at < kLately) until = std::min(until, now + kAlert);
  }
  wakes_at_.store(until.ps, std::memory_order_relaxed);
  return until;
}

void Nic::say_old() const {
  std::fprintf(
      stderr,
      "weft: this process opened %s a hundred days ago; start it anew within five days, because after that "
      "nothing that is lost is sent again.\n",
      to_text(attributes_.own.first).c_str());
}

Time Nic::publish(Time now) {
  if (!page_.there()) return kNever;
  if (now >= page_at_) {
    const Owned owned(ownership_);
    page_.publish_owned(*this);
    page_at_ = now + kPageEvery;
    stirred_ = false;
  }
  return stirred_ ? page_at_ : page_at_ + (kPageAtRest - kPageEvery);
}

void Nic::background() {
  // Signals are for the program's own threads, but for those of our own faults; deadlines are finer than the
  // default slack of 50 us.
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS}) sigdelset(&all, fault);  // program_memory.h
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  prctl(PR_SET_TIMERSLACK, 1UL);
  Time moved_at{};
  Time crowded_until{};
  bool parked = false;
  std::uint32_t missed = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    const Time now = clock_.now();
    if (!program_drives(now)) {
      if (!take_wheel(missed)) {
        sleep(now, now + Patience::kEager, false);
        continue;
      }
      const Time due = background_turn(now, moved_at);
      const Time until = std::min(due, publish(now));
      if (moved_at == now) learn_who_calls(now, parked);
      stirred_ = stirred_ || moved_at == now;
      if (until <= now) continue;
      if (now - moved_at < kLinger && now > crowded_until) {
        sched_yield();
        const Time back = clock_.now();
        if (back - now > kCrowded) crowded_until = back + kCrowdedFor;
      } else {
        sleep(now, until, true);
      }
      continue;
    }
    stirred_ = true;
    (void)publish(now);
    called_.store(false, std::memory_order_relaxed);
    parked_.store(true);
    const Time until = Time{polled_at_.load()} + patience_.now();
    wakes_at_.store(until.ps, std::memory_order_relaxed);
    if (until > now) sleep(now, until, false);
    parked_.store(false);
    parked = true;
    if (called_at_.load(std::memory_order_relaxed) >= now.ps && patience_.saw_program()) ask_for_turns(0);
  }
}

}  // namespace weft::live
