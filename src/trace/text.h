// One packet as one line for humans: test failures, `weft replay`, logs.
//
//   12.345678us 10.0.0.1:49152 > 10.0.0.2 RC_WRITE_ONLY irn qp=0x12 psn=0x101 ackreq va=0x7f00 rkey=0x1234
//   len=32 payload=16
//
// Only fields that the packet carries appear, in the order of the table that encodes it, so the line
// also shows the layout. Numbers that people look up elsewhere (queue pairs, keys,
// addresses, PSNs) are hexadecimal, counts are decimal. The text is stable: tools may split it at blanks.
#pragma once
#include <cstdint>
#include <string>

#include "core/wire/header.h"
#include "core/wire/packet.h"
#include "trace/packet_info.h"

namespace weft::trace {

std::string to_text(const wire::Address& address);
std::string to_text(const wire::Header& h, std::uint32_t payload);
std::string to_text(const PacketInfo& info, const wire::Header& h, std::uint32_t payload);

}  // namespace weft::trace
