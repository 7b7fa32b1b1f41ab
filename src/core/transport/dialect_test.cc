// The table of dialects beside the other two tables that know a mode: layouts and loss-recovery schemes.
#include "core/transport/dialect.h"

#include <gtest/gtest.h>

#include "core/transport/loss/scheme.h"
#include "core/wire/codec.h"

namespace weft {
namespace {

bool has(const wire::ExtLayout& l, wire::Ext e) {
  for (const wire::Ext x : l.ext) {
    if (x == e) return true;
  }
  return false;
}

// What a row says of a mode's packets is what the table of layouts puts into them.
TEST(Dialects, SayWhatTheLayoutsCarry) {
  for (std::uint8_t m = 0; m < wire::kModeCount; ++m) {
    const auto mode = static_cast<wire::Mode>(m);
    const Dialect& row = dialect(mode);
    const wire::ExtLayout& middle = wire::ext_layout(wire::kWriteMiddle, mode);
    EXPECT_EQ(row.response_stream, wire::ext_layout(wire::kReadAcknowledge, mode).known);
    EXPECT_EQ(row.places_itself, has(middle, wire::Ext::kReth) || has(middle, wire::Ext::kWax));
    EXPECT_EQ(row.names_messages, has(middle, wire::Ext::kSrx));
    const wire::ExtLayout& ack = wire::ext_layout(wire::kAcknowledge, mode);
    const wire::ExtLayout& nak = wire::ext_layout(wire::kAcknowledge, mode, wire::kSyndromeNakSequence);
    EXPECT_EQ(row.ack_form == AckForm::kEcho, has(ack, wire::Ext::kEcx) && has(nak, wire::Ext::kEcx));
    EXPECT_EQ(row.ack_form == AckForm::kSack, has(nak, wire::Ext::kSack));
    EXPECT_EQ(loss_scheme(mode).mode, mode);
  }
}

// Nothing follows from a mode that is not known yet.
TEST(Dialects, HaveARowForAPeerThatHasNotSpoken) {
  const Dialect& none = dialect(kUnpinned);
  EXPECT_FALSE(none.response_stream || none.places_itself || none.acks_every_packet || none.own_timeouts);
  EXPECT_EQ(none.ack_form, AckForm::kPlain);
}

// A serial number is found on either side of the known one, also around the end of its bits.
TEST(Dialects, WidenSerialNumbersAroundTheKnownOne) {
  for (const Dialect& row : kDialects) {
    for (const std::uint32_t near : {0U, 5U, row.serial_mask() - 1, row.serial_mask() + 3}) {
      for (const std::int32_t ahead : {-3, 0, 1, 100}) {
        const std::uint32_t serial = near + static_cast<std::uint32_t>(ahead);
        EXPECT_EQ(row.serial_ahead(serial & row.serial_mask(), near), ahead);
      }
    }
  }
}

}  // namespace
}  // namespace weft
