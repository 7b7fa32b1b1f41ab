// The receiving end of a half-connection: our peer's requests, or the answers to our READs in a dialect that
// numbers them (docs/ARCHITECTURE.md, "The halves of a queue pair"). It owns the expected number and the
// bitmap of what came ahead of it (RecvStream), and what an acknowledgement of it says. `Receiving` joins
// these for one call.
#pragma once
#include <cstdint>

#include "core/transport/stream.h"
#include "core/wire/header.h"

namespace weft {

// A packet that an ACK answers, as srnic echoes it (SRNIC §4.4.1).
struct Echo {
  std::uint32_t psn = 0;
  std::uint32_t msn = 0;
  std::uint32_t offset = 0;  // packets inside its message
};
inline Echo echo_of(const wire::Header& h) { return {h.psn.v, h.srx_msn, h.psn_offset}; }

// Small enough to travel in registers.
struct Receiving {
  RecvStream& r;
  std::uint8_t mode;     // of its half: dialect.h
  std::uint8_t opcode;   // of its ACKs
  std::uint8_t waiting;  // QueuePair::flags: a coalesced ACK of it waits in the control ring
};

}  // namespace weft
