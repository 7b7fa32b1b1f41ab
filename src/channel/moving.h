// Which carrier a channel should have, and since when RDMA has been too slow for it (moving.cc).
#pragma once
#include <cstdint>

#include "core/base/units.h"

namespace weft::channel {

struct Moving {
  bool asked_peer = false;       // the peer was asked on this connection to change the carrier
  bool trial = false;            // RDMA is tried after a cool-down: one failed attempt is enough
  bool wants_tcp = false;        // the parameter `mock`, while wanted_at is
  bool back = false;             // RDMA is tried by command: one failed attempt is enough
  bool timing = false;           // one message is timed
  int cooled = 0;                // cool-downs that helped nothing; each doubles the next
  std::uint32_t attempts = 0;    // over RDMA that failed, one after the other
  std::uint32_t late_polls = 0;  // of the context, when the timed message was posted
  std::uint64_t timed = 0;       // its number
  Time timed_at{};               // when it was posted
  Time slow_since = kNever;      // every timed message from here on was too slow
  Time cool_until = kNever;      // over TCP: RDMA is tried then
  Time back_since{};             // RDMA came back after a cool-down
  Time wanted_at = kNever;       // what `mock` wants is tried again then
};

}  // namespace weft::channel
