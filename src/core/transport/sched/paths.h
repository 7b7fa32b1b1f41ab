// Paths: where packets go, and how much may be on the way there.
//
// All queue pairs towards one peer address share one socket buffer at the other end.
// The path caps the bytes they have in flight together; a queue pair that finds no credit waits in the
// path's line. While somebody stands there nobody else takes credit: when enough has been freed, the first
// in line is called, and the next one once it had its turn. READs are charged by their requester, against
// the same figure, because what overflows is its own socket.
//
// The cap is what the receiver offers (until it says so: the configured share). A retransmission
// time-out halves it, acknowledged bytes let it grow back. A cap of zero means unbounded.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/units.h"
#include "core/transport/terms.h"

namespace weft {

struct Path {
  PathAttr attr;
  std::uint64_t credit = 0;                 // what the receiver offers; 0 unbounded
  std::uint64_t cap = 0;                    // what we allow ourselves now
  std::uint64_t in_flight = 0;              // request and response bytes we sent
  std::uint64_t reads = 0;                  // READ bytes we asked for
  std::uint32_t waiting_head = UINT32_MAX;  // queue pairs without credit, first come first served
  std::uint32_t waiting_tail = UINT32_MAX;
  std::uint32_t called = UINT32_MAX;  // left the line to take credit in its next turn

  bool bounded() const { return credit != 0; }
  // One packet may always be in flight, or a credit below one packet would never move.
  bool admits(std::uint64_t bytes) const { return !bounded() || in_flight == 0 || in_flight + bytes <= cap; }
  bool admits_read(std::uint64_t bytes) const { return !bounded() || reads == 0 || reads + bytes <= cap; }
  // Of what was in flight, so much has arrived, or is given up.
  void discharge(std::uint64_t bytes) {
    in_flight -= bytes;
    grow(bytes);
  }
  void shrink() {
    if (bounded()) cap = std::max<std::uint64_t>(cap / 2, std::min<std::uint64_t>(credit, 16384));
  }
  void grow(std::uint64_t acked) {
    if (bounded() && cap < credit) cap = std::min(credit, cap + acked / 8 + 1);
  }
};

}  // namespace weft
