// Loss recovery as a plug-in: one file and one row per scheme. A scheme sees a stream and the bitmap
// pool; it never sees a queue pair, a header or the clock, and it serves requests and READ responses
// alike: one loss engine serves both directions.
//
// The common case never comes here: callers handle the expected packet (`receive_in_order`, advance.h) and
// an ACK of a stream that is `plain()` (stream.h) inline.
//
// To add a scheme: write its file, declare it below, add its row to kSchemes (registry.cc); the conformance
// suite in scheme_test.cc then runs over it.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "core/transport/counters.h"
#include "core/transport/loss/hole.h"
#include "core/transport/loss/pool.h"
#include "core/transport/stream.h"
#include "core/wire/header.h"

namespace weft {

struct LossContext {
  static constexpr std::uint32_t kNoRecovery = UINT32_MAX;
  LossPool& pool;
  Counters& counters;
  std::uint32_t nack_threshold = 1;  // DeviceConfig's; kNoRecovery: however many
  bool adaptive = false;             // time-outs follow the path: one that was too short is found out
};

// What the receiver makes of a packet that is not the expected one.
enum class Arrival : std::uint8_t {
  kKeep,       // place it, then `hold`
  kDuplicate,  // already have it
  kDrop,       // go-back-N: ahead of the expected one
  kPoolEmpty,  // would keep it, but the pool is empty
  kDecline,    // inside the window, but not to be kept; the NACK says so
  kBeyond,     // outside the window
};

struct Nack {
  Seq trigger{};
  bool kept = false;  // the receiver has it
  Hole hole;          // srnic: what it names
};

struct LossScheme {
  const char* name;
  const char* text;
  wire::Mode mode;  // whose packets it works with: its row in dialect.h says what those are

  // Sender. `acked` is how far una just moved (una already updated).
  void (*on_ack)(LossContext&, SendStream&, std::uint64_t acked);
  // una is already at the NACK's expected number.
  void (*on_nack)(LossContext&, SendStream&, const Nack&);
  void (*on_timeout)(LossContext&, SendStream&);
  // The next packet to retransmit out of order, at `rtx` or later, if any. Once it leaves, `rtx` is behind
  // it.
  bool (*next_lost)(LossContext&, SendStream&, Seq& out);
  // First number at or after nxt that the receiver is not known to have (after a rewind).
  Seq (*skip_received)(LossContext&, const SendStream&, Seq from);

  // Receiver, for a packet that is not `expected`.
  Arrival (*classify)(LossContext&, RecvStream&, Seq seq);
  // A kept packet was placed.
  void (*hold)(LossContext&, RecvStream&, Seq seq, bool message_end);
};

// All schemes; row i is mode i's own, after them the variants.
std::span<const LossScheme* const> loss_schemes();
const LossScheme& loss_scheme(wire::Mode mode);
const LossScheme* find_loss_scheme(std::string_view name);  // nullptr: no such row
bool mode_known(wire::Mode mode);

extern const LossScheme kGoBackN;
extern const LossScheme kIrn;
extern const LossScheme kSrnic;
extern const LossScheme kIrnWithoutSack;
extern const LossScheme kIrnGoBackN;
extern const LossScheme kSrnicStateless;

// Releases the stream's bitmap, if it has one.
inline void release_block(LossPool& pool, std::uint16_t& block) {
  if (block != kNoBlock) {
    pool.give_back(block);
    block = kNoBlock;
  }
}

}  // namespace weft
