// What a time-out means to the sending end of a half-connection, before and after a round trip is known.
#include "core/transport/sender.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr std::uint64_t kBytes = 100;  // of each packet
constexpr std::uint64_t kCredit = 1U << 20U;

// A sender whose time-outs follow the path, as the soft NIC's do, with ten packets in flight.
class SenderTest : public ::testing::TestWithParam<const LossScheme*> {
 protected:
  static constexpr std::uint32_t kPackets = 10;

  SenderTest() {
    config_.rto = Rto::kFloored;
    path_.credit = path_.cap = kCredit;
    s_.start(Seq{1});
    for (std::uint32_t i = 0; i < kPackets; ++i) leave(Origin::kNext, s_.nxt);
  }

  Sending half() {
    return {s_,
            account_,
            silence_,
            *GetParam(),
            {pool_, counters_, 1, true},
            path_,
            {config_, round_trip_, 0, true}};
  }
  void leave(Origin origin, Seq seq) { half().left({seq, 1, kBytes, origin, true}, now_); }
  void strike() {
    now_ = half().waits.strikes(s_);
    half().strike(now_);
    half().resend();
  }
  // What is repaired before anything new, until nothing is.
  std::uint64_t repairs() {
    std::uint64_t n = 0;
    for (Seq seq; half().next_repair(seq); ++n) leave(Origin::kRepair, seq);
    return n;
  }

  DeviceConfig config_;
  Sender s_;
  SenderAccount account_;
  SenderSilence silence_;
  Path path_;
  RoundTrip round_trip_;
  LossPool pool_{1, 64};
  Counters counters_;
  Time now_{};
};

TEST_P(SenderTest, AGuessSaysNothingAboutThePath) {
  strike();
  EXPECT_EQ(path_.cap, kCredit);
}

TEST_P(SenderTest, AMeasuredTimeOutHalvesThePathOncePerSilence) {
  round_trip_.sample(microseconds(100));
  strike();
  EXPECT_EQ(path_.cap, kCredit / 2);
  strike();
  EXPECT_GE(path_.cap, kCredit / 2);  // and what was in flight is given up
}

// The oldest goes again; the ACK that comes covers it and two that did not. All of them are on their way, and
// the newest need not ask.
TEST_P(SenderTest, AnAckOfWhatWasNotResentEndsTheRecovery) {
  round_trip_.sample(microseconds(100));
  strike();
  EXPECT_EQ(repairs(), 1U);
  half().acknowledge(s_.una + 3, now_);
  EXPECT_EQ(counters_.get(Counter::timeout_spurious), 1U);
  EXPECT_FALSE(s_.recovering());
  EXPECT_EQ(repairs(), 0U);
  EXPECT_EQ(pool_.in_use(), 0U);
}

// An ACK of the oldest alone may answer either copy: the newest asks.
TEST_P(SenderTest, AnAckOfTheOldestLetsTheNewestAsk) {
  round_trip_.sample(microseconds(100));
  strike();
  EXPECT_EQ(repairs(), 1U);
  half().acknowledge(s_.una + 1, now_);
  EXPECT_TRUE(s_.recovering());
  EXPECT_EQ(repairs(), 1U);
  half().acknowledge(s_.max, now_);
  EXPECT_EQ(counters_.get(Counter::timeout_spurious), 1U);
  EXPECT_FALSE(s_.recovering());
  EXPECT_EQ(pool_.in_use(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Schemes, SenderTest, ::testing::Values(&kIrn, &kSrnic),
                         [](const auto& p) { return std::string(wire::mode_name(p.param->mode)); });

}  // namespace
}  // namespace weft
