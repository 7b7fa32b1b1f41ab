// How a connection ends that cannot go on (docs/protocol/reliable.md#time-outs-and-retries,
// verbs.md#errors-and-flushing).
#include <gtest/gtest.h>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

// In RTS, with this time-out and number of retries.
void set_patience(Hand& w, std::uint8_t timeout, std::uint8_t retries) {
  QpAttr t;
  t.timeout = timeout;
  t.retry_count = retries;
  ASSERT_TRUE(w.a.step(w.qa, {}, QpState::kSqd, 0));
  ASSERT_TRUE(w.a.step(w.qa, t, QpState::kSqd, kAttrTimeout | kAttrRetryCount));
  ASSERT_TRUE(w.a.step(w.qa, {}, QpState::kRts, 0));
}

TEST(Ending, APacketGoesOutOnceMoreForEachRetry) {
  for (std::uint8_t retries = 0; retries <= 7; ++retries) {
    Hand w(wire::Mode::kRoce);
    set_patience(w, 8, retries);
    w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
    w.play([] { return true; });
    EXPECT_EQ(w.a.device.counters().get(Counter::tx_packets), retries + 1U);
    EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kRetryExceeded});
    EXPECT_EQ(w.a.device.query_qp(w.qa)->state, QpState::kErr);
  }
}

TEST(Ending, ATimeOutOfZeroNeverComes) {
  Hand w(wire::Mode::kRoce);
  set_patience(w, 0, 0);
  w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
  w.play([] { return true; }, seconds(100'000));
  EXPECT_EQ(w.a.device.counters().get(Counter::tx_packets), 1U);
  EXPECT_EQ(statuses(w.a), Statuses{});
}

class EndingTest : public ::testing::TestWithParam<wire::Mode> {};

// Unsignaled requests, those that were never sent and those that come later: all in the order of posting.
TEST_P(EndingTest, EverythingIsFlushedInOrder) {
  Hand w(GetParam());
  for (std::uint64_t id = 0; id < 3; ++id)
    ASSERT_TRUE(w.a.device.post_recv(w.qa, w.receive(w.a, 0, 8, 100 + id)));
  SendWr refused = w.request(WrOpcode::kWrite, 0, 8, 0, 0);
  refused.rkey.v ^= 1U;
  w.post(w.request(WrOpcode::kWrite, 0, 8, 0, 0));  // wr_id 1: done, and silent
  w.post(refused);                                  // wr_id 0
  for (int i = 0; i < 3; ++i) w.post(w.request(WrOpcode::kWrite, 0, 8, 0, 0));
  w.play();
  w.post(w.request(WrOpcode::kSend, 0, 8, 0, 0));
  ASSERT_TRUE(w.a.device.post_recv(w.qa, w.receive(w.a, 0, 8, 103)));
  std::vector<std::uint64_t> sends;
  std::vector<std::uint64_t> receives;
  for (const Completion& c : w.a.completions()) {
    (c.opcode == WcOpcode::kReceive ? receives : sends).push_back(c.wr_id);
    EXPECT_EQ(c.status, c.wr_id == 0 ? WcStatus::kRemoteAccess : WcStatus::kFlushed);
  }
  EXPECT_EQ(sends, (std::vector<std::uint64_t>{0, 2, 3, 4, 5}));
  EXPECT_EQ(receives, (std::vector<std::uint64_t>{100, 101, 102, 103}));
}

// Fifteen bits are compared, and our side is a full member (docs/protocol/packets.md#base-transport-header).
TEST_P(EndingTest, APartitionKeyOfALimitedMemberIsOurs) {
  for (const auto& [pkey, taken] :
       {std::pair{0x7FFF, true}, {0xFFFF, true}, {0xFFFE, false}, {0x0000, false}}) {
    Hand w(GetParam());
    w.post(w.request(WrOpcode::kWrite, 0, 8, 0));
    Frames sent = w.from(w.a);
    sent[0].packet.header.pkey = static_cast<std::uint16_t>(pkey);
    w.to(w.b, sent);
    EXPECT_EQ(w.b.device.counters().get(Counter::rx_in_order), taken ? 1U : 0U);
    EXPECT_EQ(w.b.device.counters().get(Counter::drop_pkey), taken ? 0U : 1U);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, EndingTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
