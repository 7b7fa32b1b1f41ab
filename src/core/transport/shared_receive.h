// Shared receive queues: a ring of receives that queue pairs draw from
// (docs/protocol/verbs.md#shared-receive-queues). A queue pair copies what it takes into a small ring of its
// own, where it is bound to a message for good; the rest of the transport knows only receives of queue pairs.
//
// Binding is in order: to bind the receive of message k, all up to k are bound, so that
// SENDs that arrive out of order cannot eat the queue and leave the missing one without a buffer.
#pragma once
#include <cstdint>
#include <memory>

#include "core/transport/queue_pair.h"
#include "core/verbs/types.h"

namespace weft {

// Receives that one queue pair may hold: what can be ahead of a gap, in messages.
inline constexpr std::uint32_t kSharedHeld = 64;

struct SharedReceiveQueue {
  PdId pd{};
  SrqCaps caps;  // max_wr a power of two
  std::uint32_t users = 0;
  std::uint16_t head = 0;
  std::uint16_t tail = 0;
  std::unique_ptr<RecvWqe[]> ring;
  std::unique_ptr<Sge[]> sges;

  std::uint16_t size() const { return static_cast<std::uint16_t>(tail - head); }
  std::uint16_t mask() const { return static_cast<std::uint16_t>(caps.max_wr - 1); }
  Sge* sges_of(std::uint16_t slot) { return &sges[static_cast<std::size_t>(slot & mask()) * caps.max_sge]; }
};

}  // namespace weft
