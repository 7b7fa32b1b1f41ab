// Without coalescing every packet has an answer of its own (IRN §3.1, §5.2;
// docs/protocol/irn.md#acks-and-nacks): in order an ACK of all up to it, ahead of a hole a NACK that names
// the hole and its trigger, each time.
#include <gtest/gtest.h>

#include "core/transport/by_hand.h"

namespace weft {
namespace {

class PerPacketTest : public ::testing::TestWithParam<wire::Mode> {
 protected:
  static constexpr std::uint32_t kPackets = 5;
  static constexpr std::uint32_t kLost = 1;
  static std::uint32_t number(std::uint32_t i) { return (0xFFFFFE + i) & kPsnMask; }

  // `answers` of packets 0 to 4, of which number 1 was lost or, without `lost`, none.
  static void expect_each(const Frames& answers, std::uint8_t opcode, bool lost) {
    const bool srnic = GetParam() == wire::Mode::kSrnic;
    ASSERT_EQ(answers.size(), lost ? kPackets - 1 : kPackets);
    for (std::uint32_t i = 0, packet = 0; i < answers.size(); ++i, ++packet) {
      if (lost && packet == kLost) ++packet;
      SCOPED_TRACE("packet " + std::to_string(packet));
      const wire::Header& h = answers[i].packet.header;
      const bool ahead = lost && packet > kLost;
      const std::uint32_t expected = number(ahead ? kLost : packet + 1);
      EXPECT_EQ(h.opcode, opcode);
      EXPECT_EQ(h.syndrome, ahead ? wire::kSyndromeNakSequence : wire::kSyndromeAck);
      if (srnic) {
        EXPECT_EQ(h.psn.v, number(packet));
        EXPECT_EQ(h.sack_psn().v, expected);
        EXPECT_EQ(h.ext_flags, ahead ? wire::kEcxOutOfOrder : 0);
      } else if (ahead) {
        EXPECT_EQ(h.psn.v, expected);
        EXPECT_EQ(h.sack_psn().v, number(packet));
      } else {
        EXPECT_EQ(h.psn.v, number(packet));
      }
    }
  }
};

TEST_P(PerPacketTest, RequestsAreAnsweredOneByOne) {
  for (const bool lost : {false, true}) {
    Hand w(GetParam());
    w.post(w.request(WrOpcode::kWrite, 0, 256 * kPackets, 0));
    Frames sent = w.from(w.a);
    ASSERT_EQ(sent.size(), kPackets);
    if (lost) sent.erase(sent.begin() + kLost);
    w.to(w.b, sent);
    expect_each(w.from(w.b), wire::kAcknowledge, lost);
  }
}

TEST_P(PerPacketTest, ReadResponsesAreAnsweredOneByOne) {
  for (const bool lost : {false, true}) {
    Hand w(GetParam());
    w.post(w.request(WrOpcode::kRead, 0, 256 * kPackets, 0));
    w.to(w.b, w.from(w.a));
    Frames sent = w.from(w.b);
    ASSERT_EQ(sent.size(), kPackets + 1);  // the request's ACK leaves first
    sent.erase(sent.begin());
    if (lost) sent.erase(sent.begin() + kLost);
    w.to(w.a, sent);
    expect_each(w.from(w.a), wire::kReadAcknowledge, lost);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, PerPacketTest, ::testing::Values(wire::Mode::kIrn, wire::Mode::kSrnic),
                         [](const auto& m) { return std::string(wire::mode_name(m.param)); });

}  // namespace
}  // namespace weft
