// A message, and how it lies in memory. The descriptor stands in front of the bytes, in the same block, so
// that taking a block is all that a message costs and an idle channel owns none but its posted receives.
//
//   block:   0            128                   224        256
//            | Message    | room for a frame    | head     | payload ...
//
// A frame that is sent begins at the head or, without one, at the payload. An announcement is made in the
// room for it, because its payload stays where it is. A frame that is received begins at 128; the payload of
// a message with a head then begins at 160.
//
// Who owns a message: whoever took it from the Context, until send() and its like take it; the Context then
// gives it back by itself. A message that next() handed out belongs to the program until it gives it back
// with release(), and only then is it acknowledged.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "channel/registered.h"
#include "channel/wire.h"
#include "core/base/ids.h"

namespace weft::channel {

struct Channel;

// What stands in the Context's line of things to tell. Free blocks are linked the same way.
struct Telling {
  enum class What : std::uint8_t { kNothing, kAsked, kOpened, kClosed, kMessage, kSent, kCall };
  Telling* next = nullptr;
  What what = What::kNothing;
};

// What became of a message that was sent.
enum class Fate : std::uint8_t {
  kDelivered,  // the program at the far side has taken it
  kNotSent,    // it never left
  kUnknown,    // it left; whether it was taken, nobody knows
  kTooLate,    // no response until its deadline
  kCancelled,
};

struct Message : Telling {
  enum State : std::uint8_t {  // bits
    kNumbered = 1,             // in the ring of what was sent
    kQueued = 2,               // waits for the window
    kTell = 4,                 // its delivery is to be told
    kTelling = 8,              // in the line of things to tell
    kSettled = 16,             // its outcome is told, or in that line
    kReceived = 32,            // it came from the peer
    kWhole = 64,               // and everything of it is here
    kPosted = 128,             // its block is a posted receive
  };

  // --- one cache line: all that is looked at of a message that comes, and has no head ---
  Role role = Role::kPlain;
  std::uint8_t state = 0;
  bool traced = false;       // it has stamps (trace.h)
  std::uint32_t length = 0;  // of the payload; a sender may shorten it
  std::uint8_t* data = nullptr;
  Channel* channel = nullptr;
  std::uint64_t number = 0;
  std::uint64_t address = 0;  // of the block, as work requests name it
  Key lkey{};
  std::uint16_t region = 0;  // of the memory cache
  union {
    std::uint16_t slot = 0;  // of the channel's receives
    std::uint16_t parts;     // of one to be sent whose bytes lie outside: so many
  };
  union {
    Message* body = nullptr;  // a received message whose bytes were fetched: where they are
    Registered* outside;      // one to be sent whose bytes lie in the program's own memory: the first part's
  };

  // --- the next one: zero in a message that came without a head ---
  std::uint64_t cookie = 0;  // of the sender; in a response: of its request
  std::uint32_t status = 0;  // of a response
  std::uint32_t call = 0;    // of a request or a response
  // --- for any message ---
  std::uint32_t capacity = 0;  // of the block
  std::uint32_t fetched = 0;   // bytes of it that are here
  std::uint32_t asked = 0;     // bytes of it that READs have been posted for
  Key rkey{};
  Fate fate = Fate::kDelivered;
  bool answered = false;      // a request that was received
  Message* before = nullptr;  // in the queue of a channel
  Message* after = nullptr;

  // A block that was used before: where it lies it knows already, and whoever takes it next sets the rest.
  void renew();
  // A message without a head has none of this; the block of one that had is made to look like it.
  void forget_head() {
    cookie = 0;
    status = call = 0;
    answered = false;
  }
  std::span<std::uint8_t> bytes() { return {data, length}; }
  bool outside_bytes() const { return !is(kReceived) && outside != nullptr; }
  bool has_head() const { return role != Role::kPlain || traced; }
  bool is(State s) const { return (state & s) != 0; }
  void set(State s) { state = static_cast<std::uint8_t>(state | s); }
  void clear(State s) { state = static_cast<std::uint8_t>(state & ~s); }
};

inline constexpr std::uint32_t kFrameAt = 128;
inline constexpr std::uint32_t kHeadAt = 224;
inline constexpr std::uint32_t kPayloadAt = 256;
static_assert(sizeof(Message) <= kFrameAt);
static_assert(kHeadAt + Head::kBytes == kPayloadAt);
static_assert(kFrameAt + Head::kBytes + Announcement::kMostBytes <= kPayloadAt);

// Of a message whose bytes lie outside: the list stands where its payload would.
inline std::span<Part> parts_of(Message& m) {
  static_assert(kMostPieces * sizeof(Part) <= 256);  // the shortest block
  return {reinterpret_cast<Part*>(reinterpret_cast<std::uint8_t*>(&m) + kPayloadAt), m.parts};
}
// `see(part, bytes)`: as much of each as the message still has, which its sender may have shortened.
template <class See>
void each_part(Message& m, See see) {
  std::uint32_t left = m.length;
  for (const Part& p : parts_of(m)) {
    const std::uint32_t n = std::min(left, p.length);
    if (n != 0) see(p, n);
    left -= n;
  }
}

inline void Message::renew() {
  data = reinterpret_cast<std::uint8_t*>(this) + kPayloadAt;
  channel = nullptr;
  body = nullptr;
  role = Role::kPlain;
  state = 0;
  traced = false;
  forget_head();
}

}  // namespace weft::channel
