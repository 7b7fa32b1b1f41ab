// The sequence and acknowledgement window of a channel (X-RDMA §5.2, Algorithm 1;
// docs/protocol/channel.md#the-window): two halves, each a handful of counters that never wrap. Numbers of
// messages, no messages.
//
//   SendWindow     acked = min(taken, complete) <= posted <= seq <= acked + depth
//                  [acked, posted)  in flight: the peer's program has not taken them
//                  [posted, seq)    have a number and are to be posted again, after a reconnection
//
//   TakeWindow     told <= rta <= handed <= wta <= rta + depth
//                  [rta, handed)    the program has them, or gave back a later one first
//                  [handed, wta)    are being fetched, or wait for one that is
//
// Printed, Algorithm 1 moves RTA only when a READ is done, so small messages are never acknowledged; here a
// message counts as taken when the program gives it back, however it came. Printed, a sender never looks at
// the depth; here `room` does.
#pragma once
#include <algorithm>
#include <cstdint>

#include "channel/wire.h"

namespace weft::channel {

// Frames beside messages that a peer may send: docs/protocol/channel.md#acknowledgements
inline constexpr std::uint32_t kControls = 8;

// How many messages are taken before an ACK goes out by itself.
constexpr std::uint32_t ack_every(std::uint32_t depth) { return (depth + 3) / 4; }

struct SendWindow {
  std::uint64_t seq = 0;       // SEQ: the number of the next message
  std::uint64_t posted = 0;    // all before it have been posted on this connection, or need not be
  std::uint64_t acked = 0;     // ACKED: all before it are done with
  std::uint64_t taken = 0;     // the peer's program has taken all before it
  std::uint64_t complete = 0;  // the device needs the memory of all before it no more
  std::uint32_t depth = 0;

  bool room() const { return seq - acked < depth; }
  bool in_flight() const { return taken != posted; }
  std::uint64_t done() const { return std::min(taken, complete); }
  // What the peer says it has taken. False: it cannot have.
  bool allows(std::uint32_t wire_ack, std::uint64_t& now_taken) const {
    now_taken = widen(wire_ack, taken);
    return now_taken >= taken && now_taken <= posted;
  }
};

struct TakeWindow {
  std::uint64_t wta = 0;     // WTA: the number of the message that comes next
  std::uint64_t handed = 0;  // all before it have been handed to the program
  std::uint64_t rta = 0;     // RTA: the program has taken all before it
  std::uint64_t told = 0;    // ACK: what the peer was told last
  std::uint32_t depth = 0;

  // May a message of this number come now?
  bool expects(std::uint32_t wire_seq) const { return (wta & kNumberMask) == wire_seq && wta - told < depth; }
  bool owes() const { return rta != told; }
  bool owes_at_once() const { return rta - told >= ack_every(depth); }
};

}  // namespace weft::channel
