// The rule by which a program that waits looks busily or sleeps, in virtual time.
#include "channel_c/waiting.h"

#include <gtest/gtest.h>

namespace weft::channel {
namespace {

constexpr Duration kSpin = microseconds(50);

// Nothing has ever happened: it sleeps at once, again and again, and looks no more often than it is woken.
TEST(Waiting, SleepsUntilSomethingHappens) {
  Waiting w;
  Time now = Time{} + seconds(1);
  for (int i = 0; i < 3; ++i) {
    w.looked(now, 0, false);
    EXPECT_FALSE(w.look_again(now, kNever, kSpin));
    now = now + seconds(1);
    w.slept(now, Waiting::Woke::kNothing);
  }
  EXPECT_EQ(w.counts().busy, 0U);
  EXPECT_EQ(w.counts().sleeps, 3U);
}

// An event, a deadline, a completion that is nobody's news, a message, and what the program sends: each
// begins a busy time, which ends when nothing has happened for 50 us.
TEST(Waiting, LooksBusilyAfterWhateverHappened) {
  for (int what = 0; what < 5; ++what) {
    Waiting w;
    Time now = Time{} + seconds(1);
    w.looked(now, 7, false);
    now = now + seconds(1);
    w.looked(now, 7, false);
    EXPECT_FALSE(w.look_again(now, kNever, kSpin));
    if (what == 0) w.slept(now, Waiting::Woke::kEvent);
    if (what == 1) w.slept(now, Waiting::Woke::kDeadline);
    if (what == 2) w.looked(now, 8, false);
    if (what == 3) w.looked(now, 7, true);
    if (what == 4) w.sent();
    const std::uint64_t seen = what == 2 ? 8 : 7;
    w.looked(now, seen, false);
    EXPECT_TRUE(w.look_again(now, kNever, kSpin)) << what;
    now = now + microseconds(49);
    w.looked(now, seen, false);
    EXPECT_TRUE(w.look_again(now, kNever, kSpin)) << what;
    now = now + microseconds(1);
    w.looked(now, seen, false);
    EXPECT_FALSE(w.look_again(now, kNever, kSpin)) << what;
    EXPECT_EQ(w.counts().busy, 2U);
    EXPECT_EQ(w.counts().woken, what == 0 ? 1U : 0U);
    EXPECT_EQ(w.counts().deadlines, what == 1 ? 1U : 0U);
  }
}

TEST(Waiting, AwaitsADeadlineThatIsNearBusily) {
  Waiting w;
  const Time now = Time{} + seconds(1);
  w.looked(now, 0, false);
  EXPECT_TRUE(w.look_again(now, now + microseconds(49), kSpin));
  EXPECT_TRUE(w.look_again(now, now - microseconds(1), kSpin));
  EXPECT_FALSE(w.look_again(now, now + microseconds(50), kSpin));
}

// Keepalives are such deadlines, and an idle program costs nothing.
TEST(Waiting, SleepsUntilADeadlineThatIsFarHoweverLongItSpins) {
  Waiting w;
  const Time now = Time{} + seconds(10);
  w.looked(now, 0, false);
  EXPECT_FALSE(w.look_again(now, now + milliseconds(1), seconds(1)));
}

TEST(Waiting, NeverLooksBusilyWhereItMayNot) {
  Waiting w;
  const Time now = Time{} + seconds(1);
  w.slept(now, Waiting::Woke::kEvent);
  w.looked(now, 1, true);
  EXPECT_FALSE(w.look_again(now, now, Duration{}));
}

// The clock goes back by weeks: what happened a moment ago still did, and the busy time ends all the same.
TEST(Waiting, EndsItsBusyTimeAlthoughTheClockGoesBack) {
  Waiting w;
  Time now = Time{} + kMostRebase + seconds(1);
  w.looked(now, 0, true);
  w.rebase(kMostRebase);
  now = now - kMostRebase;
  EXPECT_TRUE(w.look_again(now, kNever, kSpin));
  EXPECT_FALSE(w.look_again(now + kSpin, kNever, kSpin));
}

}  // namespace
}  // namespace weft::channel
