// What a trace knows about one packet besides its header and payload: when, where from, where to, and
// the few IP fields that matter. The text form and the capture file take the same struct.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/base/units.h"
#include "core/wire/packet.h"

namespace weft::trace {

// As the host sees it whose trace this is. A world that is seen from outside says none.
enum class Direction : std::uint8_t { kNone, kIn, kOut };

struct PacketInfo {
  Time time{};
  wire::Address source;  // both v4-mapped: an IPv4 packet; else IPv6
  wire::Address destination;
  std::uint16_t source_port = 0xC000;
  std::uint16_t identification = 0;  // IPv4; covered by the ICRC
  std::uint8_t tos = 0;              // DSCP and ECN
  std::uint8_t ttl = 64;
  bool dont_fragment = true;  // IPv4; covered by the ICRC
  Direction direction = Direction::kNone;
  std::uint32_t interface = 0;  // PcapngWriter::add_interface
  std::string_view comment;     // "dropped by impairment", …; may be empty
};

}  // namespace weft::trace
