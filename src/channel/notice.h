// What a context tells its program: what happened, one notice at a time, and what it has counted.
#pragma once
#include <cstdint>

#include "channel/channel.h"
#include "channel/message.h"

namespace weft::channel {

struct Notice {
  enum class Kind : std::uint8_t {
    kAsked,     // channel: a peer asks for it; accept() or refuse()
    kOpened,    // channel
    kMessage,   // message: yours until release()
    kRequest,   // message: answer() it, then release()
    kResponse,  // message, cookie of the request, message->status; release() it
    kOutcome,   // cookie, fate: of a message that failed, or whose delivery was to be told; of a request that
                // failed
    kClosed,    // channel, reason; the channel is gone, messages of it that are held are still to be released
  };
  Kind kind = Kind::kClosed;
  Fate fate = Fate::kDelivered;
  Reason reason = Reason::kNone;
  Channel* channel = nullptr;
  Message* message = nullptr;
  std::uint64_t cookie = 0;  // the message's or request's; of a notice about a channel: the channel's
};

struct ContextCounts {
  std::uint64_t polls = 0;
  std::uint64_t completions = 0;
  std::uint64_t stale = 0;           // completions of a connection that is over
  std::uint64_t violations = 0;      // peers that broke the protocol
  std::uint64_t refused = 0;         // peers that were refused
  std::uint64_t late = 0;            // responses to no request
  std::uint64_t unanswered = 0;      // requests that ended without a response
  std::uint64_t fresh_qps = 0;       // queue pairs made
  std::uint64_t reused_qps = 0;      // taken from the cache
  std::uint64_t starved = 0;         // fetches that waited for memory
  std::uint64_t dropped = 0;         // messages, by the filter
  std::uint64_t failed = 0;          // connections, by the filter
  std::uint64_t longest_gap_ns = 0;  // between two polls
  std::uint64_t late_polls = 0;      // after a gap longer than polling_warn_cycle
  std::uint64_t traced = 0;          // messages and requests that were sent with stamps
  std::uint64_t stream_frames = 0;   // over TCP, either way
};

}  // namespace weft::channel
