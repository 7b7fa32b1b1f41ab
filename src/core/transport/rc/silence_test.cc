// After a refusal roce's responder is silent until the refused packet comes again
// (docs/protocol/reliable.md#receiver-not-ready).
#include <gtest/gtest.h>

#include "core/transport/long_path.h"

namespace weft {
namespace {

std::vector<std::uint8_t> syndromes(TwoDevices& w) {
  std::vector<std::uint8_t> all;
  for (;;) {
    const wire::Burst burst = w.b.device.poll_control(w.now);
    if (burst.empty()) return all;
    for (const wire::TxPacket& p : burst.packets) all.push_back(p.header.syndrome);
  }
}

TEST(Silence, FollowsAReceiverNotReadyNak) {
  TwoDevices w(wire::Mode::kRoce);
  w.post(w.request(WrOpcode::kSend, 0, 1024, 0));
  const auto frames = w.intercept(w.a);
  ASSERT_EQ(frames.size(), 4U);
  for (const Side::Frame& f : frames) w.deliver(w.b, f);
  const auto said = syndromes(w);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0] & 0xE0U, wire::kSyndromeRnr);
}

TEST(Silence, FollowsASequenceNak) {
  TwoDevices w(wire::Mode::kRoce);
  ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 4096, 1024, 1)).has_value());
  w.post(w.request(WrOpcode::kSend, 0, 1024, 0));
  const auto frames = w.intercept(w.a);
  ASSERT_EQ(frames.size(), 4U);
  for (std::size_t i = 1; i < frames.size(); ++i) w.deliver(w.b, frames[i]);
  EXPECT_EQ(syndromes(w), std::vector<std::uint8_t>{wire::kSyndromeNakSequence});
}

// A peer that says that it is not ready is there. NAKs of it that are lost must not add up to one that is
// gone, however long its program takes: perftest's connected once to a server that was busy, and failed so.
class PatienceTest : public ::testing::TestWithParam<wire::Mode> {};

TEST_P(PatienceTest, LostReceiverNotReadyNaksDoNotAddUp) {
  LongPath w(GetParam(), LongPath::live(), 12);  // a time-out of 17 ms
  w.delay = microseconds(20);
  int naks = 0;
  w.loses = [&](const wire::Header& h) {
    return h.opcode == wire::kAcknowledge && (h.syndrome & 0xE0U) == wire::kSyndromeRnr && ++naks % 2 == 0;
  };
  w.post(w.request(WrOpcode::kSend, 0, 256, 0));
  while (naks < 60) {
    ASSERT_TRUE(w.step());
    ASSERT_EQ(w.a.statuses(), std::vector<WcStatus>{}) << naks;
  }
  ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 4096, 1024, 1)).has_value());
  EXPECT_EQ(w.complete(1), 1U);
}

INSTANTIATE_TEST_SUITE_P(Modes, PatienceTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
