// The calls of the C interface that wait, or prepare a program for waiting by itself.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "channel_c/edge.h"

using weft::Duration;
using weft::Time;
using weft::channel::at_edge_of;
using weft::channel::inherited;
using weft::channel::Waiting;

namespace {

constexpr std::int64_t kLongest = 3'600'000'000'000;  // nanoseconds of one sleep: an hour

// Until something rings, or for so long. What woke the program may be an event that a look takes.
void sleep(weft_context& c, std::int64_t left_ns) {
  std::uint64_t sleep_us = 0;
  if (weft_arm(&c, &sleep_us) != 0 || sleep_us == 0) return;
  const auto nap =
      std::min({left_ns, kLongest,
                static_cast<std::int64_t>(std::min<std::uint64_t>(sleep_us, kLongest / 1000)) * 1000});
  pollfd rings{weft_event_fd(&c), POLLIN, 0};
  const timespec most{nap / 1'000'000'000, nap % 1'000'000'000};
  const bool rang = ppoll(&rings, 1, &most, nullptr) > 0;
  c.context->look_next_time();
  const Time now = c.now();
  c.waiting.slept(now, rang                            ? Waiting::Woke::kEvent
                       : c.context->next_wake() <= now ? Waiting::Woke::kDeadline
                                                       : Waiting::Woke::kNothing);
}

// One look. Answers what weft_poll() does.
int look(weft_context& c, weft_notice* notices, int room) {
  const int n = weft_poll(&c, notices, room);
  const auto& counts = c.context->counts();
  c.waiting.looked(c.context->now(), counts.completions + counts.stream_frames, n > 0);
  return n;
}

}  // namespace

int weft_event_fd(const weft_context* c) { return c->port->event_fd(); }

int weft_arm(weft_context* c, uint64_t* sleep_us) {
  if (sleep_us != nullptr) *sleep_us = 1000;  // without memory: look again soon
  (void)at_edge_of(c, [&] {
    const Time now = c->now();
    c->context->look_next_time();
    c->context->poll(now);
    (void)c->context->arm();
    if (!c->has_kept) c->has_kept = c->context->next(c->kept);
    c->tend(now, true);
    Time wake = c->context->next_wake();
    if (c->publisher->behind()) wake = std::min(wake, now.after(weft::milliseconds(2)));
    if (sleep_us != nullptr)
      *sleep_us = wake == weft::kNever ? UINT64_MAX
                  : wake <= now        ? 0
                                       : static_cast<std::uint64_t>((wake - now).us()) + 1;
    return 0;
  });
  return c->has_kept ? 1 : 0;
}

int weft_wait(weft_context* c, weft_notice* notices, int room, int timeout_ms) {
  const auto begin = std::chrono::steady_clock::now();
  if (room <= 0 || inherited(c)) {  // nothing can be told, however long it waits
    (void)weft_poll(c, notices, room);
    return 0;
  }
  for (;;) {
    const int n = look(*c, notices, room);
    if (n != 0) return n;
    std::int64_t left_ns = kLongest;
    if (timeout_ms >= 0) {
      left_ns = std::chrono::nanoseconds(begin + std::chrono::milliseconds(timeout_ms) -
                                         std::chrono::steady_clock::now())
                    .count();
      if (left_ns <= 0) return 0;
    }
    const auto& context = *c->context;
    if (!c->waiting.look_again(context.now(), context.next_wake(), context.config().spin)) sleep(*c, left_ns);
  }
}
