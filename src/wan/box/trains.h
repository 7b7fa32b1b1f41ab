// A train: UDP packets of one size that a sender left to its device to cut (UDP_SEGMENT). A virtual Ethernet
// hands it over as it is. Cutting is what the device would have done: each frame has the headers of the
// train, with its own lengths and with identifications that count up. The UDP checksum of a frame is 0,
// which says that there is none; over IPv4 that is allowed, and an ICRC covers more.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "wan/box/port.h"

namespace weft::wan {

// A train over IPv4 that cut_frame() understands.
bool can_be_cut(const RxFrame& train);
std::uint32_t frames_of(const RxFrame& train);
// Bytes of the longest of its frames.
std::uint32_t longest_of(const RxFrame& train);
// Writes frame `i` into `out`, which holds longest_of(train); returns its length.
std::uint32_t cut_frame(const RxFrame& train, std::uint32_t i, std::uint8_t* out);

}  // namespace weft::wan
