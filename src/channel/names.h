// What a context finds its channels by: the session's name, the connection, the queue pair.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/base/ids.h"
#include "core/verbs/port.h"

namespace weft::channel {

// A session that a peer asked for. Peers choose the numbers, so that what they hash to is not theirs to
// know.
struct SessionName {
  wire::Address peer;
  std::uint64_t session = 0;
  bool operator==(const SessionName&) const = default;
};
struct SessionHash {
  std::uint64_t secret = 0;
  std::size_t operator()(const SessionName& n) const;
};
struct QpnHash {
  std::size_t operator()(Qpn q) const { return q.v * 0x9E37'79B9'7F4A'7C15ULL >> 32U; }
};
struct ConnectionHash {
  std::size_t operator()(ConnectionId id) const { return id.v * 0x9E37'79B9'7F4A'7C15ULL >> 32U; }
};

}  // namespace weft::channel
