// Memory that a program deregisters while requests still need it: the requests fail, nothing hangs.
#include <gtest/gtest.h>

#include "core/transport/two_devices.h"

namespace weft {
namespace {

class LostMemory : public testing::TestWithParam<wire::Mode> {};

// Two messages were sent and lost; the memory of the second goes. Its repetition cannot be gathered, and the
// first, whose ACK is not there yet, must not make the queue pair wait for ever: before, poll_transmit never
// returned.
TEST_P(LostMemory, FailsARepetitionEvenBehindUnacknowledgedRequests) {
  for (const std::uint32_t length : {100U, 700U}) {
    TwoDevices t(GetParam());
    const MrInfo other = t.a.region(4096, kLocalWrite);
    const SendWr first = t.request(WrOpcode::kWrite, 0, 100, 0);
    SendWr second = t.request(WrOpcode::kWrite, 0, length, 1000);
    const Sge elsewhere{Side::kBase, length, other.lkey};
    second.sges = {&elsewhere, 1};
    t.lose_pattern = 0xF;
    t.post(first);
    t.post(second);
    for (int i = 0; i < 4; ++i) t.turn();
    ASSERT_GE(t.sent, 2);
    ASSERT_TRUE(t.a.device.deregister_mr(other.lkey).has_value());
    t.run();
    const std::vector<Completion> done = t.a.completions();
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(done[0].wr_id, first.wr_id);
    EXPECT_EQ(done[1].wr_id, second.wr_id);
    EXPECT_EQ(done[1].status, WcStatus::kLocalProtection);
    EXPECT_EQ(t.a.device.query_qp(t.qa)->state, QpState::kErr);
    EXPECT_EQ(t.a.device.loss_blocks_in_use(), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, LostMemory,
                         testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic));

}  // namespace
}  // namespace weft
