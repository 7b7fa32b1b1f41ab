// What one end learns without being told: a response acknowledges the requests before it, a READ that needs
// an older one's place the older one's responses. What follows may have been SACKed before; then nothing
// below it is left to send again, and waiting for it would never end.
#include <gtest/gtest.h>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

class ImpliedTest : public ::testing::TestWithParam<wire::Mode> {};

TEST_P(ImpliedTest, AResponseAcknowledgesWhatWasSackedBehindItsRequest) {
  Hand w(GetParam());
  w.post(w.request(WrOpcode::kRead, 0, 256, 0));
  w.post(w.request(WrOpcode::kWrite, 256, 256, 256));
  const Frames sent = w.from(w.a);
  ASSERT_EQ(sent.size(), 2U);
  w.to(w.b, {sent[1]});
  w.to(w.a, w.from(w.b));  // the WRITE is SACKed
  const Frames again = only(w.from(w.a), wire::kReadRequest);
  ASSERT_EQ(again.size(), 1U);
  w.to(w.b, again);
  w.to(w.a, only(w.from(w.b), wire::kReadResponseOnly));  // not its ACK
  EXPECT_EQ(statuses(w.a), (Statuses{WcStatus::kSuccess, WcStatus::kSuccess}));
  w.play();
  EXPECT_EQ(w.a.device.counters().get(Counter::timeout_low), 0U);
  w.a.device.check_invariants();
}

TEST_P(ImpliedTest, AReadAcknowledgesWhatWasSackedBehindThoseBeforeIt) {
  Hand w(GetParam());
  const std::uint32_t reads = w.a.device.engine().cold(*w.a.device.engine().find(w.qa)).attr.max_rd_atomic;
  w.post(w.request(WrOpcode::kRead, 0, 512, 0));
  for (std::uint32_t i = 1; i < reads; ++i) w.post(w.request(WrOpcode::kRead, 512, 256, 512));
  w.to(w.b, w.from(w.a));
  Frames answers = w.from(w.b);
  w.to(w.a, only(answers, wire::kReadResponseFirst));
  w.to(w.a, only(answers, wire::kReadResponseOnly));  // the last response of the first READ is lost
  w.to(w.b, w.from(w.a));                             // all others are SACKed
  w.to(w.a, only(w.from(w.b), wire::kReadResponseLast));
  (void)w.from(w.a);  // and that is acknowledged in vain
  EXPECT_EQ(statuses(w.a).size(), reads);
  w.post(w.request(WrOpcode::kRead, 0, 256, 0));
  w.to(w.b, w.from(w.a));
  (void)w.from(w.b);  // its response is lost, too
  w.play();
  EXPECT_EQ(statuses(w.a), Statuses{WcStatus::kSuccess});
  EXPECT_EQ(w.a.device.counters().get(Counter::timeout_read), 0U);  // the responder found out by itself
}

// Its request has arrived, and what follows has room in the window, though the response finds no bitmap.
TEST_P(ImpliedTest, AResponseThatIsDroppedOpensTheWindow) {
  DeviceConfig tight;
  tight.loss_blocks = 0;
  tight.bdp_cap = 2;
  Hand w(GetParam(), tight);
  w.post(w.request(WrOpcode::kRead, 0, 512, 0));
  w.post(w.request(WrOpcode::kWrite, 512, 8, 512));
  w.post(w.request(WrOpcode::kWrite, 520, 8, 520));
  const Frames begun = w.from(w.a);
  ASSERT_EQ(begun.size(), 2U);
  w.to(w.b, {begun[0]});
  w.to(w.a, only(w.from(w.b), wire::kReadResponseLast));
  EXPECT_EQ(only(w.from(w.a), wire::kWriteOnly).size(), 1U);
  w.a.device.check_invariants();
}

// A READ that is refused tells of the answers before it all the same.
TEST_P(ImpliedTest, ARefusedReadAcknowledgesThoseBeforeIt) {
  Hand w(GetParam());
  const std::uint32_t reads = w.a.device.engine().cold(*w.a.device.engine().find(w.qa)).attr.max_rd_atomic;
  for (std::uint32_t i = 0; i < reads; ++i) w.post(w.request(WrOpcode::kRead, 0, 256, 0));
  const Frames requests = w.from(w.a);
  ASSERT_EQ(requests.size(), reads);
  w.to(w.b, requests);
  (void)w.from(w.b);  // all answers are lost
  while (w.b.device.counters().get(Counter::timeout_low) + w.b.device.counters().get(Counter::timeout_high) ==
         0) {
    w.now = w.b.device.next_deadline();
    w.b.device.on_timer(w.now);
  }
  (void)w.from(w.b);  // and the oldest again
  Side::Frame next = requests.back();
  wire::Header& h = next.packet.header;
  h.psn = (expand(h.psn, Seq::start(h.psn)) + 1).wire();
  h.sn += 1;
  h.srx_msn += 1;
  h.rkey.v ^= 1;
  w.to(w.b, {next});
  w.b.device.check_invariants();
  EXPECT_FALSE(only(w.from(w.b), wire::kReadResponseOnly).empty());
}

INSTANTIATE_TEST_SUITE_P(Modes, ImpliedTest, ::testing::Values(wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& p) { return std::string(wire::mode_name(p.param)); });

}  // namespace
}  // namespace weft
