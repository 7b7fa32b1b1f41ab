// What crosses the boundary of a box: frames with decoded headers. The payload's bytes stay with the world,
// which knows them by a number.
#pragma once
#include <compare>
#include <cstdint>

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
  Frame frame;
  const wire::Mad* mad = nullptr;  // its payload, of a message that the box wrote; valid until the next call
  bool last = false;               // the box needs the body no longer
};

// Requests of one end of a connection, as packets name them.
struct HalfName {
  wire::Address requester;
  wire::Address responder;
  Qpn responder_qpn{};
  bool operator==(const HalfName&) const = default;
};

}  // namespace weft::wan
