// Packets that no requester of ours sends, and what the responder makes of them
// (docs/protocol/reliable.md#checks-of-the-responder, checks 0 and 7): lengths that do not fit their opcode
// are invalid requests, packets of another host are nobody's.
#include <gtest/gtest.h>

#include "core/transport/two_devices.h"

namespace weft {
namespace {

class MalformedTest : public ::testing::TestWithParam<wire::Mode> {
 protected:
  using Frames = std::vector<Side::Frame>;

  // The packets of a message of 512 bytes, two MTUs; `change` makes them what they should not be.
  template <class Change>
  static void send(TwoDevices& w, WrOpcode op, Change change) {
    ASSERT_TRUE(w.b.device.post_recv(w.qb, w.receive(w.b, 4096, 1024, 1)).has_value());
    for (std::size_t i = 0; i < 512; ++i) w.a.bytes()[i] = 0xAB;
    w.post(w.request(op, 0, 512, 0));
    Frames frames = w.intercept(w.a);
    ASSERT_EQ(frames.size(), 2U);
    change(frames);
    for (const Side::Frame& f : frames) w.deliver(w.b, f);
  }
  static void resize(Side::Frame& f, std::uint32_t bytes) {
    f.packet.payload = bytes;
    f.payload.resize(bytes);
  }
  static bool untouched(TwoDevices& w) {
    const auto& memory = w.b.bytes();
    return std::all_of(memory.begin(), memory.end(), [](std::uint8_t v) { return v == 0; });
  }
};

TEST_P(MalformedTest, AFirstPacketThatIsNotOneMtuIsInvalid) {
  for (const WrOpcode op : {WrOpcode::kWrite, WrOpcode::kSend}) {
    for (const std::uint32_t bytes : {0U, 252U, 260U}) {
      SCOPED_TRACE(bytes);
      TwoDevices w(GetParam());
      send(w, op, [&](Frames& f) { resize(f[0], bytes); });
      EXPECT_TRUE(untouched(w));
      w.run();
      EXPECT_EQ(w.a.statuses(), std::vector<WcStatus>{WcStatus::kRemoteInvalidRequest});
    }
  }
}

TEST_P(MalformedTest, APacketOfAnotherHostIsDropped) {
  TwoDevices w(GetParam());
  send(w, WrOpcode::kWrite, [&](Frames& f) {
    for (Side::Frame& each : f) each.packet.source = wire::Address::v4(10, 0, 0, 77);
  });
  EXPECT_TRUE(untouched(w));
  EXPECT_EQ(w.b.device.counters().get(Counter::drop_source), 2U);
  w.run();
  EXPECT_EQ(w.a.statuses(), std::vector<WcStatus>{WcStatus::kSuccess});
}

TEST_P(MalformedTest, AReservedSyndromeIsDropped) {
  constexpr std::uint8_t kReserved[] = {0x40, 0x5F, 0x64, 0x7F};
  for (const std::uint8_t syndrome : kReserved) {
    TwoDevices w(GetParam());
    w.post(w.request(WrOpcode::kWrite, 0, 512, 0));
    for (const Side::Frame& f : w.intercept(w.a)) {
      w.deliver(w.b, f);
      Side::Frame answer;
      answer.packet.source = w.b.address;
      answer.packet.header.mode = GetParam();
      answer.packet.header.opcode = wire::kAcknowledge;
      answer.packet.header.dest_qp = w.qa;
      answer.packet.header.psn = f.packet.header.psn;
      answer.packet.header.set_aeth(syndrome, 0);
      w.deliver(w.a, answer);
    }
    EXPECT_EQ(w.a.device.counters().get(Counter::drop_malformed), 2U);
    w.run();
    EXPECT_EQ(w.a.statuses(), std::vector<WcStatus>{WcStatus::kSuccess});
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, MalformedTest,
                         ::testing::Values(wire::Mode::kRoce, wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
