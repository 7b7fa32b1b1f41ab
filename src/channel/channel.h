// A channel: one peer, messages both ways. The program sees its address and asks the Context; what is in it
// is the Context's (context.h). States:
//
//   kFree -> kAsked ------accept------> kAnswered -> kOpen -> kClosing -> kClosed -> kLeft -> kFree
//     |                                               ^  |
//     +----> kConnecting -----------------------------+  +-> kBroken: the session is kept, the connection
//     failed;
//                                                              back to kOpen, or to kClosed
//
// A channel is kLeft when its end was told and the program has given back every message of it, and kFree at
// the next poll().
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>

#include "channel/carried.h"
#include "channel/message.h"
#include "channel/moving.h"
#include "channel/trace.h"
#include "channel/window.h"
#include "core/verbs/port.h"

namespace weft::channel {

class Context;

// What carries a channel's frames.
enum class Carrier : std::uint8_t { kRdma, kTcp };

// Why a channel closed.
enum class Reason : std::uint8_t {
  kNone,
  kHere,         // this program closed it
  kThere,        // the peer did
  kRefused,      // the peer refused it
  kVersion,      // the peer speaks another version
  kRange,        // what the peer said of itself is out of range
  kNoRoom,       // the peer has none
  kSessionGone,  // the peer does not know the session any more
  kLost,         // the connection failed
  kLate,         // nothing came of it in time
  kViolation,    // the peer broke the protocol
  kNoMemory,     // this end has no memory or no queue pair
};
const char* sentence(Reason reason);

struct ChannelCounts {
  std::uint64_t sent = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received = 0;
  std::uint64_t received_bytes = 0;
  std::uint32_t large_sent = 0;
  std::uint32_t large_received = 0;
  std::uint32_t fragments = 0;
  std::uint32_t acks = 0;   // sent by themselves
  std::uint32_t early = 0;  // of these, with the permission
  std::uint32_t nops = 0;
  std::uint32_t probes = 0;
  std::uint32_t waited = 0;  // messages that found the window full
  std::uint32_t reconnects = 0;
  std::uint32_t clocks = 0;  // clock messages that this end sent: questions, and answers to the peer's
  std::uint32_t moves = 0;   // connections that are over another carrier than the one before
};

// From a request that the program made to its response in the program's hands: the peer's program and both
// programs' polls are in it.
struct RoundTrips {
  std::uint64_t count = 0;
  Duration last{};
  Duration least{};
  Duration smoothed{};  // an eighth of each new one, as RFC 6298 §2 does

  void add(Duration d) {
    last = d;
    least = count == 0 ? d : std::min(least, d);
    smoothed = count == 0 ? d : smoothed + (d - smoothed) / 8;
    ++count;
  }
};

// Messages and bytes one way, as far as they are not in the counts yet: half the room, and the other half of
// a line of every channel.
struct Tally {
  std::uint32_t messages = 0;
  std::uint32_t bytes = 0;

  // A message is not longer than 2^31 - 1 (Config::largest), so neither wraps before it is emptied.
  bool full() const { return ((messages | bytes) >> 31U) != 0; }
  void add(std::uint32_t length) { ++messages, bytes += length; }
  void empty_into(std::uint64_t& all_messages, std::uint64_t& all_bytes) {
    all_messages += messages;
    all_bytes += bytes;
    *this = {};
  }
};

// What every message touches of a channel: two cache lines, beside an entry of each ring. Over ten thousand
// channels that is what a message costs (docs/ARCHITECTURE.md#what-a-message-touches), so what only a full
// window, a request, a fetch, a beginning or an end needs stands in Channel, behind it.
struct alignas(128) HotChannel {
  enum class State : std::uint8_t {
    kFree,
    kAsked,
    kAnswered,
    kConnecting,
    kOpen,
    kClosing,
    kBroken,
    kClosed,
    kLeft  // its end was handed out; free at the next poll()
  };

  State state = State::kFree;
  bool may_early = true;   // we may send an ACK early
  bool peer_used = false;  // the peer used its permission, and was not given it again
  // Whether it stands in the rows (timers.cc), so that who has nothing there looks at no line of theirs.
  bool in_owed : 1 = false;
  bool in_nops : 1 = false;
  std::uint32_t early = 0;      // ACKs sent by themselves, with the permission
  std::uint16_t life = 0;       // of the connection: completions of earlier ones are ignored
  std::uint16_t sq_posted = 0;  // send requests posted, modulo 2^16
  std::uint16_t sq_done = 0;
  std::uint16_t sq_signaled = 0;
  std::uint32_t index = 0;
  Qpn qpn = kNoQpn;
  // What was sent and what was taken, by number, depth of each rounded up to a power of two; then receives,
  // by slot. nullptr in what was taken: given back.
  std::unique_ptr<Message*[]> rings;
  SendWindow tx;
  // --- the second line ---
  TakeWindow rx;
  Time heard{};  // the peer was last heard of
  Tally sent;
  Tally received;
  std::uint16_t ring_mask = 0;
  std::uint16_t unasked = 0;  // messages that were announced, and of which not all has been asked for
  std::uint32_t waiting = 0;  // messages in the queue
};
static_assert(sizeof(HotChannel) == 128);

struct Channel : HotChannel {
  // --- a full window, a request, a fetch ---
  Message* first = nullptr;  // the queue
  Message* last = nullptr;
  std::uint32_t largest = 0;     // that the peer takes
  std::uint32_t peer_frame = 0;  // the longest frame that it has room for
  std::uint32_t calls = 0;       // requests without an answer
  std::uint64_t fetching = 0;    // messages before it need no READ posted any more
  std::uint16_t reads_out = 0;
  bool asked = false;    // this end asked for the channel, so it asks again
  bool in_line = false;  // among the channels that fetch
  bool probing = false;  // a probe is under way
  bool close_sent = false;
  bool opened_once = false;
  ChannelCounts counted;  // but for what is in `sent`, `received` and `early`
  RoundTrips round_trips;
  Ways ways;  // of traced messages that came
  PeerClock clock;
  Time hungry_at = kNever;   // memory for a fetch is asked for again
  Time slow_until = kNever;  // the filter holds up the next message
  std::uint64_t judged = 0;  // messages before it have met the filter
  // Over TCP, once its connection is asked for; a channel that talks has this or a queue pair.
  std::unique_ptr<Carried> carried;
  Moving moving;

  // --- its beginning and its end ---
  Context* context = nullptr;
  std::uint64_t cookie = 0;  // the program's
  Reason reason = Reason::kNone;
  ConnectionId connection{};
  std::uint64_t last_receive = 0;  // the turn in which its queue pair was told to have no more; 0: not yet
  bool connected = false;          // `connection` means something
  std::uint16_t service = 0;
  std::uint64_t session = 0;
  std::uint32_t peer_keeps_ms = 0;
  std::uint16_t peer_port = 0;           // its TCP port; 0: none
  bool peer_moves = false;               // it can change its carrier
  Carrier carrier = Carrier::kRdma;      // of the connection, or of the next attempt
  Carrier opened_over = Carrier::kRdma;  // the last that opened
  Time until = kNever;                   // an attempt, a farewell or a kept session ends then
  Time kept_until = kNever;
  Time redial_at = kNever;
  wire::Address peer;
  Channel* fetching_before = nullptr;  // in the line of those that fetch
  Channel* fetching_after = nullptr;
  struct About : Telling {
    Channel* channel = nullptr;
  };
  About begun;  // kAsked or kOpened
  About ended;  // kClosed

  Message*& sent_at(std::uint64_t number) const { return rings[number & ring_mask]; }
  Message*& taken_at(std::uint64_t number) const { return rings[ring_mask + 1U + (number & ring_mask)]; }
  Message*& receive_at(std::uint32_t slot) const { return rings[2U * (ring_mask + 1U) + slot]; }
  bool over() const { return state == State::kFree || state == State::kClosed || state == State::kLeft; }
  bool talks() const { return state == State::kOpen || state == State::kClosing; }
  ChannelCounts counts() const {
    ChannelCounts all = counted;
    Tally(sent).empty_into(all.sent, all.sent_bytes);
    Tally(received).empty_into(all.received, all.received_bytes);
    all.acks += early;
    all.early = early;
    return all;
  }
  void count_sent(std::uint32_t length) {
    sent.add(length);
    if (sent.full()) [[unlikely]]
      sent.empty_into(counted.sent, counted.sent_bytes);
  }
  void count_received(std::uint32_t length) {
    received.add(length);
    if (received.full()) [[unlikely]]
      received.empty_into(counted.received, counted.received_bytes);
  }
  std::uint16_t sq_used() const { return static_cast<std::uint16_t>(sq_posted - sq_done); }
};

}  // namespace weft::channel
