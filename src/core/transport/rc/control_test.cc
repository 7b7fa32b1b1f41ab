// ACKs and NAKs on their way out of the ring.
#include <gtest/gtest.h>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

// Both ways have a mode each, and so their acknowledgements have sizes: one that does not fit into the burst
// of a smaller one leaves with the next.
TEST(Control, AnAckLongerThanTheOneBeforeItLeavesNext) {
  DeviceConfig config;
  config.ack_coalesce = true;
  Hand w(wire::Mode::kIrn, config);
  w.mode_of_b = wire::Mode::kSrnic;
  w.qa = w.a.create();
  w.qb = w.b.create();
  w.connect(w.qa, w.qb);
  ASSERT_TRUE(w.a.device.post_recv(w.qa, w.receive(w.a, 0, 256, 7)));
  w.post(w.request(WrOpcode::kRead, 512, 256, 512));
  w.to(w.b, w.from(w.a));
  const Sge message{Side::kBase, 256, w.b.mr.lkey};
  SendWr send;
  send.opcode = WrOpcode::kSend;
  send.flags = kSendSignaled;
  send.sges = {&message, 1};
  ASSERT_TRUE(w.b.post(w.qb, send));
  const Frames answers = w.from(w.b);
  ASSERT_EQ(only(answers, wire::kReadResponseOnly).size(), 1U);
  ASSERT_EQ(only(answers, wire::kSendOnly).size(), 1U);
  w.to(w.a, only(answers, wire::kReadResponseOnly));  // its acknowledgement is short
  w.to(w.a, only(answers, wire::kSendOnly));          // and this one's long
  w.to(w.b, w.from(w.a));
  EXPECT_EQ(statuses(w.b), Statuses{WcStatus::kSuccess});
}

}  // namespace
}  // namespace weft
