// What the papers say of headers, beside what weft's own codec puts on the wire.
#include <gtest/gtest.h>

#include "account/network.h"
#include "account/quantities.h"
#include "core/wire/codec.h"
#include "sim/fabric/frame.h"

namespace weft {
namespace {

int header_bytes(wire::Mode mode, std::uint8_t opcode) {
  wire::Header h;
  h.mode = mode;
  h.opcode = opcode;
  return static_cast<int>(wire::header_bytes(h));
}
int beyond_roce(wire::Mode mode, std::uint8_t opcode) {
  return header_bytes(mode, opcode) - header_bytes(wire::Mode::kRoce, opcode);
}
double figure(const char* id, std::size_t n) { return account::find_quantity(id)->figures()[n].value; }

// IRN §6.3: middle packets, which most packets of a long message are.
TEST(Headers, OfIrnAreWhatThePaperCounts) {
  EXPECT_EQ(beyond_roce(wire::Mode::kIrn, wire::kWriteMiddle), figure("irn-headers", 0));
  EXPECT_EQ(beyond_roce(wire::Mode::kIrn, wire::kSendMiddle), figure("irn-headers", 1));
  EXPECT_EQ(beyond_roce(wire::Mode::kIrn, wire::kReadResponseMiddle), figure("irn-headers", 2));
}

// SRNIC §4.4.1 gives sums only: 66 bytes for a SEND, 78 for a WRITE. In weft a SEND has SRX (8 bytes), and a
// WRITE has WAX (12 bytes) as well.
TEST(Headers, OfSrnicAreWhatThePaperCounts) {
  EXPECT_EQ(beyond_roce(wire::Mode::kSrnic, wire::kSendMiddle),
            figure("srnic-hdr-size", 1) - figure("srnic-hdr-size", 0));
  EXPECT_EQ(beyond_roce(wire::Mode::kSrnic, wire::kWriteMiddle),
            figure("srnic-hdr-size", 2) - figure("srnic-hdr-size", 0));
}

TEST(Headers, OfAPlainPacketAreTheFabricsToo) {
  wire::Header h;
  h.opcode = wire::kWriteMiddle;
  EXPECT_EQ(sim::frame_bytes(h, 0, sim::Framing::kFrame), account::Headers{}.without_fcs());
  EXPECT_EQ(sim::frame_bytes(h, 0, sim::Framing::kWire), account::Headers{}.total() + 8U + 12U);
}

}  // namespace
}  // namespace weft
