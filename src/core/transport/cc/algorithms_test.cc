// What is special about each algorithm: the arithmetic of its paper. What they share is in
// controller_test.cc.
#include <gtest/gtest.h>

#include "core/transport/cc/controller.h"

namespace weft {
namespace {

constexpr std::uint32_t kBdp = 110;
constexpr Rate kLine = gigabits(100);

// SIGCOMM 2015's arithmetic: the first CNP halves, alpha being one; five steps halve the distance back.
TEST(Dcqcn, HalvesAtTheFirstNotificationAndRecoversInFiveSteps) {
  ControllerState s;
  kDcqcnSigcomm15.start(s, {gigabits(40), kBdp, Time{}});
  kDcqcnSigcomm15.on_cnp(s, Time{});
  EXPECT_EQ(kDcqcnSigcomm15.permit(s, Time{}).rate, gigabits(20));
  Kbps expected = 20'000'000;
  for (int step = 1; step <= 5; ++step) {
    expected += (40'000'000 - expected + 1) / 2;
    EXPECT_EQ(kDcqcnSigcomm15.permit(s, Time{} + microseconds(55 * step)).rate.bps,
              std::uint64_t{expected} * 1000);
  }
}

TEST(Dcqcn, DecreasesLessWhenNotificationsAreRare) {
  ControllerState s;
  kDcqcnSigcomm15.start(s, {gigabits(40), kBdp, Time{}});
  kDcqcnSigcomm15.on_cnp(s, Time{});
  const Time later = Time{} + milliseconds(30);  // alpha has faded to an eighth, the rate is back
  EXPECT_EQ(kDcqcnSigcomm15.permit(s, later).rate.bps, 0U);
  kDcqcnSigcomm15.on_cnp(s, later);
  EXPECT_GT(kDcqcnSigcomm15.permit(s, later).rate, gigabits(36));
  EXPECT_LT(kDcqcnSigcomm15.permit(s, later).rate, gigabits(39));
}

// RFC 8257 §3.3: one reaction for each window of data, and that is one round trip from the reaction on, not
// to the end of the window that alpha is being measured over. Marks come until the queue shrinks, so for just
// that long.
TEST(Dctcp, AWindowOfMarksReducesOnce) {
  for (const std::uint32_t before : {0U, 30U, 50U, 99U}) {
    ControllerState s;
    kDctcp.start(s, {kLine, 100, Time{}});
    AckSample acked;
    acked.packets = 1;
    AckSample echo;
    echo.congestion_echo = true;
    for (std::uint32_t i = 0; i < before; ++i) kDctcp.on_ack(s, acked);
    for (std::uint32_t i = 0; i < 100; ++i) {
      kDctcp.on_ack(s, echo);
      kDctcp.on_ack(s, acked);
    }
    EXPECT_GE(kDctcp.permit(s, Time{}).window_packets, 50U) << before;
    EXPECT_LE(kDctcp.permit(s, Time{}).window_packets, 51U) << before;
    kDctcp.on_ack(s, echo);
    EXPECT_LE(kDctcp.permit(s, Time{}).window_packets, 30U) << "the next window of marks reduces again";
  }
}

TEST(Dctcp, ReducesByTheFractionMarked) {
  ControllerState all, few;
  kDctcp.start(all, {kLine, 1000, Time{}});
  kDctcp.start(few, {kLine, 1000, Time{}});
  const auto ack = [](ControllerState& s, bool mark) {
    AckSample a;
    a.packets = 1;
    a.congestion_echo = mark;
    kDctcp.on_ack(s, a);
  };
  for (int i = 0; i < 1000; ++i) ack(all, true);
  EXPECT_EQ(kDctcp.permit(all, Time{}).window_packets, 500U);
  for (int i = 0; i < 400'000; ++i) ack(few, i % 16 == 0);
  // A window of sixteen and more is always reacting to some mark and does not grow; a shorter one grows
  // between two marks, but loses what it had gained towards the next packet with each. A thirty-second of it
  // is nothing.
  EXPECT_GE(kDctcp.permit(few, Time{}).window_packets, 8U);
  EXPECT_LE(kDctcp.permit(few, Time{}).window_packets, 32U);
}

TEST(Timely, FollowsTheGradientBetweenItsThresholds) {
  ControllerState s;
  kTimely100.start(s, {kLine, kBdp, Time{}});
  const auto rtt = [&](std::int64_t us) {
    AckSample a;
    a.packets = 1;
    a.rtt = microseconds(us);
    kTimely100.on_ack(s, a);
    const Rate r = kTimely100.permit(s, Time{}).rate;
    return r.bps == 0 ? kLine : r;
  };
  rtt(100);
  EXPECT_EQ(rtt(100), kLine);
  // It grows by 10 us: diff 8.75 us, gradient 0.4375, a cut of 0.8 x 0.4375 = 35 percent.
  const Rate cut = rtt(110);
  EXPECT_GT(cut, gigabits(64));
  EXPECT_LT(cut, gigabits(66));
  // It stays: the gradient fades, then the rate rises, from the fifth time on by five times as much.
  while (rtt(90) < cut) {
  }
  Rate last = rtt(90);
  for (int i = 0; i < 6; ++i) last = rtt(90);
  const Rate next = rtt(90);
  EXPECT_EQ(next.bps - last.bps, 500'000'000U);
}

// IRN §4.3, "backing off on losses": each loss halves the rate of the rows that say so, down to the least
// one, and the published rows take no notice. What raises a rate otherwise raises it again.
TEST(BackOff, HalvesARateOncePerLoss) {
  struct Pair {
    const Controller& published;
    const Controller& backs_off;
  };
  for (const Pair& p : {Pair{kTimely100, kTimely100BackOff}, Pair{kTimely40, kTimely40BackOff},
                        Pair{kDcqcnSigcomm15, kDcqcnBackOff}}) {
    SCOPED_TRACE(p.backs_off.name);
    ControllerState published, backs_off;
    p.published.start(published, {kLine, kBdp, Time{}});
    p.backs_off.start(backs_off, {kLine, kBdp, Time{}});
    for (std::uint64_t part = 2; part <= 8; part *= 2) {
      p.published.on_loss(published, {Time{}, part == 4});
      p.backs_off.on_loss(backs_off, {Time{}, part == 4});
      EXPECT_EQ(p.published.permit(published, Time{}).rate, Rate{});
      EXPECT_EQ(p.backs_off.permit(backs_off, Time{}).rate, Rate{kLine.bps / part});
    }
    for (int i = 0; i < 20; ++i) p.backs_off.on_loss(backs_off, {Time{}, false});
    EXPECT_EQ(p.backs_off.permit(backs_off, Time{}).rate, kLeastRate);
    Time now{};
    while (now < Time{} + milliseconds(500) && p.backs_off.permit(backs_off, now).rate.bps != 0) {
      now = now + microseconds(12);
      AckSample a;
      a.now = now;
      a.packets = kBdp;
      a.rtt = microseconds(12);
      p.backs_off.on_ack(backs_off, a);
      p.backs_off.on_sent(backs_off, {now, kBdp * 4178});
    }
    EXPECT_EQ(p.backs_off.permit(backs_off, now).rate, Rate{});
  }
}

// A loss says nothing of how many packets the network marks: the next CNP finds alpha as it was.
TEST(BackOff, LeavesDcqcnsEstimateAlone) {
  ControllerState lossy, calm;
  for (ControllerState* s : {&lossy, &calm}) {
    kDcqcnBackOff.start(*s, {gigabits(40), kBdp, Time{}});
    kDcqcnBackOff.on_cnp(*s, Time{});
  }
  kDcqcnBackOff.on_loss(lossy, {Time{} + milliseconds(10), false});
  const Time later = Time{} + milliseconds(30);  // both are back at line rate
  kDcqcnBackOff.on_cnp(lossy, later);
  kDcqcnBackOff.on_cnp(calm, later);
  EXPECT_EQ(kDcqcnBackOff.permit(lossy, later).rate, kDcqcnBackOff.permit(calm, later).rate);
}

}  // namespace
}  // namespace weft
