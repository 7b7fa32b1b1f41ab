// The text of a packet names what the packet carries, and nothing else.
#include "trace/text.h"

#include <gtest/gtest.h>

#include "core/wire/codec.h"

namespace weft::trace {
namespace {

using wire::Header;
using wire::Mode;

TEST(Text, AWriteShowsItsTarget) {
  Header h;
  h.opcode = wire::kWriteOnly;
  h.mode = Mode::kIrn;
  h.bits = wire::kAckReq;
  h.dest_qp = {0x12};
  h.psn = {0x101};
  h.va = 0x7F00;
  h.rkey = {0x1234};
  h.dma_len = 32;
  EXPECT_EQ(to_text(h, 16),
            "RC_WRITE_ONLY irn qp=0x12 psn=0x101 ackreq va=0x7f00 rkey=0x1234 len=32 payload=16");
}

TEST(Text, TheSameHeaderInAnotherModeShowsThatModesFields) {
  Header h;
  h.opcode = wire::kWriteMiddle;
  h.va = 0x7F00;
  h.srx_msn = 9;
  h.psn_offset = 1;
  EXPECT_EQ(to_text(h, 16), "RC_WRITE_MIDDLE roce qp=0x0 psn=0x0 payload=16");
  h.mode = Mode::kSrnic;
  EXPECT_EQ(to_text(h, 16),
            "RC_WRITE_MIDDLE srnic qp=0x0 psn=0x0 message=9 offset=1 ssn=0 va=0x7f00 rkey=0x0 payload=16");
}

TEST(Text, AnAcknowledgementSaysWhatItAnswers) {
  Header h;
  h.opcode = wire::kAcknowledge;
  h.set_aeth(wire::kSyndromeAck, 7);
  EXPECT_EQ(to_text(h, 0), "RC_ACKNOWLEDGE roce qp=0x0 psn=0x0 ack msn=7");
  h.set_aeth(3, 7);
  EXPECT_EQ(to_text(h, 0), "RC_ACKNOWLEDGE roce qp=0x0 psn=0x0 ack credits=3 msn=7");
  h.set_aeth(wire::kSyndromeRnr | 12, 7);
  EXPECT_EQ(to_text(h, 0), "RC_ACKNOWLEDGE roce qp=0x0 psn=0x0 rnr timer=12 msn=7");
  h.set_aeth(wire::kSyndromeNakAccess, 7);
  EXPECT_EQ(to_text(h, 0), "RC_ACKNOWLEDGE roce qp=0x0 psn=0x0 nak=access msn=7");
  h.set_aeth(0x45, 7);
  EXPECT_EQ(to_text(h, 0), "RC_ACKNOWLEDGE roce qp=0x0 psn=0x0 syndrome=0x45 msn=7");
  h.mode = Mode::kIrn;
  h.set_aeth(wire::kSyndromeNakSequence, 7);
  h.set_sack({0x103});
  EXPECT_EQ(to_text(h, 0), "RC_ACKNOWLEDGE irn qp=0x0 psn=0x0 nak=sequence msn=7 sack=0x103");
  h.ext_flags = wire::kSackNotKept | wire::kCeEcho;
  EXPECT_EQ(to_text(h, 0), "RC_ACKNOWLEDGE irn qp=0x0 psn=0x0 nak=sequence msn=7 dropped=0x103 ce");
}

TEST(Text, AnImmediateReadsInTheOrderItsBytesTravel) {
  Header h;
  h.opcode = wire::kSendOnlyImm;
  const std::uint8_t bytes[4] = {0xCA, 0xFE, 0xF0, 0x0D};
  __builtin_memcpy(&h.imm, bytes, 4);
  EXPECT_EQ(to_text(h, 0), "RC_SEND_ONLY_IMM roce qp=0x0 psn=0x0 imm=0xcafef00d payload=0");
  h.opcode = wire::kSendOnlyInvalidate;
  h.imm = 0x55AA;
  EXPECT_EQ(to_text(h, 0), "RC_SEND_ONLY_INVALIDATE roce qp=0x0 psn=0x0 invalidate=0x55aa payload=0");
}

TEST(Text, AnOpcodeNobodyKnowsIsShownAsANumber) {
  Header h;
  h.opcode = 0xC3;
  EXPECT_EQ(to_text(h, 0), "opcode=0xc3 roce qp=0x0 psn=0x0");
}

TEST(Text, ALineSaysWhenAndBetweenWhom) {
  PacketInfo info;
  info.time = Time{12'345'678};
  info.source = wire::Address::v4(10, 0, 0, 1);
  info.destination = wire::Address::v4(10, 0, 0, 2);
  info.tos = 3;
  info.comment = "lost";
  Header h;
  h.opcode = wire::kCnp;
  h.bits = wire::kBecn;
  EXPECT_EQ(to_text(info, h, 0),
            "12.345678us 10.0.0.1:49152 > 10.0.0.2 CNP roce qp=0x0 psn=0x0 becn ce_marked # lost");
}

// RFC 5952 §4: the longest run of zeros is shortened, the first of equals, and never a single group.
TEST(Text, Ipv6AddressesHaveTheirCanonicalForm) {
  const auto text = [](std::initializer_list<unsigned> groups) {
    wire::Address a;
    std::size_t i = 0;
    for (const unsigned g : groups) {
      a.bytes[i++] = static_cast<std::uint8_t>(g >> 8U);
      a.bytes[i++] = static_cast<std::uint8_t>(g);
    }
    return to_text(a);
  };
  EXPECT_EQ(text({0, 0, 0, 0, 0, 0, 0, 0}), "::");
  EXPECT_EQ(text({0, 0, 0, 0, 0, 0, 0, 1}), "::1");
  EXPECT_EQ(text({0xfd00, 0, 0, 0, 0, 0, 0, 0}), "fd00::");
  EXPECT_EQ(text({0x2001, 0xdb8, 0, 1, 1, 1, 1, 1}), "2001:db8:0:1:1:1:1:1");
  EXPECT_EQ(text({0x2001, 0, 0, 1, 0, 0, 0, 1}), "2001:0:0:1::1");
  EXPECT_EQ(text({0x2001, 0, 0, 1, 1, 0, 0, 1}), "2001::1:1:0:0:1");
  EXPECT_EQ(text({0, 0, 0, 0, 0, 0xffff, 0x7f00, 0x0001}), "127.0.0.1");
}

}  // namespace
}  // namespace weft::trace
