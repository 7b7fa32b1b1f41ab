// The sequence and acknowledgement window of a channel (X-RDMA §5.2, Algorithm 1;
// docs/protocol/channel.md#the-window): two halves, each a handful of counters that never wrap. Numbers of
// messages, no messages. What lies at most a window behind another counter is kept as that distance: both
// halves are 32 bytes, of which every message touches all (channel.h).
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
  std::uint64_t taken = 0;     // the peer's program has taken all before it
  std::uint64_t complete = 0;  // the device needs the memory of all before it no more
  std::uint32_t frame = 0;  // the longest that the peer has room for, and a head and a message of it may be
  std::uint16_t again = 0;  // messages before SEQ that are to be posted again
  std::uint16_t depth = 0;

  std::uint64_t acked() const { return std::min(taken, complete); }  // ACKED: all before it are done with
  std::uint64_t posted() const { return seq - again; }  // all before it have been posted, or need not be
  void posted_up_to(std::uint64_t number) { again = static_cast<std::uint16_t>(seq - number); }
  bool room() const { return seq - acked() < depth; }
  bool in_flight() const { return taken != posted(); }
  // What the peer says it has taken. False: it cannot have.
  bool allows(std::uint32_t wire_ack, std::uint64_t& now_taken) const {
    now_taken = widen(wire_ack, taken);
    return now_taken >= taken && now_taken <= posted();
  }
};
static_assert(sizeof(SendWindow) == 32);

struct TakeWindow {
  std::uint64_t wta = 0;     // WTA: the number of the message that comes next
  std::uint64_t handed = 0;  // all before it have been handed to the program
  std::uint64_t rta = 0;     // RTA: the program has taken all before it
  std::uint32_t held = 0;    // messages that the program has, or that are in the line to it
  std::uint16_t untold = 0;  // taken, and the peer was not told yet
  std::uint16_t depth = 0;

  std::uint64_t told() const { return rta - untold; }  // ACK: what the peer was told last
  void told_up_to(std::uint64_t number) { untold = static_cast<std::uint16_t>(rta - number); }
  void take_one() { ++rta, ++untold; }
  // May a message of this number come now?
  bool expects(std::uint32_t wire_seq) const {
    return (wta & kNumberMask) == wire_seq && wta - told() < depth;
  }
  bool owes() const { return untold != 0; }
  bool owes_at_once() const { return untold >= ack_every(depth); }
};
static_assert(sizeof(TakeWindow) == 32);

}  // namespace weft::channel
