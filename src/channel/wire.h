// What two ends of a channel tell each other, as bytes: the immediate of every frame, the data with which
// they meet, heads, announcements, and frames of a stream (docs/protocol/channel.md draws them).
//
// What comes from a peer may be anything. Every reader here answers false to what the page does not allow,
// and looks at no byte that is not there.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "core/base/ids.h"
#include "core/verbs/port.h"

namespace weft::channel {

inline constexpr std::uint8_t kProtocol = 1;  // its version
inline constexpr std::uint32_t kNumberBits = 12;
inline constexpr std::uint32_t kNumberMask = (1U << kNumberBits) - 1;
inline constexpr std::uint32_t kMostDepth = 1024;  // so that 12 bits tell old from new
inline constexpr std::uint32_t kLeastFrame = 256;  // a head and an announcement fit
inline constexpr std::uint32_t kMostPieces = 4;

enum class Kind : std::uint8_t { kMessage = 0, kAnnouncement = 1, kAck = 2, kNop = 3, kClose = 4, kMove = 5 };
// kClock: a question about a clock, or its answer; between the two libraries.
enum class Role : std::uint8_t { kPlain = 0, kRequest = 1, kResponse = 2, kClock = 3 };

// docs/protocol/channel.md#the-immediate
struct Immediate {
  std::uint32_t ack = 0;  // 12 bits
  std::uint32_t seq = 0;  // 12 bits
  bool may = false;
  bool head = false;
  Role role = Role::kPlain;
  Kind kind = Kind::kMessage;
};

constexpr std::uint32_t pack(const Immediate& i) {
  return (i.ack & kNumberMask) << 20U | (i.seq & kNumberMask) << 8U | (i.may ? 1U << 7U : 0U) |
         (i.head ? 1U << 6U : 0U) | static_cast<std::uint32_t>(i.role) << 4U |
         static_cast<std::uint32_t>(i.kind);
}
constexpr bool unpack(std::uint32_t word, Immediate& out) {
  const std::uint32_t role = word >> 4U & 3U;
  const std::uint32_t kind = word & 7U;
  out.ack = word >> 20U;
  out.seq = word >> 8U & kNumberMask;
  out.may = (word & 1U << 7U) != 0;
  out.head = (word & 1U << 6U) != 0;
  out.role = static_cast<Role>(role);
  out.kind = static_cast<Kind>(kind);
  return kind <= 5 && (word & 8U) == 0;
}

// The number nearest to `near` whose low 12 bits are `low`. It may lie before zero; then it is huge.
constexpr std::uint64_t widen(std::uint32_t low, std::uint64_t near) {
  const auto distance =
      static_cast<std::int32_t>((low - static_cast<std::uint32_t>(near)) << (32 - kNumberBits));
  return near + static_cast<std::uint64_t>(std::int64_t{distance >> (32 - static_cast<int>(kNumberBits))});
}

enum class Refusal : std::uint32_t {
  kNone = 0,
  kVersion = 1,
  kProgram = 2,
  kNoRoom = 3,
  kSession = 4,
  kRange = 5,
};

// docs/protocol/channel.md#meeting
struct Hello {
  static constexpr std::size_t kBytes = 52;
  std::uint8_t version = kProtocol;
  bool continues = false;
  bool moves = false;  // this end can change its carrier
  std::uint64_t session = 0;
  std::uint32_t depth = 0;
  std::uint16_t tcp_port = 0;  // where sessions of this end may go on over TCP; 0: nowhere
  std::uint32_t frame = 0;
  std::uint32_t largest = 0;
  std::uint64_t received = 0;
  std::uint64_t taken = 0;
  std::uint32_t reconnect_ms = 0;
  std::uint32_t alive_ms = 0;
  Refusal reason = Refusal::kNone;
};

ConnectData write_hello(const Hello& hello);
// kNone: it is sound. A refusal carries its own reason, and nothing else in it counts.
Refusal read_hello(const ConnectData& data, Hello& out);

// docs/protocol/channel.md#over-tcp: what stands before the payload of a frame in a stream.
struct Prefix {
  static constexpr std::uint32_t kBytes = 8;
  std::uint32_t length = 0;  // of the payload, its head included
  std::uint32_t immediate = 0;
};
void write_prefix(const Prefix& prefix, std::uint8_t* out);
Prefix read_prefix(const std::uint8_t* in);

// docs/protocol/channel.md#heads
struct Head {
  static constexpr std::uint32_t kBytes = 32;
  std::uint32_t call = 0;
  std::uint32_t status = 0;
  std::uint64_t trace = 0;
  std::uint64_t left_at = 0;
  std::uint64_t arrived = 0;
};

void write_head(const Head& head, std::uint8_t* out);
Head read_head(const std::uint8_t* in);

// A part of a large message, in the sender's memory.
struct Piece {
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  Key rkey{};
};

// docs/protocol/channel.md#large-messages
struct Announcement {
  static constexpr std::uint32_t kFixed = 16;
  static constexpr std::uint32_t kPiece = 16;
  static constexpr std::uint32_t kMostBytes = kFixed + kMostPieces * kPiece;
  std::uint64_t length = 0;
  std::uint32_t count = 0;
  std::array<Piece, kMostPieces> pieces{};
};

std::uint32_t write_announcement(const Announcement& a, std::uint8_t* out);  // bytes written
bool read_announcement(std::span<const std::uint8_t> in, std::uint64_t largest, Announcement& out);

}  // namespace weft::channel
