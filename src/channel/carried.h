// A channel's stream (docs/protocol/channel.md#over-tcp): the one frame that is leaving, the one that is
// coming, and bytes behind it that were read already. Both begin with a hello of each end.
//
//   out   front, then body: at most one frame has begun to leave, and no other begins before it has left
//   in    prefix -> is it allowed, and where to? -> payload -> what it says
//
// A payload goes into the block of a posted receive, as a device would put it there; one that is too long for
// that has its bytes in a body, as if they had been fetched.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "channel/message.h"
#include "channel/stream_port.h"
#include "channel/wire.h"

namespace weft::channel {

struct Carried {
  // What is done when a frame has left.
  enum class Then : std::uint8_t { kNothing, kComplete, kClose };

  StreamId stream{};
  bool greeted = false;  // the peer's hello is here
  bool listed = false;   // among those that may have something to read
  bool begun = false;    // a prefix is here, and allowed

  Then then = Then::kNothing;
  std::uint32_t front_length = 0;
  std::uint32_t body_length = 0;
  std::uint64_t left = 0;  // bytes of front and body that have left
  std::array<std::span<const std::uint8_t>, kMostPieces> body_out{};  // together `body_length` bytes
  std::uint64_t number = 0;                                           // of the message that is leaving

  Immediate said;
  std::uint32_t slot = 0;    // where the last block was free
  std::uint32_t length = 0;  // of the payload that is coming
  std::uint32_t have = 0;    // bytes of it
  Message* block = nullptr;
  Message* own_block = nullptr;  // the same, while nobody else knows of it: of a context that shares receives
  Message* body = nullptr;

  std::uint32_t head_have = 0;
  std::uint32_t begin = 0;  // of what was read and not looked at
  std::uint32_t end = 0;
  std::array<std::uint8_t, 64> front{};
  std::array<std::uint8_t, 64> head{};  // a hello or a prefix, as far as it is here
  std::array<std::uint8_t, 4096> buffer;

  static_assert(Hello::kBytes <= 64 && Prefix::kBytes + Head::kBytes <= 64);

  bool busy() const { return left != std::uint64_t{front_length} + body_length; }
  std::uint32_t ahead() const { return said.head ? Head::kBytes : 0; }
  // Where the next bytes of the payload belong.
  std::span<std::uint8_t> place() const {
    std::uint8_t* const frame = reinterpret_cast<std::uint8_t*>(block) + kFrameAt;
    if (body == nullptr) return {frame + have, length - have};
    if (have < ahead()) return {frame + have, ahead() - have};
    return {body->data + (have - ahead()), length - have};
  }
  // Bytes from the buffer to where they belong. Answers how many.
  std::uint32_t move_to(std::span<std::uint8_t> to) {
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(to.size(), end - begin));
    std::copy_n(buffer.data() + begin, n, to.data());
    begin += n;
    return n;
  }
};

// A stream of a peer that has not said yet who it is.
inline constexpr std::size_t kMostStrangers = 64;
struct Stranger {
  StreamId stream{};
  wire::Address peer;
  Time until = kNever;
  std::uint32_t have = 0;
  std::array<std::uint8_t, Hello::kBytes> said{};
};

}  // namespace weft::channel
