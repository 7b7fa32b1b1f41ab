// What the guide tells people to write compiles, and does what the guide says of it. Its declarations come
// from there, too (extract.py).
#include <gtest/gtest.h>

#include "core/transport/cc/controller.h"
#include "core/transport/loss/scheme.h"

namespace weft {
namespace {

TEST(TheGuidesController, TakesAFifthWhenARoundTripIsLong) {
  ControllerState s;
  kDelay.start(s, {gigabits(100), 100, Time{}});
  EXPECT_EQ(kDelay.permit(s, Time{}).window_packets, 100U);
  kDelay.on_ack(s, {Time{}, 1, false, microseconds(30)});
  EXPECT_EQ(kDelay.permit(s, Time{}).window_packets, 100U);
  kDelay.on_ack(s, {Time{}, 1, false, microseconds(31)});
  const std::uint32_t left = kDelay.permit(s, Time{}).window_packets;
  EXPECT_NEAR(left, 80, 1);
  kDelay.on_ack(s, {Time{}, left, false, microseconds(20)});
  EXPECT_EQ(kDelay.permit(s, Time{}).window_packets, left + 1);
}

// Ten packets; the first is lost, resent and lost again. Then a packet that was sent after it arrives.
bool named_again(const LossScheme& scheme) {
  LossPool pool(1, 64);
  Counters counters;
  LossContext c{pool, counters};
  SendStream s;
  s.start(Seq{100});
  s.nxt = s.max = Seq{110};
  scheme.on_nack(c, s, {Seq{101}, true, {}});
  Seq seq;
  EXPECT_TRUE(scheme.next_lost(c, s, seq));
  EXPECT_EQ(seq, Seq{100});
  s.resent(seq);
  scheme.on_nack(c, s, {Seq{109}, true, {}});  // was under way already, and says nothing of the repair
  for (; scheme.next_lost(c, s, seq); s.resent(seq)) EXPECT_GT(seq, Seq{100}) << "resent too early";
  s.nxt = s.max = Seq{111};
  scheme.on_nack(c, s, {Seq{110}, true, {}});
  const bool again = scheme.next_lost(c, s, seq) && seq == Seq{100};
  release_block(pool, s.block);
  return again;
}

TEST(TheGuidesScheme, ResendsWhatWasLostTwice) {
  EXPECT_FALSE(named_again(kIrn));
  EXPECT_TRUE(named_again(kIrnAgain));
}

}  // namespace
}  // namespace weft
