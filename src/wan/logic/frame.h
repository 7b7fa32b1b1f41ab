// What crosses the boundary of a box: frames with decoded headers. The payload's bytes stay with the world,
// which knows them by a number.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <span>

#include "core/base/ids.h"
#include "core/wire/mad.h"
#include "core/wire/packet.h"

namespace weft::wan {

// Of a box: towards its site, towards the line.
enum class Side : std::uint8_t { kSite, kLine };
constexpr Side other(Side s) { return s == Side::kSite ? Side::kLine : Side::kSite; }

// The payload of a frame, in the world's memory.
using BodyId = Id<struct BodyTag, std::uint32_t>;
inline constexpr BodyId kNoBody{0xFFFF'FFFF};

struct Frame {
  wire::Header header;
  wire::Address source;
  wire::Address destination;
  std::uint32_t payload = 0;  // bytes, pad excluded
  std::uint8_t tos = 0;
  BodyId body = kNoBody;
};

// A frame that leaves.
struct Out {
  static constexpr std::uint8_t kNoMember = 255;

  Frame frame;
  const wire::Mad* mad = nullptr;  // its payload, of a message that the box wrote; valid until the next call
  bool last = false;               // the box needs the body no longer
  // Of parity (parity.h): which member of the open group this data frame is. 0 begins a group.
  std::uint8_t member = kNoMember;
  // A parity frame: what its payload begins with, and the row of the code that follows; valid until the next
  // call.
  std::span<const std::uint8_t> parity{};
  std::uint8_t row = 0;
};

// A group of the line from which packets can be restored: `here` has a body for each member that is here, and
// as many rows are given as there are members without one. `wanted`, a bit for each member, are those that
// are missed.
struct Restore {
  struct Row {
    std::uint8_t row = 0;
    BodyId body = kNoBody;  // of the parity frame; the coded bytes begin behind `header_bytes` of its payload
  };
  std::uint32_t members = 0;
  std::array<BodyId, 64> here{};
  std::uint64_t wanted = 0;
  std::uint32_t rows = 0;
  std::array<Row, 8> row{};
  std::uint32_t header_bytes = 0;
};

// Requests of one end of a connection, as packets name them.
struct HalfName {
  wire::Address requester;
  wire::Address responder;
  Qpn responder_qpn{};
  bool operator==(const HalfName&) const = default;
};

}  // namespace weft::wan
