// What the packets of a mode say, and what follows from it: one row a mode. The transport asks the row and
// never the mode, so in the transport a further
// mode is a row here and a scheme in loss/ (docs/CONTRIBUTING.md#adding-a-mode has all files).
//
// A row is about one half of a queue pair: our requests and their answers follow `tx_dialect`, the peer's
// requests and our answers follow `rx_dialect`. How losses are recovered is the scheme's business (loss/).
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/wire/header.h"

namespace weft {

// What an acknowledgement says of packets beside the first one missing (rc/report.h draws them).
enum class AckForm : std::uint8_t {
  kPlain,  // nothing
  kSack,   // a sequence NAK names the packet that caused it
  kEcho,   // every ACK and sequence NAK echoes the packet that caused it
};

struct Dialect {
  // READ responses are a stream of their own: numbered, acknowledged, repaired and timed apart from requests.
  // A READ request then takes one number. Without that, its responses take the numbers of the requests,
  // nothing acknowledges them, and who asks again gets them again.
  bool response_stream = false;
  // Every packet says where its bytes belong, and is placed whenever it arrives. Without that, a message's
  // First packet says it for all of them, and only the expected packet is taken.
  bool places_itself = false;
  // Every packet is acknowledged. Without that, those that ask for it.
  bool acks_every_packet = false;
  // Time-outs follow round trips and only resend; the verbs time-out only counts retries. Without that, the
  // verbs time-out resends, and each costs a retry; with `tail_probe` one packet asks before it, for nothing.
  bool own_timeouts = false;
  // Every packet names its message and its place in it (SRX), which an ACK echoes; a WRITE packet then does
  // not tell how long the rest of its message is.
  bool names_messages = false;
  AckForm ack_form = AckForm::kPlain;
  std::uint8_t serial_bits = 24;  // of receive and READ serial numbers
  std::uint8_t reserved = 0;      // eight bytes: a row is found by a shift

  constexpr std::uint32_t serial_mask() const { return (1U << serial_bits) - 1U; }
  // How far `serial` is ahead of `near`, which is known whole.
  constexpr std::int32_t serial_ahead(std::uint32_t serial, std::uint32_t near) const {
    const unsigned unused = 32U - serial_bits;
    return static_cast<std::int32_t>((serial - near) << unused) >> unused;
  }
};
static_assert(sizeof(Dialect) == 8);

// A half whose mode the peer's first request will say. It owes nothing yet: its row says no to everything.
inline constexpr std::uint8_t kUnpinned = wire::kModeCount;

// Row i is mode i's; the last is kUnpinned's.
inline constexpr std::array<Dialect, wire::kModeCount + 1> kDialects = [] {
  std::array<Dialect, wire::kModeCount + 1> rows{};
  Dialect irn;
  irn.response_stream = irn.places_itself = irn.acks_every_packet = irn.own_timeouts = true;
  irn.ack_form = AckForm::kSack;
  Dialect srnic = irn;
  srnic.names_messages = true;
  srnic.ack_form = AckForm::kEcho;
  srnic.serial_bits = 16;
  rows[static_cast<std::size_t>(wire::Mode::kIrn)] = irn;
  rows[static_cast<std::size_t>(wire::Mode::kSrnic)] = srnic;
  return rows;
}();

// The columns are not independent. Answers that are a stream need packets that place themselves, each of them
// acknowledged, and time-outs that only resend; names and echoes build on that.
constexpr bool consistent(const Dialect& d) {
  if (d.response_stream) return d.places_itself && d.acks_every_packet && d.own_timeouts;
  return !d.places_itself && !d.acks_every_packet && !d.own_timeouts && !d.names_messages &&
         d.ack_form == AckForm::kPlain;
}
static_assert(std::ranges::all_of(kDialects, consistent));

constexpr const Dialect& dialect(std::uint8_t mode) { return kDialects[mode]; }
constexpr const Dialect& dialect(wire::Mode mode) { return kDialects[static_cast<std::size_t>(mode)]; }

}  // namespace weft
